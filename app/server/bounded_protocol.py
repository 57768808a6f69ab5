"""uvicorn's HTTP/1.1 connection with limits on the size of head and body, on time, and on the allowed clients.

uvicorn itself waits for the rest of a request without a limit, accepts headers of any size, and keeps responses that no
client reads.

Received bytes are parsed in pieces (unread.py), and only some in each round of the loop (reading_turns.py). A pipelined
request stays unread until the request before it has its response.
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
from app.server.tls.peer import peer_names
from app.server.unread import Piece, Unread
from app.server.uvicorn_parts import Config, HttpToolsProtocol, RequestResponseCycle

_NEVER: Final = float("inf")


class Phase(Enum):
    """The event that a connection waits for until its deadline."""

    IDLE = 0
    """A request."""
    HEAD = 1
    """The rest of a head."""
    BODY = 2
    """The rest of a body."""
    ANSWERING = 3
    """Kindred's response."""
    TAKING = 4
    """The client must read a written response."""
    CLOSING = 5
    """The client must read the last response."""


class LargeHeadError(Exception):
    """Ends the parsing of a request whose head is too large, or whose body has too much framing."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that `Connections.watch` ends after its deadline."""

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
        """Time of the event loop's clock after which `expire` must be called."""
        self._state = server_state
        self._limits = server_state.limits
        self._stranger = False
        self._deaf = False
        self.flow: Flow
        self._unread = Unread()
        self._parsing = False
        self._waiting = False  # for its turn to read
        self._large = False  # whether LargeHeadError was raised; the parser does not always pass it on
        self._progress = RequestProgress(server_state.limits)
        self.http_version = ""
        """HTTP version of the request whose head was read last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for requests, from the clients that the port allows."""
        super().connection_made(transport)
        self.flow = Flow(transport)
        self._state.beginning.discard(self)
        self.deadline = self.loop.time() + self._limits.idle_timeout
        certificate = transport.get_extra_info("peercert")
        names = peer_names(certificate) if certificate else ()
        allowed = self._state.client_names
        if allowed and allowed.isdisjoint(names):
            # The response to the first request has the reason. A client would get none if the connection closed now.
            self._deaf = self._stranger = True
            detail = f"its certificate is for {', '.join(names) or 'nobody'}, not for one of KINDRED_TLS_CLIENT_NAMES"
            self._state.refuse(Refusal.CLIENT_NAME, self.client, detail)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop all references to this object, so that it and its TLS buffers are freed at once.

        The garbage collector finds cycles, but not among frozen objects (app/watch/bulk_load.py). So connections that
        were open during a sync would leak.
        """
        super().connection_lost(exc)
        self._deaf = True
        self._unread.clear()
        self.cycle = None
        self.transport = GONE
        self.flow = Flow(GONE)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes. A client that exceeds a limit gets an error status, and its connection is closed."""
        if self._deaf:
            self._reject()
            return
        idle = self.phase is Phase.TAKING or self.phase is Phase.IDLE
        if idle and self._may_read_at_once() and self._progress.whole(data):
            self._parse(data)
            if not self._unread:  # bytes are left only if the client requested another protocol
                return
            data = b""
        self._unread.add(data)
        if self._waiting:
            self.flow.pause()
        else:
            self._read_on()

    def begin_request(self) -> None:
        """Begin to read a request, and set the deadline for its end."""
        self.phase = Phase.HEAD
        self.deadline = self.loop.time() + self._limits.read_timeout
        self._progress.begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. Trailers after a body are only counted."""
        if self.phase is Phase.HEAD:
            super().on_header(name, value)
        else:
            self._progress.add_trailer()

    def end_head(self) -> bool:
        """Begin to read the body. Return False if the head must be parsed again, without its `Upgrade`.

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
        """Add a piece of a body."""
        self._progress.add_body(len(body))
        super().on_body(body)

    def hold_framing(self, size: int) -> None:
        """Count the bytes around the chunks of a body."""

    def end_request(self) -> bool:
        """Begin to wait for the response, which is written later. Return False if the head must be parsed again.

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
        """Wait for the client to read the response, and for the next request. uvicorn would set a timer here."""
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
        """Continue after the client has read."""
        super().resume_writing()
        if self.phase is Phase.ANSWERING:
            self.deadline = _NEVER
        self._go_on()

    def expire(self, now: float) -> None:
        """Apply the deadline that has passed."""
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
        elif self.pipeline:  # pipelined: unread until the earlier response is written
            self.deadline = now + self._limits.read_timeout
        else:
            self._refuse(Refusal.SLOW_REQUEST, HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")

    def _wait_until_taken(self) -> None:
        self.phase = Phase.TAKING
        self.deadline = self.loop.time() + self._limits.read_timeout

    def _read_on(self) -> None:
        """Parse unread bytes, as far as this round of the loop allows, and up to a request without a response."""
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
        """Continue to read in a later round, after a response was written or read."""
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
        """Parse a piece. A client that exceeds a limit gets an error status, and its connection is closed."""
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
        """Parse the head again without its `Upgrade`, because the `Upgrade` made the parser skip the body."""
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
        """Count the framing of a body, which the parser skips or reports as a header."""
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
        framing = ", with the framing of its body," if self.phase is Phase.BODY else ""
        text = f"The head of the request{framing} is larger than {self._limits.max_header_bytes} bytes."
        self._refuse(Refusal.LARGE_HEAD, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)

    def _refuse(self, reason: Refusal, status: HTTPStatus, text: str) -> None:
        self._state.refuse(reason, self.client)
        self._answer_and_close(status, text)

    def _reject(self) -> None:
        if self._stranger and self.phase is not Phase.CLOSING:
            self._answer_and_close(HTTPStatus.FORBIDDEN, "The client certificate is not allowed.")

    def _answer_and_close(self, status: HTTPStatus, text: str) -> None:
        """Reject a request without reading further. Not while a response is being written, which this would corrupt."""
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
            return self.phase is not Phase.BODY  # else this request has its response already
        # The handler of the request then neither writes nor waits for the rest of the body.
        cycle.disconnected = True
        cycle.message_event.set()
        return self.phase is Phase.BODY and not cycle.response_started

    def _close(self) -> None:
        """Close after the last write, at the latest at the deadline. Else a client that never reads would stay."""
        self._deaf = True
        self.phase = Phase.CLOSING
        self.deadline = self.loop.time() + self._limits.read_timeout
        self.transport.close()
