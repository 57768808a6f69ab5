"""Access reviews by the API server: in which namespaces a caller may list pods. Results are kept for a short time.

A caller with a token is reviewed by a SelfSubjectAccessReview, on connections without Kindred's login. A user that a
trusted proxy names is reviewed by a SubjectAccessReview, which Kindred's own account sends.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credential_errors import CredentialsError
from app.json_text import encode

RBAC_RULE: Final = 'apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"]'
"""The rule of a ClusterRole that reviews of a proxy's callers need, as one line of YAML."""
ALL_NAMESPACES: Final = ""
KEPT_SECONDS: Final = 30.0
"""Seconds for which a review is kept. The removal of a right takes effect after this time at the latest."""
MAX_KEPT: Final = 4096
"""Kept reviews, each for one caller and one namespace."""
_AT_ONCE: Final = 8
_PATIENCE: Final = 5.0
"""Seconds for one review, with the wait for its turn."""
_GROUP: Final = "authorization.k8s.io/v1"
_AUTHENTICATED: Final = "system:authenticated"
_ANONYMOUS: Final = "system:anonymous"


class ReviewError(Exception):
    """A review failed. The message has the reason in one line."""


class UnknownCallerError(ReviewError):
    """The API server does not accept the caller's token."""


class TokenCaller(msgspec.Struct, frozen=True, gc=False):
    """A caller with a bearer token of the API server."""

    token: str

    def __repr__(self) -> str:
        """Return a text without the token."""
        return "TokenCaller()"


class ProxiedCaller(msgspec.Struct, frozen=True):
    """A caller that a trusted proxy names: UserInfo of authentication.k8s.io."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


Caller: TypeAlias = TokenCaller | ProxiedCaller


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status


_decoder: Final = msgspec.json.Decoder(_Review)


class AccessReviews:
    """Makes reviews and keeps their results. It stores digests, but no token."""

    def __init__(self, client: ApiClient, nobody: ApiClient, clock: Callable[[], float]) -> None:
        """`client` has Kindred's own account, `nobody` has no login. `clock` returns monotonic seconds."""
        self._client = client
        self._nobody = nobody
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._kept: OrderedDict[bytes, tuple[float, bool | UnknownCallerError]] = OrderedDict()  # by digest

    def known(self, caller: Caller, namespace: str) -> bool | None:
        """Return the kept result of `may_list_pods`. None if there is none."""
        key = self._digest(caller, namespace)
        found = self._kept[key][1] if self._is_kept(key) else None
        return found if isinstance(found, bool) else None

    async def may_list_pods(self, caller: Caller, namespace: str) -> bool:
        """Return whether a caller may list the pods of a namespace. Empty: all namespaces. Raises ReviewError."""
        key = self._digest(caller, namespace)
        if not self._is_kept(key):
            self._keep(key, await self._outcome(caller, namespace))
        found = self._kept[key][1]
        if isinstance(found, UnknownCallerError):
            raise UnknownCallerError(str(found))
        return found

    async def _outcome(self, caller: Caller, namespace: str) -> bool | UnknownCallerError:
        try:
            async with asyncio.timeout(_PATIENCE), self._turns:
                body = await self._asked(caller, namespace)
            return _decoder.decode(body).status.allowed
        except TimeoutError:
            raise ReviewError(f"the API server did not respond within {_PATIENCE:g} s") from None
        except StatusError as error:
            if isinstance(caller, TokenCaller) and error.code == HTTPStatus.UNAUTHORIZED:
                return UnknownCallerError("the API server does not accept the caller's own token")
            raise ReviewError(f"the API server could not be reached: {error}") from None
        except (ApiError, CredentialsError) as error:
            raise ReviewError(f"the API server could not be reached: {error}") from None
        except msgspec.MsgspecError:
            raise ReviewError("the API server sent no valid review") from None

    def _asked(self, caller: Caller, namespace: str) -> Awaitable[bytes]:
        attributes = {"verb": "list", "version": "v1", "resource": "pods"}
        wanted: dict[str, Any] = {"resourceAttributes": {**attributes, "namespace": namespace}}
        if isinstance(caller, TokenCaller):
            path, body = _review("SelfSubjectAccessReview", wanted)
            return self._nobody.post_as(caller.token, path, body)
        path, body = _review("SubjectAccessReview", {**_user(caller), **wanted})
        return self._client.post(path, body)

    def _is_kept(self, key: bytes) -> bool:
        until, _ = self._kept.get(key, (0.0, None))
        if self._clock() < until:
            return True
        self._kept.pop(key, None)
        return False

    def _keep(self, key: bytes, outcome: bool | UnknownCallerError) -> None:  # noqa: FBT001  # what is kept
        self._kept[key] = self._clock() + KEPT_SECONDS, outcome
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def _digest(self, caller: Caller, namespace: str) -> bytes:
        return blake2b(encode((type(caller).__name__, caller, namespace)), key=self._secret, digest_size=32).digest()


def _review(kind: str, spec: Mapping[str, Any]) -> tuple[str, bytes]:
    return f"/apis/{_GROUP}/{kind.lower()}s", encode({"apiVersion": _GROUP, "kind": kind, "spec": spec})


def _user(caller: ProxiedCaller) -> dict[str, Any]:
    """Return the user in the form that the API server gives a user behind its front proxy.

    Source: k8s.io/apiserver pkg/authentication/group/authenticated_group_adder.go.
    """
    groups = caller.groups
    if caller.user != _ANONYMOUS and _AUTHENTICATED not in groups:
        groups = (*groups, _AUTHENTICATED)
    found = {"user": caller.user, "groups": groups, "extra": dict(caller.extra)}
    return {**found, "uid": caller.uid} if caller.uid else found
