"""Whose request it is: what the header with a caller's own token says."""

import pytest
from fastapi import HTTPException
from starlette.datastructures import Headers

from app.admin.access import caller_of
from app.api_server.access_reviews import TokenCaller


def headers(*values: bytes) -> Headers:
    return Headers(raw=[(b"kindred-caller-token", value) for value in values])


@pytest.mark.parametrize(
    ("given", "caller"), [((), None), ((b" t0ken ",), TokenCaller("t0ken")), ((b"",), None), ((b" ",), None)]
)
def test_the_caller_is_the_bearer_of_the_token(given: tuple[bytes, ...], caller: TokenCaller | None) -> None:
    assert caller_of(headers(*given)) == caller


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        pytest.param((b"a", b"b"), "given 2 times", id="two"),
        pytest.param((b"two words",), "not a token", id="words"),
        pytest.param((b"\xff",), "not a token", id="not-ascii"),
    ],
)
def test_a_header_that_has_no_token_is_refused(given: tuple[bytes, ...], detail: str) -> None:
    with pytest.raises(HTTPException) as caught:
        caller_of(headers(*given))
    assert (caught.value.status_code, caught.value.detail) == (400, f"Kindred-Caller-Token: {detail}")
