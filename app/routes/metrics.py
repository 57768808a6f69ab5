"""What Prometheus scrapes."""

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from app.metrics import Metrics
from app.routes.chunks import in_chunks


def metrics_router(metrics: Metrics) -> APIRouter:
    """Return the route of the metrics, in the text format and no other, which every Prometheus reads."""
    router = APIRouter()

    @router.get("/metrics")
    async def scrape() -> StreamingResponse:
        return StreamingResponse(in_chunks(metrics.pieces()), media_type=Metrics.CONTENT_TYPE)

    return router
