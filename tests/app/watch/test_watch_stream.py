"""Events from the bytes of a watch."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from app.objects.resources import RESOURCES
from app.watch.freshness import ResourceState
from app.watch.stream import (
    Bookmark,
    BrokenWatchError,
    GarbledWatchError,
    InStreamError,
    LoopShare,
    WatchEvent,
    bookmark_of,
    watch_events,
)
from core.objects.pod import Pod

ADDED = b'{"type":"ADDED","object":{"a":1}}\n'
MODIFIED = b'{"type":"MODIFIED","object":{"b":2}}\n'
ERROR = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'


class Reading:
    """Reads a stream of chunks, and keeps what came of it."""

    def __init__(self, *chunks: bytes) -> None:
        self.state = ResourceState(RESOURCES[Pod])
        self.events: list[tuple[str, bytes]] = []
        self.error: BrokenWatchError | None = None
        asyncio.run(self._read(chunks))

    async def _read(self, chunks: Sequence[bytes]) -> None:
        async def stream() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        try:
            async for event in watch_events(stream(), self.state, LoopShare()):
                self.events.append((event.type, bytes(event.object)))
        except BrokenWatchError as error:
            self.error = error


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_events_come_as_they_are_told_and_are_counted(size: int) -> None:
    text = ADDED + MODIFIED + b"\n" + ADDED
    reading = Reading(*(text[begin : begin + size] for begin in range(0, len(text), size)))
    assert reading.events == [("ADDED", b'{"a":1}'), ("MODIFIED", b'{"b":2}'), ("ADDED", b'{"a":1}')]
    assert reading.state.events == {"ADDED": 2, "MODIFIED": 1}
    assert reading.error is None


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        pytest.param(b"{\n", GarbledWatchError, "/api/v1/pods: not a watch event: malformed JSON", id="garbage"),
        pytest.param(b'{"type":"X","object":{}}\n', GarbledWatchError, "not a watch event: type: invalid", id="type"),
        pytest.param(ADDED[:-1], BrokenWatchError, "/api/v1/pods: the watch ended in the middle of a line", id="cut"),
        pytest.param(ERROR, InStreamError, "410 Expired: too old", id="error"),
    ],
)
def test_a_watch_breaks_behind_what_it_told_before(text: bytes, kind: type[BrokenWatchError], message: str) -> None:
    for chunks in ((ADDED + text,), (ADDED, text), (ADDED + text[:5], text[5:])):
        reading = Reading(*chunks)
        assert reading.events == [("ADDED", b'{"a":1}')]
        assert type(reading.error) is kind
        assert message in str(reading.error)


def test_an_error_event_carries_the_status_of_the_server_and_is_counted() -> None:
    reading = Reading(ERROR + ADDED)
    assert isinstance(reading.error, InStreamError)
    assert (reading.error.status.code, reading.error.status.reason) == (410, "Expired")
    assert (reading.events, reading.state.events) == ([], {"ERROR": 1})


def test_many_events_in_one_chunk_let_others_run_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.watch.stream._MAX_LENGTH", 0.0)
    ran = []

    async def other() -> None:
        while True:
            ran.append(True)
            await asyncio.sleep(0)

    async def read() -> int:
        async def stream() -> AsyncIterator[bytes]:
            yield 10 * ADDED

        running = asyncio.create_task(other())
        events = [event async for event in watch_events(stream(), ResourceState(RESOURCES[Pod]), LoopShare())]
        running.cancel()
        return len(events)

    assert asyncio.run(read()) == 10
    assert len(ran) >= 9


def test_a_bookmark_is_read_or_the_watch_is_garbled() -> None:
    good = WatchEvent("BOOKMARK", msgspec.Raw(b'{"metadata":{"resourceVersion":"7"}}'))
    assert bookmark_of(good) == Bookmark("7", initial_events_end=False)
    with pytest.raises(GarbledWatchError, match=r"bookmark: metadata\.resourceVersion: required"):
        bookmark_of(WatchEvent("BOOKMARK", msgspec.Raw(b"{}")))
