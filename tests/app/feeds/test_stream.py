"""Bytes to events and pages: lines, the envelopes of lists and watches, and turns on the event loop."""

import asyncio
import itertools
import json
import tracemalloc
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from app.feeds import stream as stream_module
from app.feeds.freshness import ResourceState
from app.feeds.stream import (
    FOLLOWING,
    LOADING,
    Bookmark,
    BrokenWatchError,
    GarbledWatchError,
    InStreamError,
    LineSplitter,
    LineTooLongError,
    LoopShare,
    RawEvent,
    WatchEvent,
    bookmark_of,
    decode_page,
    is_older,
    watch_events,
)
from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES, PodEvent
from core.events import Kind
from core.objects.node import Node
from core.objects.pod import Pod

LINES = [b'{"a": 1}', '{"b": "\u0085\u2028\u2029"}'.encode(), b"c\r\x0b\x0c\x1c", b"", b"d"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_only_line_feeds_end_lines_wherever_chunks_break(size: int) -> None:
    text = b"".join(line + b"\n" for line in LINES)
    splitter = LineSplitter()
    found = [line for begin in range(0, len(text), size) for line in splitter.feed(text[begin : begin + size])]
    assert found == LINES
    assert not splitter.unfinished


def test_a_line_that_is_too_long_is_refused_with_and_without_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.feeds.stream.MAX_LINE_BYTES", 10)
    splitter, other = LineSplitter(), LineSplitter()
    for _ in range(3):  # lines before it do not count
        assert splitter.feed(b"12345678\n12") == [b"12" * bool(_) + b"12345678"]
    splitter.feed(b"34567890")
    with pytest.raises(LineTooLongError, match="a line of more than 10 bytes"):
        splitter.feed(b"1")
    other.feed(b"123456")
    with pytest.raises(LineTooLongError):
        other.feed(b"78901\n")


def test_a_line_that_comes_byte_by_byte_takes_its_own_size_and_not_that_of_a_piece_each() -> None:
    splitter = LineSplitter()
    tracemalloc.start()
    try:
        for _ in range(50_000):
            splitter.feed(b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300_000
    assert splitter.feed(b"\n") == [b"x" * 50_000]


# Pages and bookmarks.


def test_an_empty_last_page_may_leave_out_what_it_has_not() -> None:
    for rest in (b"}", b',"continue":null},"items":null', b',"continue":""},"items":[]'):
        page = decode_page(b'{"metadata":{"resourceVersion":"7"%s}' % rest)
        assert (page.items, page.continue_token) == ([], "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "metadata.resourceVersion: required"),
        (b'{"metadata":{"resourceVersion":""}}', "metadata.resourceVersion: required"),
        (b'{"metadata":{"resourceVersion":"7"},"items":{}}', "items: expected array"),
        (b'{"metadata":', "malformed JSON"),
    ],
    ids=["no-metadata", "empty-version", "items-of-no-list", "truncated"],
)
def test_what_is_no_page_is_an_error(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_page(body)


@pytest.mark.parametrize(
    ("annotations", "ended"),
    [
        (b"null", False),
        (b'{"k8s.io/initial-events-end":"true"}', True),
        (b'{"k8s.io/initial-events-end":"false","x":"true"}', False),
    ],
)
def test_a_bookmark_says_how_far_the_watch_has_come(annotations: bytes, *, ended: bool) -> None:
    text = b'{"metadata":{"resourceVersion":"7","annotations":%s}}' % annotations
    assert bookmark_of(RawEvent("BOOKMARK", msgspec.Raw(text))) == Bookmark("7", initial_events_end=ended)


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


# Events.


ADDED = b'{"type":"ADDED","object":{"a":1}}\n'
MODIFIED = b'{"type":"MODIFIED","object":{"b":2}}\n'
ERROR = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'


def _object_of(event: WatchEvent) -> object:
    return bytes(event.object) if isinstance(event, RawEvent) else decode_pod(event.object)


class Reading:
    """Reads a stream of chunks, and keeps what came of it."""

    def __init__(self, *chunks: bytes, kind: Kind = Node) -> None:
        self.state = ResourceState(RESOURCES[kind])
        self.events: list[tuple[str, object]] = []
        self.error: BrokenWatchError | None = None
        asyncio.run(self._read(chunks))

    async def _read(self, chunks: Sequence[bytes]) -> None:
        async def stream() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        try:
            async for events in watch_events(stream(), self.state, LoopShare()):
                self.events.extend((event.type, _object_of(event)) for event in events)
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
        pytest.param(b"{\n", GarbledWatchError, "/api/v1/nodes: not a watch event: malformed JSON", id="garbage"),
        pytest.param(b'{"type":"X","object":{}}\n', GarbledWatchError, "not a watch event: type: invalid", id="type"),
        pytest.param(ADDED[:-1], BrokenWatchError, "/api/v1/nodes: the watch ended in the middle of a line", id="cut"),
        pytest.param(ERROR, InStreamError, "410 Expired: too old", id="error"),
    ],
)
def test_a_watch_breaks_behind_what_it_told_before(text: bytes, kind: type[BrokenWatchError], message: str) -> None:
    for chunks in ((ADDED + text,), (ADDED, text), (ADDED + text[:5], text[5:])):
        reading = Reading(*chunks)
        assert reading.events == [("ADDED", b'{"a":1}')]
        assert type(reading.error) is kind
        assert message in str(reading.error)
    if isinstance(reading.error, InStreamError):
        assert (reading.error.status.code, reading.error.status.reason) == (410, "Expired")
        assert reading.state.events == {"ADDED": 1, "ERROR": 1}


def line_of(kind: str, name: str, **metadata: object) -> bytes:
    """Return the line of an event of a pod."""
    return json.dumps({"type": kind, "object": {"metadata": {"name": name, **metadata}}}).encode() + b"\n"


@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_pods_come_decoded_and_are_counted(size: int) -> None:
    text = b"".join(line_of("ADDED", f"p{number}") for number in range(70)) + line_of("DELETED", "p3")
    reading = Reading(*(text[begin : begin + size] for begin in range(0, len(text), size)), kind=Pod)
    expected = [*(("ADDED", f"p{number}") for number in range(70)), ("DELETED", "p3")]
    assert reading.events == [
        (kind, decode_pod(json.dumps({"metadata": {"name": name}}).encode())) for kind, name in expected
    ]
    assert reading.state.events == {"ADDED": 70, "DELETED": 1}
    assert reading.state.read_objects == 71
    assert 70 * 50 < reading.state.read_bytes <= len(text)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n', id="bookmark"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":3}}}\n', id="pod-that-cannot-be-read"),
        pytest.param(b'{"type":"ADDED","object":' + 5000 * b"[" + 5000 * b"]" + b"}\n", id="nested-too-deeply"),
        pytest.param(line_of("ADDED", "q", selfLink="x" * 1024 * 1024), id="large"),
        pytest.param(b"\n", id="empty-line"),
    ],
)
def test_lines_beside_pods_come_as_those_of_any_resource(other: bytes) -> None:
    text = line_of("ADDED", "p") + other + line_of("MODIFIED", "p")
    pods, nodes = Reading(text, kind=Pod), Reading(text)
    assert (pods.events, pods.state.events, type(pods.error)) == (nodes.events, nodes.state.events, type(nodes.error))


def test_pods_of_a_relist_come_as_bytes() -> None:
    async def read(state: ResourceState) -> list[type]:
        async def stream() -> AsyncIterator[bytes]:
            yield line_of("ADDED", "p")

        return [type(event) async for some in watch_events(stream(), state, LoopShare()) for event in some]

    state = ResourceState(RESOURCES[Pod])
    state.complete(0.0)
    assert asyncio.run(read(state)) == [PodEvent]
    state.listed = 1
    assert asyncio.run(read(state)) == [RawEvent]


def test_an_event_over_two_lines_is_none_for_pods_either() -> None:
    reading = Reading(line_of("ADDED", "p").replace(b', "object"', b',\n"object"'), kind=Pod)
    assert isinstance(reading.error, GarbledWatchError)
    assert reading.events == []


def test_many_events_in_one_chunk_let_others_run_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.feeds.stream.LOADING", 0.0)
    monkeypatch.setattr("app.feeds.stream._LINES_AT_ONCE", 1)
    ran = []

    async def other() -> None:
        while True:
            ran.append(True)
            await asyncio.sleep(0)

    async def read() -> int:
        async def stream() -> AsyncIterator[bytes]:
            yield 10 * ADDED

        running = asyncio.create_task(other())
        parts = [[*events] async for events in watch_events(stream(), ResourceState(RESOURCES[Pod]), LoopShare())]
        running.cancel()
        return sum(map(len, parts))

    assert asyncio.run(read()) == 10
    assert len(ran) >= 9


def test_events_that_were_not_read_come_with_the_next_ones() -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield ADDED + MODIFIED + ADDED
        yield MODIFIED

    async def read() -> list[str]:
        events = watch_events(stream(), ResourceState(RESOURCES[Pod]), LoopShare())
        first = [event.type for event in itertools.islice(await anext(events), 1)]
        return [*first, *[event.type async for some in events for event in some]]

    assert asyncio.run(read()) == ["ADDED", "MODIFIED", "ADDED", "MODIFIED"]


def test_a_bookmark_is_read_or_the_watch_is_garbled() -> None:
    good = RawEvent("BOOKMARK", msgspec.Raw(b'{"metadata":{"resourceVersion":"7"}}'))
    assert bookmark_of(good) == Bookmark("7", initial_events_end=False)
    with pytest.raises(GarbledWatchError, match=r"bookmark: metadata\.resourceVersion: required"):
        bookmark_of(RawEvent("BOOKMARK", msgspec.Raw(b"{}")))


# Turns on the event loop.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock as a list of one."""
    now = [100.0]
    monkeypatch.setattr(stream_module, "perf_counter", lambda: now[0])
    return now


def test_a_turn_is_over_after_a_few_milliseconds(clock: list[float]) -> None:
    async def take_turns() -> None:
        turns = LoopShare()
        assert turns.over  # nobody knows how long others have waited
        await turns.checkpoint()
        for milliseconds, over in ((0.0, False), (4.9, False), (5.1, True), (60.0, True)):
            clock[0] = 100.0 + milliseconds / 1000
            assert turns.over is over
        await turns.checkpoint()
        assert not turns.over

    asyncio.run(take_turns())


def test_the_others_run_once_before_the_next_turn_begins(clock: list[float]) -> None:
    seen = []

    async def other() -> None:
        for step in range(3):
            seen.append(step)
            clock[0] += 1.0
            await asyncio.sleep(0)

    async def take_turns() -> None:
        turns = LoopShare()
        running = asyncio.create_task(other())
        for step in range(3):
            assert seen == list(range(step))
            await turns.checkpoint()
            assert not turns.over  # what the others took is not of this turn
        await running

    asyncio.run(take_turns())


@pytest.mark.parametrize(("others", "lasts"), [(0.0, FOLLOWING), (0.0008, 0.0032), (0.06, 0.005)])
def test_a_turn_that_follows_is_four_times_that_of_the_others_within_bounds(
    clock: list[float], others: float, lasts: float
) -> None:
    async def other() -> None:
        clock[0] += others

    async def take_turn() -> None:
        turns = LoopShare()
        turns.shortest = FOLLOWING
        running = asyncio.create_task(other())
        await turns.checkpoint()
        began = clock[0]
        for share, over in ((0.9, False), (1.1, True)):
            clock[0] = began + share * lasts
            assert turns.over is over
        await running

    asyncio.run(take_turn())


def test_bytes_that_were_waited_for_begin_a_turn_and_cut_no_longer_one_short(clock: list[float]) -> None:
    async def take_turns() -> None:
        turns = LoopShare()
        turns.shortest = FOLLOWING
        for waited, over in ((0.00001, True), (1.0, False)):
            turns.arrived(clock[0] - waited)
            assert turns.over is over
        for share, over in ((0.9, False), (1.1, True)):
            clock[0] = 100.0 + share * FOLLOWING
            assert turns.over is over
        running = asyncio.create_task(other())
        await turns.checkpoint()
        turns.arrived(clock[0] - 0.001)
        clock[0] += 0.0049
        assert not turns.over
        await running

    async def other() -> None:
        clock[0] += 0.06

    asyncio.run(take_turns())


def test_bytes_that_took_long_to_read_though_they_were_there_lengthen_no_turn(clock: list[float]) -> None:
    turns = LoopShare()
    asyncio.run(turns.checkpoint())
    for _ in range(2):  # of a list, which others wait for
        clock[0] += 0.45 * LOADING
        left = clock[0]
        clock[0] += 0.04 * LOADING
        turns.arrived(left)
    clock[0] += 0.1 * LOADING
    assert turns.over


def test_an_event_that_arrives_alone_takes_no_round_of_the_loop(clock: list[float]) -> None:
    class Counted(LoopShare):
        rounds = 0

        async def checkpoint(self) -> None:
            self.rounds += 1

    async def read() -> int:
        async def stream() -> AsyncIterator[bytes]:
            for _ in range(3):
                clock[0] += 1.0
                yield ADDED

        turns = Counted()
        async for events in watch_events(stream(), ResourceState(RESOURCES[Pod]), turns):
            assert all(event.type == "ADDED" for event in events)
        return turns.rounds

    assert asyncio.run(read()) == 0
