"""Head and body of an answer in one write to the socket.

uvicorn writes them one after the other, which is a system call and a packet more for each answer, and wakes the
client twice.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol over a OneWriteTransport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin a connection."""
        super().connection_made(OneWriteTransport(transport, self.loop))


class OneWriteTransport(asyncio.Transport):
    """Holds what is written until there is more, and writes both at once; what stays alone, when the loop goes on."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held = b""
        self._later: asyncio.Handle | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hold some bytes, or write them behind those that are held."""
        if self._later is None:
            self._held = bytes(data)
            self._later = self._loop.call_soon(self._flush)
        else:
            self._later.cancel()
            self._later = None
            self._transport.writelines((self._held, data))

    def close(self) -> None:
        """Write what is held, and close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Tell whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - asyncio's
        """Return what the socket tells of itself."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Take nothing in for a while."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take in what comes again."""
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to another protocol."""
        self._flush()
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
            if not self._transport.is_closing():  # the client may be gone by now
                self._transport.write(self._held)
