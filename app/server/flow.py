"""uvicorn's flow control of a connection. Kindred may pause reading, too."""

import asyncio
from typing import Final

from app.server.uvicorn_parts import FlowControl


class Flow(FlowControl):
    """Reading continues only if neither uvicorn nor the connection has paused it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.held_back = False
        """Whether the connection has paused reading."""

    def pause(self) -> None:
        """Read nothing until `resume`."""
        if not self.held_back:
            self.held_back = True
            if not self.read_paused:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Read again, unless uvicorn has paused reading."""
        if self.held_back:
            self.held_back = False
            if not self.read_paused:
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        """Pause for uvicorn."""
        if not self.read_paused:
            self.read_paused = True
            if not self.held_back:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume for uvicorn, unless the connection has paused reading."""
        if self.read_paused:
            self.read_paused = False
            if not self.held_back:
                self._transport.resume_reading()


class _Gone(asyncio.Transport):
    """Takes the place of the transport of a lost connection."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: the connection is lost already."""

    def abort(self) -> None:
        """Do nothing: the connection is lost already."""


GONE: Final = _Gone()
"""The transport of a lost connection."""
