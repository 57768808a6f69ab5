"""A request to a verb that arrives whole: its response is written in the same step, or it goes by ASGI."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from app.objects.decode import Body
from app.server.connections import Connections
from app.server.port import Connection
from app.settings.limits import DEFAULTS
from app.verbs.admission import Admission, ServingState
from app.verbs.request import VerbResponse
from tests.app.server.conversations import request
from tests.app.verbs.receptions import app_of, reception

EMPTY: Final = b'{"NodeNameToMetaVictims":{}}'
WHOLE: Final = request("/preempt", b"{}")
LARGE: Final = b"a" * (256 * 1024 + 1)


class Written(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.text = b""
        self.closed = False
        self.reads = True

    def write(self, data: Any) -> None:  # noqa: ANN401  # any bytes
        self.text += bytes(data)

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Port:
    """A port with one verb, and its connections without sockets."""

    def __init__(
        self,
        verb: Callable[[Body], VerbResponse | Awaitable[VerbResponse]] = lambda _: VerbResponse(EMPTY),
        max_bytes: int = 1000,
    ) -> None:
        self.admission = Admission(deadline=60.0, queue_limit=10, max_bytes=max_bytes, clock=time.monotonic)
        self.state = ServingState()
        self.app = app_of(verb, reception(admission=self.admission, state=self.state))
        self._connections = Connections("extender", DEFAULTS)
        self._uvicorn = SimpleNamespace(default_headers=[(b"date", b"today")], tasks=set())

    def connect(self) -> tuple[Connection, Written]:
        """Make a connection, and give what is written to its client."""
        made, written = (
            Connection(self.app, self._connections, config=None, server_state=self._uvicorn, app_state={}),
            Written(),
        )
        made.connection_made(written)
        return made, written

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return (self.admission.in_flight, self.admission.waiting, self.admission.buffered_bytes) == (0, 0, 0)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 60.0))


async def rounds() -> None:
    """Let the loop do all that it has to do."""
    for _ in range(10):
        await asyncio.sleep(0)


async def when(ready: asyncio.Event, _: Body) -> VerbResponse:
    await ready.wait()
    return VerbResponse(EMPTY)


@pytest.mark.parametrize("times", [1, 2], ids=["an-unknown-head", "a-known-head"])
def test_the_response_is_written_in_the_step_that_reads_the_request(times: int) -> None:
    async def story() -> None:
        connection, written = Port().connect()
        for _ in range(times):
            await rounds()
            written.text = b""
            connection.data_received(WHOLE)
        head = b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-type: application/json\r\ncontent-length: 28\r\n\r\n"
        assert written.text == head + EMPTY

    run(story())


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([request("/preempt", b"{}", "Kindred-Cache: off")], id="an-option"),
        pytest.param([WHOLE[:-1], WHOLE[-1:]], id="in-pieces"),
    ],
)
def test_a_request_of_another_form_gets_the_same_response(pieces: list[bytes]) -> None:
    async def story() -> None:
        port = Port()
        connection, written = port.connect()
        for piece in pieces:
            connection.data_received(piece)
        await rounds()
        assert written.text.endswith(b"\r\n\r\n" + EMPTY)
        assert port.is_idle

    run(story())


@pytest.mark.parametrize(("option", "is_dry"), [(b"true", True), (b"false", False)])
def test_options_are_read(option: bytes, *, is_dry: bool) -> None:
    async def story() -> None:
        found = []
        port = Port()
        endpoint = port.app.verbs["/preempt"]

        def verb(incoming: Any) -> VerbResponse:  # noqa: ANN401  # a Request
            found.append(incoming.dry_run)
            return VerbResponse(EMPTY)

        endpoint.verb = endpoint.verb._replace(run=verb)  # type: ignore[misc]  # only here
        connection, _ = port.connect()
        for _ in range(2):
            connection.data_received(request("/preempt", b"{}", f"Kindred-Dry-Run: {option.decode()}"))
            await rounds()
        assert found == [is_dry, is_dry]

    run(story())


def test_one_request_a_round_has_its_turn_and_the_others_wait() -> None:
    async def story() -> None:
        port = Port()
        clients = [port.connect() for _ in range(3)]
        for connection, _ in clients:
            connection.data_received(WHOLE)
        assert [bool(written.text) for _, written in clients] == [True, False, False]
        assert port.admission.waiting == 2
        await rounds()
        assert all(written.text.endswith(EMPTY) for _, written in clients)
        assert port.is_idle

    run(story())


def test_of_two_requests_in_one_piece_the_second_has_its_turn_in_another_round() -> None:
    async def story() -> None:
        connection, written = Port().connect()
        connection.data_received(WHOLE * 2)
        assert written.text.count(EMPTY) == 1
        await rounds()
        assert written.text.count(EMPTY) == 2

    run(story())


@pytest.mark.parametrize("options", [(), ("Kindred-Cache: off",)], ids=["at-once", "by-asgi"])
def test_no_more_is_read_until_the_requests_that_have_arrived_are_answered(options: tuple[str, ...]) -> None:
    async def story() -> None:
        connection, written = Port().connect()
        connection.data_received(request("/preempt", b"{}", *options) * 3)
        assert not written.reads
        await rounds()
        assert written.text.count(EMPTY) == 3
        assert written.reads

    run(story())


def test_a_request_whose_state_cannot_be_judged_gets_a_response() -> None:
    async def story() -> None:
        port = Port()
        connection, written = port.connect()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(port.state, "rejection", lambda: 1 / 0)
            connection.data_received(WHOLE)
        assert b"internal error: ZeroDivisionError" in written.text
        connection.data_received(WHOLE)
        await rounds()
        assert written.text.endswith(EMPTY)

    run(story())


def test_a_request_beyond_the_bytes_of_all_requests_is_shed() -> None:
    async def story() -> None:
        connection, written = Port(max_bytes=1).connect()
        connection.data_received(WHOLE)
        await rounds()
        assert b"kindred-shed: bytes\r\n" in written.text

    run(story())


def test_a_response_that_comes_later_counts_until_then() -> None:
    async def story() -> None:
        ready = asyncio.Event()
        port = Port(partial(when, ready))
        connection, written = port.connect()
        connection.data_received(WHOLE + WHOLE)
        await rounds()
        assert (written.text, port.admission.in_flight, port.admission.buffered_bytes) == (b"", 1, 2)
        ready.set()
        await rounds()
        assert written.text.count(EMPTY) == 2
        assert port.is_idle

    run(story())


def test_a_large_response_is_written_as_the_client_reads_it() -> None:
    async def story() -> None:
        port = Port(lambda _: VerbResponse(LARGE))
        connection, written = port.connect()
        connection.pause_writing()
        connection.resume_writing()
        connection.data_received(WHOLE)
        assert written.text == b""
        await rounds()
        assert written.text.endswith(b"\r\n\r\n" + LARGE)
        assert port.is_idle

    run(story())


def test_a_replica_that_drains_closes_the_connection_behind_the_response() -> None:
    async def story() -> None:
        port = Port()
        connection, written = port.connect()
        port.state.draining = True
        connection.data_received(WHOLE)
        assert written.text.endswith(b"connection: close\r\n\r\n" + EMPTY)
        assert written.closed

    run(story())


def test_a_client_that_leaves_before_its_response_leaves_nothing_behind() -> None:
    async def story() -> None:
        ready = asyncio.Event()
        port = Port(partial(when, ready))
        connection, written = port.connect()
        connection.data_received(WHOLE)
        await rounds()
        connection.connection_lost(None)
        ready.set()
        await rounds()
        assert written.text == b""
        assert port.is_idle

    run(story())
