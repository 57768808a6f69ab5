"""The functions and files of app and core that a request passes, and a service with the demo cluster to ask."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from app.commands.dump import load_dump
from app.server.ports import Port
from app.settings.settings import Settings
from app.wiring.main import create_service

ROOT: Final = Path(__file__).parents[1]


class Calls:
    """The functions of app and core, in the order of their first calls."""

    def __init__(self) -> None:
        self.first: dict[str, None] = {}

    @property
    def files(self) -> list[str]:
        """The files of these functions, by name."""
        return sorted({each.partition(": ")[0] for each in self.first})

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record the calls of this thread during the block."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in {"app", "core"}:
            self.first.setdefault(f"{path.relative_to(ROOT)}: {frame.f_code.co_qualname}")

    def of(self, functions: list[str]) -> list[str]:
        """Return the called ones of these functions, in the order of their calls."""
        return [each for each in self.first if each in functions]


def port_of(name: str) -> Port:
    """Return a port of a service with the demo cluster."""
    settings = Settings(admin="127.0.0.1:1", equivalence_mode="spec")
    service = create_service(
        settings, load_dump(settings, {"snapshot": None, "demo": True, "skip_invalid": False}).mirror, None
    )
    return next(port for port in service.ports if port.connections.port == name)._replace(number=0)
