"""Whose pods a caller may list: with the caller's own login and no other, kept for a short time, and never guessed."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from app.api_server import access_reviews
from app.api_server.access_reviews import (
    MAX_REVIEWS,
    REVIEW_SECONDS,
    AccessReviews,
    ReviewError,
    TokenCaller,
    UnknownCallerError,
)
from app.api_server.client import ApiClient
from app.api_server.credentials import load_credentials
from tests.app.admin.limited_callers import ReviewingServer
from tests.app.api_server.api_server import Request, response, serving
from tests.app.api_server.client_setting import Setting, write_kubeconfig

T = TypeVar("T")
ANN = TokenCaller("ann")
SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ALLOWED = response(b'{"status":{"allowed":true}}', status="201 Created")


def requested(reviews: AccessReviews, *questions: tuple[TokenCaller, str]) -> list[bool]:
    async def main() -> list[bool]:
        return [await reviews.may_list_pods(caller, namespace) for caller, namespace in questions]

    return asyncio.run(main())


def over_tls(
    setting: Setting, response: bytes, exchange: Callable[[AccessReviews], Awaitable[T]]
) -> tuple[T, list[Request]]:
    """Review by a server that asks for a client certificate, as the user of a kubeconfig."""

    async def responded(_: Request) -> AsyncIterator[bytes]:
        yield response

    async def main() -> tuple[T, list[Request]]:
        async with serving(responded, setting.certificates.asking_tls()) as server:
            config = write_kubeconfig(setting.folder / "config", server.url, cluster=setting.cluster, user=setting.user)
            credentials = load_credentials(config, None)
            nobody = ApiClient(credentials.without_login())
            try:
                return await exchange(AccessReviews(nobody, lambda: 0.0)), server.requests
            finally:
                await nobody.close()

    return asyncio.run(main())


def test_a_token_is_reviewed_with_that_token_and_without_kindreds_certificate(setting: Setting) -> None:
    certificates = setting.certificates
    setting.user = {
        "client-certificate": str(certificates.crt("alice")),
        "client-key": str(certificates.key("alice")),
        "token": "of-kindred",
    }
    allowed, (request,) = over_tls(setting, ALLOWED, lambda reviews: reviews.may_list_pods(ANN, "shop"))
    assert allowed
    assert (request.path, request.headers["authorization"], request.client) == (SELF, "Bearer ann", "")
    assert json.loads(request.body) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods", "namespace": "shop"}},
    }


def test_an_answer_is_kept_for_a_caller_and_a_namespace_and_no_longer() -> None:
    server = ReviewingServer({"ann": ("shop",), "bob": ()})
    reviews = server.reviews()
    assert reviews.known(ANN, "shop") is None
    questions = ((ANN, "shop"), (ANN, "bank"), (TokenCaller("bob"), "shop"))
    assert requested(reviews, *questions, *questions) == [True, False, False] * 2
    assert len(server.requested) == 3
    assert (reviews.known(ANN, "shop"), reviews.known(ANN, "bank")) == (True, False)
    server.now = REVIEW_SECONDS
    server.allowed = {"ann": (), "bob": ()}
    assert reviews.known(ANN, "shop") is None
    assert requested(reviews, (ANN, "shop")) == [False]


def test_no_more_answers_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_REVIEWS == 4096
    monkeypatch.setattr(access_reviews, "MAX_REVIEWS", 2)
    reviews = ReviewingServer({"ann": ("a", "b", "c")}).reviews()
    requested(reviews, *((ANN, namespace) for namespace in "abc"))
    assert [reviews.known(ANN, namespace) for namespace in "abc"] == [None, True, True]


def test_a_token_that_is_not_accepted_is_asked_about_once(setting: Setting) -> None:
    async def twice(reviews: AccessReviews) -> list[str]:
        messages = []
        for _ in range(2):
            with pytest.raises(UnknownCallerError) as caught:
                await reviews.may_list_pods(ANN, "shop")
            messages.append(str(caught.value))
        return messages

    rejection = response(b'{"kind":"Status","code":401,"reason":"Unauthorized"}', status="401 Unauthorized")
    messages, requests = over_tls(setting, rejection, twice)
    assert messages == ["the API server does not accept the caller's own token"] * 2
    assert {request.headers["authorization"] for request in requests} == {"Bearer ann"}
    assert len(requests) <= 2


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (response(b"{}", status="500 Internal Server Error"), "the API server could not be reached: "),
        (response(b'{"kind":"Status","code":403}', status="403 Forbidden"), "the API server could not be reached: "),
        (response(b'{"status":{"allowed":"yes"}}', status="201 Created"), "the API server sent no valid review"),
        (response(b"{}", status="201 Created"), "the API server sent no valid review"),
    ],
)
def test_without_a_clear_answer_nothing_is_known(setting: Setting, response: bytes, message: str) -> None:
    async def failing(reviews: AccessReviews) -> tuple[str, bool | None]:
        with pytest.raises(ReviewError) as caught:
            await reviews.may_list_pods(ANN, "shop")
        assert not isinstance(caught.value, UnknownCallerError)
        return str(caught.value), reviews.known(ANN, "shop")

    (stated, known), _ = over_tls(setting, response, failing)
    assert stated.startswith(message)
    assert known is None


def test_a_server_that_hangs_is_waited_for_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(ReviewingServer):
        async def post_as(self, token: str, path: str, body: bytes) -> bytes:  # noqa: ARG002  # it never answers
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(access_reviews, "_PATIENCE", 0.01)
    with pytest.raises(ReviewError, match=r"^the API server did not respond within 0\.01 s$"):
        requested(Hanging({}).reviews(), (ANN, "shop"))


def test_a_token_is_in_no_text() -> None:
    reviews = ReviewingServer({"s3cr3t": ()}).reviews()
    requested(reviews, (TokenCaller("s3cr3t"), "shop"))
    assert "s3cr3t" not in f"{TokenCaller('s3cr3t')!r} {vars(reviews)['_reviews']}"
