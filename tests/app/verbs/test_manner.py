"""How a request wants to be answered, by its headers."""

import pytest

from app.verbs.endpoint import ORDINARY, Header, Manner, manner_of


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param([], ORDINARY, id="none"),
        pytest.param([(b"host", b"a"), (b"kindredly", b"off")], ORDINARY, id="others"),
        pytest.param([(b"kindred-cache", b"off")], Manner(cached=False), id="cache-off"),
        pytest.param([(b"kindred-cache", b"on")], Manner(), id="cache-on"),
        pytest.param([(b"kindred-dry-run", b"true")], Manner(dry_run=True), id="dry-run"),
        pytest.param([(b"kindred-dry-run", b"")], Manner(dry_run=True), id="dry-run-of-no-value"),
        pytest.param([(b"kindred-dry-run", b"\xff")], Manner(dry_run=True), id="dry-run-of-any-value"),
        pytest.param([(b"kindred-dry-run", b" False ")], Manner(), id="no-dry-run"),
        pytest.param(
            [(b"a", b"b"), (b"kindred-dry-run", b"1"), (b"kindred-cache", b"off")],
            Manner(cached=False, dry_run=True),
            id="both",
        ),
    ],
)
def test_what_the_headers_say(headers: list[Header], expected: Manner) -> None:
    assert manner_of(headers) == expected
