"""Visibility of pod names on the admin port (`explain_access`), and the responses for a caller who may not see all.

Admins see everything. Any other caller sees only the namespaces whose pods the API server lets that caller list.
A path without an entry here may show pods of all namespaces. Only a caller who may list all pods may use it.
So a new route leaks nothing before it has an entry.
"""

import asyncio
from collections.abc import Collection, Iterable
from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import HTTPException, Request, Response
from starlette.datastructures import Headers

from app.admin.page_routes import OPEN_PATHS
from app.admin.responses import Encoder, JsonResponse
from app.api_server.access_reviews import ALL_NAMESPACES, AccessReviews, ReviewError, TokenCaller, UnknownCallerError
from app.api_server.login import bearer
from app.explain.explainer import Explanation
from app.process.json_text import naming
from app.server.auth import ADMIN

CALLER_HEADER: Final = "Kindred-Caller-Token"
"""Has the caller's own token of the API server. Not `Authorization`, which the API server's proxy removes."""


def caller_of(headers: Headers) -> TokenCaller | None:
    """Return the caller, or None if the request has no token of one. Raises HTTPException for a malformed header."""
    given = headers.getlist(CALLER_HEADER)
    if len(given) > 1:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{CALLER_HEADER}: given {len(given)} times")
    token = given[0].strip() if given else ""
    if not token:
        return None
    try:
        bearer(token)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{CALLER_HEADER}: {error}") from None
    return TokenCaller(token)


MAX_REVIEWED: Final = 64
"""Namespaces that the API server reviews for one request. Pods of further namespaces are hidden."""
_PATIENCE: Final = 5.0
"""Seconds for all reviews of one request."""

NAMELESS: Final = OPEN_PATHS | {
    "/livez",
    "/readyz",
    "/version",
    "/openapi.json",
    "/cluster",
    "/samples",
    "/events",
    "/explain/manifest",
    "/what-if/progress",
}
"""Paths whose responses name no pod except replicas of Kindred."""
HIDING: Final = frozenset(
    {
        *("/explain", "/explain/nodes", "/names", "/pending"),
        *("/what-if/capacity", "/what-if/drain", "/what-if/loss", "/what-if/removal"),
    }
)
"""Paths whose routes hide names themselves, by a Viewer."""
_NOBODY: Final = (
    f"no caller is known: send a token of the Kubernetes API in the header {CALLER_HEADER}, or use a token of an admin"
)
_LIMITED: Final = "names of pods in namespaces whose pods this caller may not list are hidden"
_HIDDEN: Final = "names of pods are hidden"
_TOO_MANY: Final = f"{_HIDDEN}, because one request reviews at most {MAX_REVIEWED} namespaces"


class NotVisibleError(Exception):
    """The caller may not see pods of a namespace (`status` 403), or the review failed (503)."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Visibility(msgspec.Struct, frozen=True):
    """Namespaces whose pods a caller may see, among the reviewed ones."""

    namespaces: Collection[str] | None
    """None: all."""
    why: str = ""
    """Why some of the reviewed namespaces are missing. Empty if none is."""
    status: HTTPStatus = HTTPStatus.FORBIDDEN
    """Status of a response that needs the missing namespaces."""

    def __call__(self, namespace: str) -> bool:
        """Return whether the names of the namespace's pods are shown."""
        return self.namespaces is None or namespace in self.namespaces


_ALL: Final = Visibility(None)


class Viewer:
    """The rights of one caller, for one request."""

    def __init__(self, reviews: AccessReviews | None, caller: TokenCaller | None) -> None:
        """Without reviews the caller sees everything. With reviews and without a caller, no pod is visible."""
        self._reviews = reviews
        self._caller = caller

    @property
    def is_full(self) -> bool:
        """Whether the caller sees everything, so that no review is needed."""
        return self._reviews is None

    async def of(self, namespaces: Iterable[str]) -> Visibility:
        """Return which of these namespaces are visible, reviewed in this order. One whose review fails is not."""
        if self._reviews is None:
            return _ALL
        if self._caller is None:
            return Visibility((), _NOBODY)
        seen: set[str] = set()
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._reviewed(self._reviews, self._caller, dict.fromkeys(namespaces), seen)
        except TimeoutError:
            return _unknown(seen, f"the API server did not respond within {_PATIENCE:g} s")
        except UnknownCallerError as error:
            return Visibility(seen, f"{_HIDDEN}: {error} ({CALLER_HEADER})")
        except ReviewError as error:
            return _unknown(seen, str(error))

    async def why_limited(self) -> str:
        """Return why this caller does not see all names. Empty if they do. It says nothing of any namespace."""
        visible = await self.of((ALL_NAMESPACES,))
        return "" if visible(ALL_NAMESPACES) else visible.why

    async def need(self, namespaces: Iterable[str]) -> None:
        """Raise NotVisibleError unless all of these namespaces are visible.

        Also without any namespace, it raises the error for an unknown caller or an API server that does not respond.
        """
        needed = sorted({*namespaces})
        visible = await self.of(needed)
        hidden = [namespace for namespace in needed if not visible(namespace)]
        if hidden and visible.why == _LIMITED:
            place = f"namespace {hidden[0]}"
            raise NotVisibleError(HTTPStatus.FORBIDDEN, _missing(place, f"a Role in {place}"))
        if visible.why:
            raise NotVisibleError(visible.status, visible.why)

    async def _reviewed(
        self, reviews: AccessReviews, caller: TokenCaller, namespaces: Collection[str], seen: set[str]
    ) -> Visibility:
        """Add the visible namespaces to `seen`: those with a known review first, then as many as may be reviewed."""
        if await reviews.may_list_pods(caller, ALL_NAMESPACES):
            return _ALL
        known = {namespace: reviews.known(caller, namespace) for namespace in namespaces}
        seen.update(namespace for namespace, allowed in known.items() if allowed)
        unknown = [namespace for namespace, allowed in known.items() if allowed is None]
        for namespace in unknown[:MAX_REVIEWED]:
            if await reviews.may_list_pods(caller, namespace):
                seen.add(namespace)
        if len(seen) == len(namespaces):
            return Visibility(seen)
        return Visibility(seen, _TOO_MANY if len(unknown) > MAX_REVIEWED else _LIMITED)


class Access:
    """Gives each request its Viewer, and rejects routes that its caller may not use at all."""

    def __init__(self, reviews: AccessReviews | None) -> None:
        """Without reviews every caller sees everything (`explain_access: all`)."""
        self._reviews = reviews

    def viewer(self, request: Request) -> Viewer:
        """Return the rights of the sender of a request. Raises HTTPException for a malformed token."""
        if self._reviews is None or getattr(request.state, ADMIN, False):
            return Viewer(None, None)
        return Viewer(self._reviews, caller_of(request.headers))

    async def admit(self, request: Request) -> None:
        """Let a request through to its route (a dependency of all routes). Raises HTTPException."""
        viewer = self.viewer(request)
        path = request.scope["path"]
        if viewer.is_full or path in NAMELESS or path in HIDING:
            return
        target = f"{request.method} {path}"
        visible = await viewer.of((ALL_NAMESPACES,))
        if visible(ALL_NAMESPACES):
            return
        if visible.why != _LIMITED:
            raise HTTPException(visible.status, f"{target} shows pods of all namespaces: {visible.why}")
        why = _missing("all namespaces", "a ClusterRole")
        raise HTTPException(HTTPStatus.FORBIDDEN, f"{target} shows pods of all namespaces: {why}")


async def visible_part(value: msgspec.Struct, viewer: Viewer) -> Response:
    """Return the response with a value. Names of pods that the caller may not see are hidden."""
    if viewer.is_full:
        return JsonResponse(value)
    named: set[str] = set()

    def collect(value: object) -> str:
        named.update(naming(value).namespaces())
        return ""

    msgspec.json.encode(value, enc_hook=collect)
    visible = await viewer.of(sorted(named))
    if visible.why and isinstance(value, Explanation):
        value = msgspec.structs.replace(value, names_hidden=visible.why)
    return Response(encoder(visible)(value), media_type="application/json")


def encoder(visible: Visibility) -> Encoder:
    """Return an encoder of values as JSON that hides the names of invisible pods."""

    def text(value: object) -> bytes:
        return msgspec.json.encode(value, enc_hook=lambda found: naming(found).rendered(visible))

    return text


def _unknown(seen: Collection[str], why: str) -> Visibility:
    return Visibility(seen, f"{_HIDDEN}: {why}", HTTPStatus.SERVICE_UNAVAILABLE)


def _missing(place: str, role: str) -> str:
    rule = '- {apiGroups: [""], resources: ["pods"], verbs: ["list"]}'
    return f"this caller may not list pods in {place}. Add to {role}: {rule}"
