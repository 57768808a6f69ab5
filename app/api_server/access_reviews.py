"""Access reviews by the API server: in which namespaces a caller may list pods. Results are kept for a short time.

A caller is reviewed by a SelfSubjectAccessReview with the caller's own token, on connections without Kindred's login.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from http import HTTPStatus
from typing import Final

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.tls import CredentialsError
from app.process.json_text import encode

ALL_NAMESPACES: Final = ""
REVIEW_SECONDS: Final = 30.0
"""Seconds for which a review is kept. The removal of a right takes effect after this time at the latest."""
MAX_REVIEWS: Final = 4096
"""Kept reviews, each for one caller and one namespace."""
_AT_ONCE: Final = 8
_PATIENCE: Final = 5.0
"""Seconds for one review, with the wait for its turn."""
GROUP: Final = "authorization.k8s.io/v1"
_PATH: Final = f"/apis/{GROUP}/selfsubjectaccessreviews"


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


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status


review_decoder: Final = msgspec.json.Decoder(_Review)


class AccessReviews:
    """Makes reviews and keeps their results. It stores digests, but no token."""

    def __init__(self, nobody: ApiClient, clock: Callable[[], float]) -> None:
        """`nobody` is a client without a login. `clock` returns monotonic seconds."""
        self._nobody = nobody
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._reviews: OrderedDict[bytes, tuple[float, bool | UnknownCallerError]] = OrderedDict()  # by digest

    async def run(self) -> None:
        """Keep the connections of callers until cancelled, then close them."""
        try:
            await asyncio.Event().wait()
        finally:
            await self._nobody.close()

    def known(self, caller: TokenCaller, namespace: str) -> bool | None:
        """Return the kept result of `may_list_pods`. None if there is none."""
        key = self._digest(caller, namespace)
        found = self._reviews[key][1] if self._is_known(key) else None
        return found if isinstance(found, bool) else None

    async def may_list_pods(self, caller: TokenCaller, namespace: str) -> bool:
        """Return whether a caller may list the pods of a namespace. Empty: all namespaces. Raises ReviewError."""
        key = self._digest(caller, namespace)
        if not self._is_known(key):
            self._keep(key, await self._outcome(caller, namespace))
        found = self._reviews[key][1]
        if isinstance(found, UnknownCallerError):
            raise UnknownCallerError(str(found))
        return found

    async def _outcome(self, caller: TokenCaller, namespace: str) -> bool | UnknownCallerError:
        attributes = {"verb": "list", "version": "v1", "resource": "pods", "namespace": namespace}
        review = {
            "apiVersion": GROUP,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            async with asyncio.timeout(_PATIENCE), self._turns:
                body = await self._nobody.post_as(caller.token, _PATH, encode(review))
            return review_decoder.decode(body).status.allowed
        except TimeoutError:
            raise ReviewError(f"the API server did not respond within {_PATIENCE:g} s") from None
        except StatusError as error:
            if error.code == HTTPStatus.UNAUTHORIZED:
                return UnknownCallerError("the API server does not accept the caller's own token")
            raise ReviewError(f"the API server could not be reached: {error}") from None
        except (ApiError, CredentialsError) as error:
            raise ReviewError(f"the API server could not be reached: {error}") from None
        except msgspec.MsgspecError:
            raise ReviewError("the API server sent no valid review") from None

    def _is_known(self, key: bytes) -> bool:
        until, _ = self._reviews.get(key, (0.0, None))
        if self._clock() < until:
            return True
        self._reviews.pop(key, None)
        return False

    def _keep(self, key: bytes, outcome: bool | UnknownCallerError) -> None:  # noqa: FBT001  # what is kept
        self._reviews[key] = self._clock() + REVIEW_SECONDS, outcome
        while len(self._reviews) > MAX_REVIEWS:
            self._reviews.popitem(last=False)

    def _digest(self, caller: TokenCaller, namespace: str) -> bytes:
        return blake2b(encode((caller.token, namespace)), key=self._secret, digest_size=32).digest()
