"""The finds of searches, as files. The tests replay each of them."""

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.cost.attack import Attack, Way, compact

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


def keep(attack: Attack, area: str, why: list[str], folder: Path = FOLDER) -> Path:
    """Write a find to its own file, named by its cost. Return the path."""
    digest = hashlib.sha256(compact(attack.document)).hexdigest()[:8]
    part = "".join(letter if letter.isalnum() else "-" for letter in area.lower()).strip("-") or attack.way
    name = f"{part}-{digest}"
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.json"
    file.write_bytes(msgspec.json.encode(Find(name, why, attack.way, attack.document)) + b"\n")
    return file


def kept(folder: Path = FOLDER) -> list[Find]:
    """Return all finds by name."""
    decode = msgspec.json.Decoder(Find).decode
    return [decode(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
