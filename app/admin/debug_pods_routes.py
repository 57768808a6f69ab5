"""Routes that read and change, at run time, the list of pods whose requests are logged in full."""

from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

import msgspec
from fastapi import APIRouter, HTTPException, Path, Query, Response

from app.admin.json_response import JsonResponse
from app.telemetry.debugged_pods import MAX_SECONDS, DebuggedPods, TooManyPodsError

_Namespace = Annotated[str, Path(alias="namespace", max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
_Name = Annotated[str, Path(alias="name", max_length=253, pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
_Seconds = Annotated[float, Query(alias="for", gt=0, le=MAX_SECONDS)]


class DebuggedPod(msgspec.Struct, frozen=True):
    """One pod."""

    pod: str
    """NAMESPACE/NAME"""
    seconds_left: float
    until: str
    """The end of the logging as a time, RFC 3339."""


class AllDebuggedPods(msgspec.Struct, frozen=True):
    """All pods on the list, by name."""

    pods: list[DebuggedPod]


def debug_pods_router(pods: DebuggedPods, now: Callable[[], float]) -> APIRouter:
    """Return the routes. `now` is the time of day, in seconds since 1970."""
    router = APIRouter()

    @router.get("/debug/pods")
    async def show() -> Response:
        return JsonResponse(AllDebuggedPods([_told(pod, left, now()) for pod, left in sorted(pods.left().items())]))

    @router.put("/debug/pods/{namespace}/{name}")
    async def begin(namespace: _Namespace, name: _Name, seconds: _Seconds) -> Response:
        pod = f"{namespace}/{name}"
        try:
            pods.begin(pod, seconds)
        except TooManyPodsError as error:
            raise HTTPException(HTTPStatus.CONFLICT, str(error)) from None
        return JsonResponse(_told(pod, seconds, now()))

    @router.delete("/debug/pods/{namespace}/{name}", status_code=HTTPStatus.NO_CONTENT)
    async def end(namespace: _Namespace, name: _Name) -> Response:
        pod = f"{namespace}/{name}"
        if not pods.end(pod):
            raise HTTPException(HTTPStatus.NOT_FOUND, f"pod {pod}: its requests are not logged in full")
        return Response(status_code=HTTPStatus.NO_CONTENT)

    return router


def _told(pod: str, seconds_left: float, now: float) -> DebuggedPod:
    until = datetime.fromtimestamp(now + seconds_left, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return DebuggedPod(pod, round(seconds_left, 3), until)
