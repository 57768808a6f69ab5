"""Whether hiding names has anything to hide, and leaves an admin."""

import pytest

from app.commands.doctor.access_checks import access_findings
from app.settings import Settings

REVIEW = {"explain_access": "review"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"admin": "127.0.0.1:0"}, []),
        ({"admin": "127.0.0.1:0", "admin_read_token_file": "r"}, ["info: all: callers with the read token"]),
        ({"admin": "127.0.0.1:0", "admin_read_token_file": "r", "admin_token_file": "t", **REVIEW}, []),
        ({"admin": "127.0.0.1:0", **REVIEW}, ["warning: review, but there is no admin: no caller"]),
        ({"admin_token_file": "t", **REVIEW}, ["warning: review, but there is no admin port"]),
    ],
)
def test_what_has_no_effect_is_found(settings: dict[str, object], expected: list[str]) -> None:
    found = [f"{each.severity.value}: {each.message}" for each in access_findings(Settings.model_validate(settings))]
    assert len(found) == len(expected)
    for message, begin in zip(found, expected, strict=True):
        assert message.startswith(begin)
