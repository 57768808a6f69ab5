"""Calls the verbs from the HTTP parser's callbacks, on uvicorn's connection, without ASGI in between.

A verb responds at once, from bytes to bytes, and needs no task, no queue of messages and no scope. Head and body are
one write. uvicorn makes two, which costs a system call, a packet, and a wake-up of the client. A request of 6.5 KB to a
verb that does nothing took 0.08 ms this way, and 0.12 ms by ASGI.

Unusual requests go through uvicorn, and reach the same VerbEndpoint by ASGI: pipelined requests, requests with
`100 Continue`, and requests of a client that does not read its response.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, Final

from app.server.bounded_protocol import BoundedProtocol
from app.server.connections import Connections
from app.server.uvicorn_parts import Config, RequestResponseCycle
from app.verbs.admission import Shed
from app.verbs.request_body import RequestBody
from app.verbs.routes import ExtenderApp
from app.verbs.verb_endpoint import CLOSE, Arrival, Reply, VerbEndpoint, manner_of

_STATUS_LINE: Final = b"HTTP/1.1 200 OK\r\n"
_AT_ONCE: Final = 256 * 1024
"""Bytes of a response that are encrypted in one call. OpenSSL keeps a buffer for the longest write until the connection
closes. With 5,000 whole nodes that would be more than 32 MB for each connection."""


class VerbProtocol(BoundedProtocol):
    """A connection. For the verbs, it replaces the part of uvicorn's protocol between a request and its response."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        verbs = self.app.verbs if isinstance(self.app, ExtenderApp) else {}
        self._verbs: Mapping[bytes, VerbEndpoint] = {path.encode(): verb for path, verb in verbs.items()}

    def on_message_begin(self) -> None:
        """Begin a request. The scope of ASGI is made later, for requests that need it."""
        self.begin_request()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_headers_complete(self) -> None:
        """Begin a request to a verb, or uvicorn's handling of all other requests."""
        if not self.end_head():
            return
        verb = self._verbs.get(self.url)
        if verb is None or not self._ordinary():
            url, headers, expected = self.url, self.headers, self.expect_100_continue
            super().on_message_begin()
            self.headers.extend(headers)
            self.url, self.expect_100_continue = url, expected
            super().on_headers_complete()
            return
        # In place of uvicorn's cycle, so that uvicorn reports a disconnect or the shutdown to it.
        self.cycle = VerbRequestCycle(self, verb)

    def on_body(self, body: bytes) -> None:
        """Add a piece of a body."""
        if isinstance(self.cycle, VerbRequestCycle):
            self._progress.add_body(len(body))
            self.cycle.receive_piece(body)
        else:
            super().on_body(body)

    def hold_framing(self, size: int) -> None:
        """Count the framing of the chunks of a request as held bytes."""
        if isinstance(self.cycle, VerbRequestCycle):
            self.cycle.hold(size)

    def on_message_complete(self) -> None:
        """Pass a complete request to its verb."""
        if not self.end_request():
            return
        if isinstance(self.cycle, VerbRequestCycle):
            self.cycle.ask()
        else:
            super().on_message_complete()

    def respond(self, question: "VerbRequestCycle", reply: Reply) -> None:
        """Write a response, and prepare for the next request."""
        if question.response_complete:
            return
        if question.disconnected or self.transport.is_closing():
            self._finish(question)
            return
        closes = not question.keep_alive or CLOSE in reply.headers
        lines = [b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *reply.headers)]
        if closes and CLOSE not in reply.headers:
            lines.append(b"%b: %b\r\n" % CLOSE)
        head = b"".join((_STATUS_LINE, *lines, b"\r\n"))
        if len(reply.body) > _AT_ONCE and self.scheme == "https":
            question.response_started = True
            question.release()
            self._in_the_background(self._write(question, head, memoryview(reply.body), closes=closes))
            return
        self.transport.writelines((head, reply.body))
        self._written(question, closes=closes)

    async def _write(self, question: "VerbRequestCycle", head: bytes, body: memoryview, *, closes: bool) -> None:
        """Write a large response in pieces, as the client reads it. One write would keep a large TLS buffer."""
        self.transport.write(head)
        for begin in range(0, len(body), _AT_ONCE):
            if self.flow.write_paused:
                await self.flow.drain()
            if question.response_complete or self.transport.is_closing():
                break
            self.transport.write(body[begin : begin + _AT_ONCE])
        if not question.response_complete:
            self._written(question, closes=closes)

    def _written(self, question: "VerbRequestCycle", *, closes: bool) -> None:
        self._finish(question)
        if closes:
            self.transport.close()
        self.on_response_complete()

    def _finish(self, question: "VerbRequestCycle") -> None:
        question.response_complete = True
        question.end()

    def respond_later(self, question: "VerbRequestCycle", reply: Awaitable[Reply]) -> None:
        """Write a response when it is ready."""

        async def respond() -> None:
            self.respond(question, await reply)

        self._in_the_background(respond())

    def _in_the_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        task.add_done_callback(self.tasks.discard)  # uvicorn waits for `tasks` at the shutdown
        self.tasks.add(task)

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that the client has disconnected."""
        question = self.cycle
        super().connection_lost(exc)
        if isinstance(question, VerbRequestCycle) and not question.response_complete:
            self._finish(question)

    def _ordinary(self) -> bool:
        before: RequestResponseCycle | None = self.cycle
        return (
            self.parser.get_method() == b"POST"
            and (before is None or before.response_complete)
            and not self.expect_100_continue
            and not self.flow.write_paused
        )


class VerbRequestCycle(RequestResponseCycle):
    """A request to a verb, from its head to its response."""

    def __init__(self, protocol: VerbProtocol, verb: VerbEndpoint) -> None:
        # Only the attributes that uvicorn's protocol reads and sets. The base class has more, for ASGI.
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.keep_alive = protocol.http_version != "1.0" and protocol.parser.should_keep_alive()
        self.message_event = _NOBODY_WAITS
        self.began: float = verb.admission.clock()
        self._protocol = protocol
        self._verb = verb
        self._manner = manner_of(protocol.headers)
        self._body = RequestBody(verb.max_body_bytes, verb.admission)
        self._arrived = 0.0
        verb.admission.in_flight += 1

    @property
    def gone(self) -> bool:
        """Whether the client disconnected."""
        return self.disconnected

    def receive_piece(self, piece: bytes) -> None:
        """Add a piece of the body."""
        if self.response_complete:
            return
        if not self._body.add(piece):
            self._protocol.respond(self, self._verb.too_large())

    def hold(self, size: int) -> None:
        """Count bytes of framing as held bytes of the body."""
        if not self.response_complete:
            self._body.hold(size)

    def ask(self) -> None:
        """Enter the queue after the body is complete."""
        if self.response_complete:
            return
        if self._body.is_too_large:
            self._protocol.respond(self, self._verb.too_large())
            return
        self._arrived = self._verb.admission.clock()
        if self._body.is_over_budget:
            self._verb.admission.reject(self, Shed.BYTES)
        else:
            self._verb.admission.enter(self)

    def take(self, waited: float) -> None:
        """Call the verb."""
        body = self._body
        arrival = Arrival(self._arrived, waited, body.size, body.content, self._manner)
        reply = self._verb.reply(arrival)
        if isinstance(reply, Reply):
            self._protocol.respond(self, reply)
        else:
            self._protocol.respond_later(self, reply)

    def reject(self, reason: Shed, waited: float) -> None:
        """Write an error without a call of the verb."""
        self._protocol.respond(self, self._verb.reject(reason, Arrival(self._arrived, waited, self._body.size)))

    def end(self) -> None:
        """Record, once, the end of the request: its response was written, or its client has disconnected."""
        self._verb.admission.in_flight -= 1
        self._body.release()

    def release(self) -> None:
        """Release the body."""
        self._body.release()


_NOBODY_WAITS: Final = asyncio.Event()
"""uvicorn sets it when a client disconnects. No task waits for it."""
