"""`GET /names` of the admin port: nodes and pods by a part of their names, for a field with completion."""

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.admin.access import Access
from app.admin.json_response import JsonResponse
from app.explain.name_search import NameSearch

_LONGEST: Final = 512
"""Characters: NAMESPACE/NAME has at most 63 + 1 + 253."""


class NamesQuery(BaseModel):
    """The text to search for."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=_LONGEST)] = ""
    """A part of the names. Names that begin with it come first."""
    limit: Annotated[int, Field(ge=1, le=100)] = 20
    """Limit of the nodes, and of the pods."""


def names_router(search: NameSearch, access: Access) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/names")
    async def names(request: Request, query: Annotated[NamesQuery, Query()]) -> Response:
        sight = access.sight(request)
        if sight.is_full:
            return JsonResponse(await search.find(query.text, query.limit))
        # Not the reason of the reviews below: that one says whether a hidden name contains the text.
        why = await sight.why_limited()
        visible = await sight.of(sorted(await search.namespaces(query.text)))
        found = await search.find(query.text, query.limit, visible)
        return JsonResponse(msgspec.structs.replace(found, names_hidden=why))

    return router
