"""uvicorn's HTTP/1.1 connection within limits: of the head, of the bytes and of the time, and of who may ask.

uvicorn itself waits for the rest of a request forever, takes headers of any size, and keeps answers that nobody takes.
"""

import asyncio
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

import httptools
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.connections import Connections, Refusal
from app.tls.peer import CLIENT_NAMES, peer_names

_NEVER: Final = float("inf")
_RAW_BODIES: Final = 6
"""How many times the largest body a request may come to on the wire: what is thrown away of one that is too large, and
what encoding in chunks adds."""


class Phase(Enum):
    """What a connection waits for, which decides what its deadline means."""

    IDLE = 0
    """For a request."""
    HEAD = 1
    """For the rest of a head."""
    BODY = 2
    """For the rest of a body."""
    ANSWERING = 3
    """For an answer of ours."""
    TAKING = 4
    """For the client to take an answer that was written."""
    CLOSING = 5
    """For the client to take the last answer."""


class LargeHeadError(Exception):
    """Ends the parsing of a request whose head is too large."""


class _Gone(asyncio.Transport):
    """In the place of the transport of a connection that is lost."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is left to be closed."""

    def abort(self) -> None:
        """Nor to be cut off."""


_GONE: Final = _Gone()


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
        """Time of the loop after which `expire` is to be called."""
        self._state = server_state
        self._limits = server_state.limits
        self._stranger = False
        self._deaf = False
        self._chunk = 0
        self._received = 0  # bytes of the request that is being read, about
        self._ended = False  # whether a request ended within the chunk that is being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for requests, from whom the port is for."""
        super().connection_made(transport)
        self._state.beginning.discard(self)
        self.deadline = self.loop.time() + self._limits.idle_timeout
        certificate = transport.get_extra_info("peercert")
        names = peer_names(certificate) if certificate else ()
        if certificate:
            self.app_state = {**self.app_state, CLIENT_NAMES: names}
        allowed = self._state.client_names
        if allowed and allowed.isdisjoint(names):
            # It is told so in answer to its first request: who is closed before that cannot know why.
            self._deaf = self._stranger = True
            detail = f"its certificate is for {', '.join(names) or 'nobody'}, not for one of KINDRED_TLS_CLIENT_NAMES"
            self._state.refuse(Refusal.CLIENT_NAME, self.client, detail)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all that refers back to this, so that it and the buffers of its TLS are freed at once.

        The collector finds cycles too, but not what it was told to leave alone while it lived (app/watch/bulk_load.py):
        the connections of each time when the mirror was synced would stay for ever.
        """
        super().connection_lost(exc)
        self.cycle = None
        self.transport = _GONE
        self.flow = FlowControl(_GONE)

    def data_received(self, data: bytes) -> None:
        """Read on; whoever sends what it may not gets a status and is closed."""
        if self._deaf:
            self._turn_away()
            return
        self._chunk = len(data)
        self._ended = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # it was answered as if nothing but HTTP/1.1 had been asked for
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, LargeHeadError):
                self._refuse_head()
            else:
                self._refuse(Refusal.MALFORMED, HTTPStatus.BAD_REQUEST, "Not HTTP/1.1.")
            return
        if not self._ended:
            self._count()

    def begin_request(self) -> None:
        """Begin to read a request, which has to be complete in time."""
        self.phase = Phase.HEAD
        self.deadline = self.loop.time() + self._limits.read_timeout
        self._received = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. Those after a body say nothing that is of use here, and there may be any number of them."""
        if self.phase is Phase.HEAD:
            super().on_header(name, value)

    def end_head(self) -> None:
        """Go on to the body, unless the head was too large: raises LargeHeadError, which ends the parsing."""
        largest = self._limits.max_header_bytes
        # Mostly the whole request is smaller than a head may be.
        if self._received + self._chunk > largest and self._head_size() > largest:
            raise LargeHeadError
        self.phase = Phase.BODY

    def end_request(self) -> None:
        """Wait for the answer, which is to be written only after this."""
        self._ended = True
        if self.cycle is not None and self.cycle.response_complete:
            self._wait_until_taken()
        else:
            self.phase = Phase.ANSWERING
            self.deadline = _NEVER

    def on_response_complete(self) -> None:
        """Wait for the client to take the answer, and for the next request; uvicorn would set a timer here."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._close()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.phase is Phase.ANSWERING:
            self._wait_until_taken()

    def pause_writing(self) -> None:
        """Wait for a client that takes what it asked for slowly."""
        super().pause_writing()
        if self.phase is Phase.ANSWERING:
            self.deadline = self.loop.time() + self._limits.read_timeout

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self.phase is Phase.ANSWERING:
            self.deadline = _NEVER

    def expire(self, now: float) -> None:
        """Do what the deadline was for: it is over."""
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
        elif self.pipeline:  # it is not read on, as an answer before it is not there
            self.deadline = now + self._limits.read_timeout
        else:
            self._refuse(Refusal.SLOW_REQUEST, HTTPStatus.REQUEST_TIMEOUT, "The request took too long to come.")

    def _wait_until_taken(self) -> None:
        self.phase = Phase.TAKING
        self.deadline = self.loop.time() + self._limits.read_timeout

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)  # a colon, a line break

    def _count(self) -> None:
        """Count the bytes of a request that goes on, as the parser gathers a header or skips an extension unseen."""
        self._received += self._chunk
        if self.phase is Phase.HEAD:
            if self._received > self._limits.max_header_bytes:
                self._refuse_head()
        elif self.phase is Phase.BODY and self._received > _RAW_BODIES * self._limits.max_body_bytes:
            self._refuse(Refusal.LARGE_BODY, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")

    def _refuse_head(self) -> None:
        text = f"The head of the request is larger than {self._limits.max_header_bytes} bytes."
        self._refuse(Refusal.LARGE_HEAD, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)

    def _refuse(self, reason: Refusal, status: HTTPStatus, text: str) -> None:
        self._state.refuse(reason, self.client)
        self._answer_and_close(status, text)

    def _turn_away(self) -> None:
        if self._stranger and self.phase is not Phase.CLOSING:
            self._answer_and_close(HTTPStatus.FORBIDDEN, "The client certificate is not one of those that may ask.")

    def _answer_and_close(self, status: HTTPStatus, text: str) -> None:
        """Answer what is not to be read on, unless an answer is being written, which that would be taken for."""
        if self._may_answer():
            lines = (
                f"HTTP/1.1 {status.value} {status.phrase}",
                "content-type: text/plain; charset=utf-8",
                f"content-length: {len(text)}",
                "connection: close",
            )
            self.transport.write("\r\n".join((*lines, "", text)).encode())
        self._close()

    def _may_answer(self) -> bool:
        cycle = self.cycle
        if cycle is None:
            return True
        if cycle.response_complete:
            return self.phase is not Phase.BODY  # or it was the answer to this very request
        # Whoever works on it writes no more, and waits no more for the rest.
        cycle.disconnected = True
        cycle.message_event.set()
        return self.phase is Phase.BODY and not cycle.response_started

    def _close(self) -> None:
        """Close once all is written; at the deadline, or the client could hold on by not reading."""
        self._deaf = True
        self.phase = Phase.CLOSING
        self.deadline = self.loop.time() + self._limits.read_timeout
        self.transport.close()
