"""The stream of one watch, with its faults."""

from collections.abc import Sequence
from typing import Final

import msgspec

from tests.fake_apiserver.faults import (
    Cut,
    End,
    Replay,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    Undecodable,
)
from tests.fake_apiserver.request_log import LoggedRequest, RequestLog
from tests.fake_apiserver.statuses import Status
from tests.fake_apiserver.wire import ChunkedBody, Connection

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}


class StreamEndedError(Exception):
    """An action ended the stream early. `normal`: with a complete HTTP body."""

    def __init__(self, *, normal: bool) -> None:
        super().__init__()
        self.normal = normal


class EventStream:
    """Sends lines, and applies a fault as soon as its position is reached."""

    def __init__(
        self,
        connection: Connection,
        body: ChunkedBody,
        logged: LoggedRequest,
        log: RequestLog,
        action: StreamAction | None,
    ) -> None:
        self._connection = connection
        self._body = body
        self._logged = logged
        self._log = log
        self._action = action
        self._at = action.after if action else 0
        self._sent_lines: list[bytes] = []  # what a Replay sends again

    async def begin(self) -> None:
        """Send the head."""
        self._logged.status = 200
        await self._body.begin(200, _HEADERS)
        self._log.changed()

    def disturb(self, action: StreamAction) -> None:
        """Apply an action to the running stream, at a position counted from here."""
        self._action = action
        self._at = self._logged.events + action.after

    async def send_objects(self, begin: bytes, rests: Sequence[bytes]) -> None:
        """Send events of one type. `begin` is a result of `event_begin`."""
        if self._action is None:
            # A single join is the fastest way, and 150,000 initial events are sent here.
            await self._write([begin, (b"}\n" + begin).join(rests), b"}\n"], len(rests))
        else:
            await self.send([b"%s%s}\n" % (begin, rest) for rest in rests])

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send lines. Raises StreamEndedError."""
        await self.act()
        while self._action is not None and lines:
            room = self._at - self._logged.events
            if room:
                await self._write(lines[:room], len(lines[:room]))
                if isinstance(self._action, Replay):
                    self._sent_lines += lines[:room]
                lines = lines[room:]
                await self.act()
            else:
                lines = await self._act_on(lines)
        if lines:
            await self._write(lines, len(lines))

    async def error(self, status: Status) -> None:
        """Send an ERROR event."""
        await self._write([error_line(status)], 1)

    async def _write(self, parts: Sequence[bytes], lines: int) -> None:
        self._logged.events += lines  # counted before the client can receive them
        self._log.changed()
        await self._body.write(parts)

    async def act(self) -> None:
        """Apply actions that need no following line, if their position is reached. Raises StreamEndedError."""
        if self._action is None or self._logged.events < self._at:
            return
        match self._action:
            case StreamError(status=status):
                await self.error(status)
                raise StreamEndedError(normal=True)
            case End():
                raise StreamEndedError(normal=True)
            case SendLine(line=line):
                self._action = None
                await self._write([line, b"\n"], 1)
            case Stall() as stall:
                self._action = None
                await stall.wait()
            case Replay():
                self._action = None
                lines, self._sent_lines = self._sent_lines, []
                await self._write(lines, len(lines))
            case Cut() | Undecodable():
                pass

    async def _act_on(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Apply actions to the following line. Return the lines that remain to be sent."""
        action, self._action = self._action, None
        match action:
            case Cut(extra=extra, reset=reset):
                await self._body.write([lines[0][:extra]])
                if reset:
                    self._connection.abort()
                raise StreamEndedError(normal=False)
            case Undecodable():
                return [undecodable(lines[0]) + b"\n", *lines[1:]]
        return lines


def error_line(status: Status) -> bytes:
    """Make an ERROR event."""
    return b'{"type":"ERROR","object":%s}\n' % msgspec.json.encode(status)


def undecodable(text: bytes) -> bytes:
    """Make an object, or the object of an event, one that no client can decode."""
    whole = msgspec.json.decode(text)
    whole.get("object", whole)["metadata"]["labels"] = ["not", "a", "map"]
    return msgspec.json.encode(whole)
