"""`GET /samples` of the admin port: pods to ask about at a click, where the bundled demo cluster is served."""

from collections.abc import Sequence

import msgspec
from fastapi import APIRouter, Response

from app.admin.json_response import JsonResponse


class Sample(msgspec.Struct, frozen=True):
    """A pod that is not in the cluster."""

    name: str
    """Its subject, such as `required-affinity`."""
    pod: msgspec.Raw
    """Its manifest."""


class Samples(msgspec.Struct, frozen=True):
    """The samples; none where a cluster of one's own is served."""

    samples: Sequence[Sample]


def samples_router(samples: Sequence[Sample]) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/samples")
    async def all_samples() -> Response:
        return JsonResponse(Samples(samples))

    return router
