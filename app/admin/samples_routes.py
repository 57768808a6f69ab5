"""`GET /samples` of the admin port: pods of the bundled demo cluster that the page explains at a click."""

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
    """The samples. Empty unless the demo cluster is served."""

    samples: Sequence[Sample]


def samples_router(samples: Sequence[Sample]) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/samples")
    async def all_samples() -> Response:
        return JsonResponse(Samples(samples))

    return router
