"""Whose request it is: what the headers say, and whose word for it counts."""

import pytest
from fastapi import HTTPException
from starlette.datastructures import Headers

from app.admin.caller import caller_of
from app.api_server.access_reviews import Caller, ProxiedCaller, TokenCaller

BOB = [("X-Remote-User", "bob"), ("X-Remote-Group", "dev"), ("X-Remote-Group", "ops"), ("X-Remote-Uid", "7")]


def headers(*pairs: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.lower().encode(), value.encode()) for name, value in pairs])


@pytest.mark.parametrize(
    ("given", "is_proxied", "caller"),
    [
        ([], False, None),
        ([], True, None),
        ([("Kindred-Caller-Token", " t0ken ")], False, TokenCaller("t0ken")),
        ([("Kindred-Caller-Token", "")], False, None),
        (BOB, False, None),
        (BOB, True, ProxiedCaller("bob", "7", ("dev", "ops"))),
        ([*BOB, ("Kindred-Caller-Token", "t0ken")], True, ProxiedCaller("bob", "7", ("dev", "ops"))),
        ([("X-Remote-Group", "dev"), ("Kindred-Caller-Token", "t0ken")], True, TokenCaller("t0ken")),
        ([("X-Remote-User", "jürgen")], True, ProxiedCaller("jürgen")),
        (
            [
                ("X-Remote-User", "b"),
                ("X-Remote-Extra-Acme.com%2fScopes", "x"),
                ("X-Remote-Extra-acme.com%2Fscopes", "y"),
            ],
            True,
            ProxiedCaller("b", extra=(("acme.com/scopes", ("x", "y")),)),
        ),
    ],
)
def test_the_caller_is_who_the_headers_say_that_count(
    given: list[tuple[str, str]], caller: Caller | None, *, is_proxied: bool
) -> None:
    assert caller_of(headers(*given), is_proxied=is_proxied) == caller


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ([("Kindred-Caller-Token", "a"), ("Kindred-Caller-Token", "b")], "Kindred-Caller-Token: given 2 times"),
        ([("Kindred-Caller-Token", "two words")], "Kindred-Caller-Token: not a token"),
        ([("X-Remote-User", "root"), ("X-Remote-User", "bob")], "X-Remote-User: given 2 times"),
        ([("X-Remote-User", "bob"), ("X-Remote-Uid", "1"), ("X-Remote-Uid", "2")], "X-Remote-Uid: given 2 times"),
    ],
)
def test_headers_that_say_two_things_are_refused(given: list[tuple[str, str]], detail: str) -> None:
    with pytest.raises(HTTPException) as caught:
        caller_of(headers(*given), is_proxied=True)
    assert (caught.value.status_code, caught.value.detail) == (400, detail)


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(HTTPException) as caught:
        caller_of(Headers(raw=[(b"x-remote-user", b"\xff")]), is_proxied=True)
    assert caught.value.detail == "X-Remote-User: not UTF-8"
