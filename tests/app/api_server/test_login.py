"""Logins that the configuration or a file holds."""

from pathlib import Path

import pytest

from app.api_server.credential_errors import ConfigurationError, CredentialsError
from app.api_server.login import FixedLogin, TokenFile, basic, bearer


def token_file(path: Path) -> TokenFile:
    return TokenFile(str(path), "here")


def test_a_bearer_token_is_a_header() -> None:
    assert bearer("abc.def").authorization == "Bearer abc.def"


def test_a_name_and_a_password_are_a_header() -> None:
    assert basic("ann", "ünder:score").authorization == "Basic YW5uOsO8bmRlcjpzY29yZQ=="


@pytest.mark.parametrize(
    "token", ["a\nb", "a\rHost: b", "ä", "a b", "\x00"], ids=["line", "header", "letter", "blank", "control"]
)
def test_what_no_header_can_hold_is_no_token_and_is_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match=r"^not a token$"):
        bearer(token)


def test_the_token_of_a_file_is_read_anew_each_time_without_blanks_around(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    assert token_file(path).configured().authorization == "Bearer one"
    path.write_text(" two \n\n")
    assert token_file(path).get().authorization == "Bearer two"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(None, "No such file or directory", id="missing"),
        pytest.param(b"\n", "empty", id="empty"),
        pytest.param(b"\xff\xfe", "not a token", id="binary"),
        pytest.param(b"<html>\nlogin", "not a token", id="lines"),
    ],
)
def test_a_token_file_that_cannot_be_used_is_fatal_at_first_and_passing_later(
    tmp_path: Path, text: bytes | None, problem: str
) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_bytes(text)
    expected = f"here: token file {path}: {problem}"
    with pytest.raises(ConfigurationError) as fatal:
        token_file(path).configured()
    with pytest.raises(CredentialsError) as passing:
        token_file(path).get()
    assert [expected, expected] == [str(fatal.value), str(passing.value)]


def test_a_token_file_is_due_after_a_minute(tmp_path: Path) -> None:
    source = token_file(tmp_path / "token")
    assert not source.is_due(bearer("x"), 59.9)
    assert source.is_due(bearer("x"), 60.0)


def test_a_login_of_the_configuration_is_never_due() -> None:
    source = FixedLogin(bearer("x"))
    assert source.configured() == source.get() == bearer("x")
    assert not source.is_due(bearer("x"), 1e9)
