"""uvicorn's flow control of a connection, whose reading may be held back for a reason of ours as well."""

import asyncio
from typing import Final

from app.server.uvicorn_parts import FlowControl


class Flow(FlowControl):
    """Reading goes on when neither uvicorn has paused it nor the connection holds it back."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self.held_back = False
        """Whether reading is held back by the connection."""

    def pause(self) -> None:
        """Read nothing until `resume`."""
        if not self.held_back:
            self.held_back = True
            if not self.read_paused:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Hold reading back no longer."""
        if self.held_back:
            self.held_back = False
            if not self.read_paused:
                self._transport.resume_reading()

    def pause_reading(self) -> None:
        """Pause, as uvicorn wants."""
        if not self.read_paused:
            self.read_paused = True
            if not self.held_back:
                self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on, as uvicorn wants."""
        if self.read_paused:
            self.read_paused = False
            if not self.held_back:
                self._transport.resume_reading()


class _Gone(asyncio.Transport):
    """In the place of the transport of a connection that is lost."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is left to be closed."""

    def abort(self) -> None:
        """Nor to be cut off."""


GONE: Final = _Gone()
"""The transport of a connection that is lost."""
