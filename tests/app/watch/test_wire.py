"""The envelopes of lists and watches."""

import tracemalloc

import msgspec
import pytest

from app.objects.decode import DecodeError
from app.watch.stream import Bookmark, decode_bookmark, decode_page, is_older


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"metadata":{"resourceVersion":"7"}}', id="absent"),
        pytest.param(b'{"metadata":{"resourceVersion":"7","continue":null},"items":null}', id="null"),
        pytest.param(b'{"metadata":{"resourceVersion":"7","continue":""},"items":[]}', id="empty"),
    ],
)
def test_an_empty_last_page_may_leave_out_what_it_has_not(body: bytes) -> None:
    page = decode_page(body)
    assert (page.items, page.continue_token) == ([], "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"{}", "metadata.resourceVersion: required", id="no-metadata"),
        pytest.param(b'{"metadata":{}}', "metadata.resourceVersion: required", id="no-version"),
        pytest.param(b'{"metadata":{"resourceVersion":""}}', "metadata.resourceVersion: required", id="empty-version"),
        pytest.param(
            b'{"metadata":{"resourceVersion":"7"},"items":{}}', "items: expected array", id="items-of-no-list"
        ),
        pytest.param(b'{"metadata":', "malformed JSON", id="truncated"),
        pytest.param(b"", "malformed JSON", id="nothing"),
    ],
)
def test_what_is_no_page_is_an_error(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_page(body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"metadata":{"resourceVersion":"7"}}', Bookmark("7", initial_events_end=False), id="plain"),
        pytest.param(
            b'{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}',
            Bookmark("7", initial_events_end=True),
            id="end-of-initial-events",
        ),
        pytest.param(
            b'{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"false","x":"true"}}}',
            Bookmark("7", initial_events_end=False),
            id="other-annotations",
        ),
        pytest.param(
            b'{"metadata":{"resourceVersion":"7","annotations":null}}',
            Bookmark("7", initial_events_end=False),
            id="no-annotations",
        ),
    ],
)
def test_a_bookmark_says_how_far_the_watch_has_come(text: bytes, expected: Bookmark) -> None:
    assert decode_bookmark(msgspec.Raw(text)) == expected


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [
        pytest.param("7", "8", True, id="of-a-length"),
        pytest.param("9", "10", True, id="shorter"),
        pytest.param("10", "9", False, id="longer"),
        pytest.param("7", "7", False, id="equal"),
        pytest.param("0", "7", False, id="zero-is-no-version"),
        pytest.param("07", "8", False, id="leading-zero"),
        pytest.param("7", "a8", False, id="of-another-form"),
    ],
)
def test_versions_are_ordered_as_numbers(version: str, other: str, expected: bool) -> None:  # noqa: FBT001  # a table
    assert is_older(version, other) is expected


def test_a_page_of_very_many_tiny_items_is_refused_without_being_decoded() -> None:
    body = b'{"metadata":{"resourceVersion":"1"},"items":[' + b"{}," * 6_000_000 + b"{}]}"
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="with too many elements"):
            decode_page(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1024 * 1024
