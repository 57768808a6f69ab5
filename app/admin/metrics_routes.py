"""The route that Prometheus scrapes."""

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from app.long_work import LongWork
from app.telemetry.metrics import Metrics


def metrics_router(metrics: Metrics, work: LongWork) -> APIRouter:
    """Return the route of the metrics. It has only the text format, which every Prometheus reads."""
    router = APIRouter()

    @router.get("/metrics", response_class=PlainTextResponse)
    async def scrape() -> Response:
        pieces = []
        async with work.turn():
            for piece in metrics.pieces():
                pieces.append(piece)
                if work.over:
                    await work.give_way()
        return Response(b"".join(pieces), media_type=Metrics.CONTENT_TYPE)

    return router
