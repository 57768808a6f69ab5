"""uvicorn's HTTP/1.1 connection within limits: of the head, of the bytes and of the time, and of who may ask.

uvicorn itself waits for the rest of a request without a limit, takes headers of any size, and keeps responses that no
client reads.

Received bytes are parsed in pieces (unread.py), some in each round of the loop (reading_turns.py). A request that is
pipelined stays unread until the one before it has its response.
"""

import asyncio
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

import httptools

from app.server.connections import Connections, Refusal
from app.server.flow import GONE, Flow
from app.server.request_framing import FramingError, body_length, head_without_upgrade
from app.server.request_progress import RequestProgress
from app.server.tls.peer import CLIENT_NAMES, peer_names
from app.server.unread import Piece, Unread
from app.server.uvicorn_parts import Config, HttpToolsProtocol, RequestResponseCycle

_NEVER: Final = float("inf")


class Phase(Enum):
    """The state that a connection waits for, which gives its deadline a meaning."""

    IDLE = 0
    """For a request."""
    HEAD = 1
    """For the rest of a head."""
    BODY = 2
    """For the rest of a body."""
    ANSWERING = 3
    """For a response of Kindred."""
    TAKING = 4
    """For the client to read a response that was written."""
    CLOSING = 5
    """For the client to take the last answer."""


class LargeHeadError(Exception):
    """Ends the parsing of a request whose head is too large, or whose body has too much around it."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that `Connections.watch` ends when its deadline is over."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.cycle: RequestResponseCycle | None  # type: ignore[assignment]  # uvicorn's own is None at first, too
        self.phase = Phase.IDLE
        self.deadline = _NEVER
        """Time of the loop after which `expire` must be called."""
        self._state = server_state
        self._limits = server_state.limits
        self._stranger = False
        self._deaf = False
        self.flow: Flow
        self._unread = Unread()
        self._parsing = False
        self._waiting = False  # for its turn to read
        self._large = False  # whether LargeHeadError was raised, which the parser does not always pass on
        self._progress = RequestProgress(server_state.limits)
        self.http_version = ""
        """Of the request whose head was read last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for requests, from whom the port is for."""
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._state.beginning.discard(self)
        self.deadline = self.loop.time() + self._limits.idle_timeout
        certificate = transport.get_extra_info("peercert")
        names = peer_names(certificate) if certificate else ()
        if certificate:
            self.app_state = {**self.app_state, CLIENT_NAMES: names}
        allowed = self._state.client_names
        if allowed and allowed.isdisjoint(names):
            # The response to its first request says so: a client whose connection is closed before that gets no reason.
            self._deaf = self._stranger = True
            detail = f"its certificate is for {', '.join(names) or 'nobody'}, not for one of KINDRED_TLS_CLIENT_NAMES"
            self._state.refuse(Refusal.CLIENT_NAME, self.client, detail)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop all references back to this, so that it and the buffers of its TLS are freed at once.

        The collector would find cycles, but not among frozen objects (app/watch/bulk_load.py): the connections that
        were open at each sync would leak.
        """
        super().connection_lost(exc)
        self._deaf = True
        self._unread.clear()
        self.cycle = None
        self.transport = GONE
        self.flow = Flow(GONE)

    def data_received(self, data: bytes) -> None:
        """Read on; a client that breaks a limit gets a status, and its connection is closed."""
        if self._deaf:
            self._reject()
            return
        idle = self.phase is Phase.TAKING or self.phase is Phase.IDLE
        if idle and self._may_read_at_once() and self._progress.whole(data):
            self._parse(data)
            if not self._unread:  # or it asked for another protocol
                return
            data = b""
        self._unread.add(data)
        if self._waiting:
            self.flow.pause()
        else:
            self._read_on()

    def begin_request(self) -> None:
        """Begin to read a request, which has to be complete in time."""
        self.phase = Phase.HEAD
        self.deadline = self.loop.time() + self._limits.read_timeout
        self._progress.begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. Those after a body say nothing that is of use here, and only count."""
        if self.phase is Phase.HEAD:
            super().on_header(name, value)
        else:
            self._progress.add_trailer()

    def end_head(self) -> bool:
        """Go on to the body; return False if the head must be parsed again, without its `Upgrade`.

        Raises LargeHeadError and FramingError, which end the parsing.
        """
        if not self._progress.add_piece_to_head(len(self.headers)):
            self._end_parsing()
        if self.parser.should_upgrade():
            return False
        self.http_version = self.parser.get_http_version()
        self._progress.begin_body(body_length(self.http_version, self.headers))
        self.phase = Phase.BODY
        return True

    def on_body(self, body: bytes) -> None:
        """Take in a piece of a body."""
        self._progress.add_body(len(body))
        super().on_body(body)

    def hold_framing(self, size: int) -> None:
        """Take note of bytes around the chunks of a body."""

    def end_request(self) -> bool:
        """Wait for the response, which is written only after this; return False if the head must be parsed again.

        Raises LargeHeadError.
        """
        if self.phase is Phase.HEAD:
            return False
        if self._progress.chunked and not self._progress.body_fits_at_end():
            self._end_parsing()
        if self.cycle is not None and self.cycle.response_complete:
            self._wait_until_taken()
        else:
            self.phase = Phase.ANSWERING
            self.deadline = _NEVER
        return True

    def on_response_complete(self) -> None:
        """Wait for the client to read the response, and for the next request; uvicorn would set a timer here."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._close()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.phase is Phase.ANSWERING:
            self._wait_until_taken()
        self._go_on()

    def pause_writing(self) -> None:
        """Wait for a client that reads its response slowly."""
        super().pause_writing()
        if self.phase is Phase.ANSWERING:
            self.deadline = self.loop.time() + self._limits.read_timeout

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self.phase is Phase.ANSWERING:
            self.deadline = _NEVER
        self._go_on()

    def expire(self, now: float) -> None:
        """Apply the deadline, which has passed."""
        if self.phase is Phase.CLOSING or self.transport.is_closing():
            self.transport.abort()
        elif self.phase is Phase.IDLE:
            self._close()
        elif self.phase is Phase.TAKING and not self.transport.get_write_buffer_size():
            self.phase = Phase.IDLE
            self.deadline += self._limits.idle_timeout - self._limits.read_timeout
        elif self.phase in {Phase.TAKING, Phase.ANSWERING} or self.flow.write_paused:
            self._state.refuse(Refusal.ANSWER_NOT_TAKEN, self.client)
            self.transport.abort()
        elif self.pipeline:  # it is not read further, because an earlier response is not there
            self.deadline = now + self._limits.read_timeout
        else:
            self._refuse(Refusal.SLOW_REQUEST, HTTPStatus.REQUEST_TIMEOUT, "The request took too long to come.")

    def _wait_until_taken(self) -> None:
        self.phase = Phase.TAKING
        self.deadline = self.loop.time() + self._limits.read_timeout

    def _read_on(self) -> None:
        """Parse what is unread, as far as this round of the loop allows, and up to a request without a response."""
        unread, turns = self._unread, self._state.reading
        self._parsing = True
        while unread and self._may_parse():
            if turns.over:
                self._wait()
                break
            if self.phase is Phase.BODY or self.phase is Phase.HEAD or not (skipped := unread.skip_empty_lines()):
                self._parse(self._next_piece())
            else:
                turns.spend(0, skipped)
        self._parsing = False
        if self._deaf:
            unread.clear()
        elif unread:
            self.flow.pause()
        elif self.flow.held_back:
            self.flow.resume()

    def _go_on(self) -> None:
        """Read on in a later round, now that a response was written or taken."""
        if self._unread and not self._parsing and not self._waiting:
            self._wait()

    def _wait(self) -> None:
        self._waiting = True
        self._state.reading.wait(self._take_turn)

    def _take_turn(self) -> None:
        self._waiting = False
        if not self._deaf:
            self._read_on()

    def _may_parse(self) -> bool:
        if self._deaf or self.phase is Phase.ANSWERING:
            return False
        return self.phase is Phase.BODY or not self.flow.write_paused

    def _may_read_at_once(self) -> bool:
        return not (self._unread or self._waiting or self.flow.write_paused or self._state.reading.over)

    def _next_piece(self) -> Piece:
        if self.phase is Phase.BODY:
            return self._progress.piece_of_body(self._unread)
        return self._progress.piece_of_head(self._unread)

    def _parse(self, piece: Piece) -> None:
        """Parse a piece; a client that breaks a limit gets a status, and its connection is closed."""
        phase, progress = self.phase, self._progress
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._unread.put_back(piece[upgrade.args[0] :])
            self._ignore_upgrade()
        except httptools.HttpParserError:
            self._refuse_piece()
        if self._deaf:
            return
        self._state.reading.spend(progress.piece_framing, progress.piece_body)
        if self.phase is Phase.HEAD:
            if not progress.add_piece_to_head(len(self.headers)):
                self._refuse_head()
        elif phase is self.phase is Phase.BODY:
            self._count_body()

    def _ignore_upgrade(self) -> None:
        """Parse the head again without its `Upgrade`, for which the parser has skipped the body."""
        deadline = self.deadline
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it
        try:
            head = head_without_upgrade(method, self.url, version, self.headers)
            self._progress.begin_piece(len(head))
            self.parser.feed_data(head)
        except (FramingError, httptools.HttpParserError):
            self._refuse_piece()
        if self.phase is Phase.BODY:
            self.deadline = deadline

    def _count_body(self) -> None:
        """Count the framing of a body, which the parser skips or collects as a header."""
        self.hold_framing(self._progress.piece_framing)
        if not self._progress.add_piece_to_body(at_end=self._unread.at_end):
            self._refuse_head()
        elif self._progress.is_endless:
            self._refuse(Refusal.LARGE_BODY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")

    def _end_parsing(self) -> None:
        self._large = True
        raise LargeHeadError

    def _refuse_piece(self) -> None:
        if self._large:
            self._refuse_head()
        else:
            self._refuse(Refusal.MALFORMED, HTTPStatus.BAD_REQUEST, "Not HTTP/1.1.")

    def _refuse_head(self) -> None:
        framing = ", with what frames its body," if self.phase is Phase.BODY else ""
        text = f"The head of the request{framing} is larger than {self._limits.max_header_bytes} bytes."
        self._refuse(Refusal.LARGE_HEAD, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)

    def _refuse(self, reason: Refusal, status: HTTPStatus, text: str) -> None:
        self._state.refuse(reason, self.client)
        self._answer_and_close(status, text)

    def _reject(self) -> None:
        if self._stranger and self.phase is not Phase.CLOSING:
            self._answer_and_close(HTTPStatus.FORBIDDEN, "The client certificate is not one of those that may ask.")

    def _answer_and_close(self, status: HTTPStatus, text: str) -> None:
        """Reject a request that is not read further, unless a response is being written, which it would corrupt."""
        if self._may_answer():
            lines = (
                f"HTTP/1.1 {status.value} {status.phrase}",
                "content-type: text/plain; charset=utf-8",
                f"content-length: {len(text)}",
                "connection: close",
                *(f"{name.decode()}: {value.decode()}" for name, value in self._state.default_headers),
            )
            self.transport.write("\r\n".join((*lines, "", text)).encode())
        self._close()

    def _may_answer(self) -> bool:
        cycle = self.cycle
        if cycle is None:
            return True
        if cycle.response_complete:
            return self.phase is not Phase.BODY  # or it was the response to this very request
        # Its handler writes no more, and waits no more for the rest.
        cycle.disconnected = True
        cycle.message_event.set()
        return self.phase is Phase.BODY and not cycle.response_started

    def _close(self) -> None:
        """Close once all is written; at the deadline, or the client could hold on by not reading."""
        self._deaf = True
        self.phase = Phase.CLOSING
        self.deadline = self.loop.time() + self._limits.read_timeout
        self.transport.close()
