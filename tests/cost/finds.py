"""Attacks that once exceeded their bounds, found by a random search, as files. The tests replay each of them."""

from pathlib import Path
from typing import Any, Final

import msgspec

from tests.cost.attack import Attack, Way

FOLDER: Final = Path(__file__).parent / "found"


class Find(msgspec.Struct, frozen=True):
    """An attack that exceeded its bounds, and the reasons."""

    name: str
    why: list[str]
    way: Way
    document: Any

    @property
    def attack(self) -> Attack:
        """The attack."""
        return Attack(self.way, self.document)


def kept(folder: Path = FOLDER) -> list[Find]:
    """Return all finds by name."""
    decode = msgspec.json.Decoder(Find).decode
    return [decode(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
