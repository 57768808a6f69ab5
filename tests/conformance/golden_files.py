"""Files of golden data: their lines, and which kind of case a line is, told by its fields.

The release of Kubernetes whose answers a case has is told by its member `kubernetes`, or by the name of the directory
of its file, such as `v1.37`; else it is that of the first golden data, 1.34.
"""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from core.releases.differences import rules_of
from core.releases.release import RELEASES, Release, Rules, nearest

Members: TypeAlias = Mapping[str, Any]


FIRST: Final = Release(1, 34)


class GoldenFileError(Exception):
    """A file that cannot be read, or a line that is not a case of any known kind; the message says where and why."""


class Kind(Enum):
    """What a line asks of the engine; the value is how it is called in the output."""

    PLUGIN = "plugin cases"
    VOLUME = "volume cases"
    PREEMPTION = "preemption cases"
    NOMINATED = "cases with nominated pods"
    BENCH = "bench checks"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    kind: Kind
    content: Members
    place: str  # FILE:NUMBER
    release: Release = FIRST

    @property
    def rules(self) -> Rules:
        """The rules by which the case is answered. Raises FeatureGateError."""
        gates = self.content.get("featureGates")
        return rules_of(self.release, gates) if gates else _rules_of(self.release)


_rules_of = cache(rules_of)  # of a hundred cases and more


def other_rules(rules: Rules) -> Rules:
    """Return rules that differ as much as they can, to come from or to be changed to in between."""
    return _rules_of(RELEASES[0] if rules.release != RELEASES[0] else RELEASES[-1])


_INPUTS: Final[Mapping[str, type]] = {
    "name": str,
    "namespaces": list,
    "nodes": list,
    "pods": list,
    "pod": dict,
    "expected": dict,
}
_BENCH_FIELDS: Final[Mapping[str, type]] = {
    "kind": str,
    "iter": int,
    "nodes": int,
    "pods": int,
    "feasible": int,
    "score_sum": int,
}
_SCORES: Final = ("raw_scores_all", "normalized_all", "raw_scores_feasible", "normalized_feasible")
_EXPECTED: Final[Mapping[Kind, Mapping[str, type]]] = {  # kind -> the members of `expected` that tell it
    Kind.PLUGIN: {
        "prefilter": str,
        "filter": dict,
        "prescore_all": str,
        "prescore_feasible": str,
        **dict.fromkeys(_SCORES, dict),
    },
    Kind.PREEMPTION: {"filter_failed": dict, "candidates": dict, "failed": dict},
    Kind.NOMINATED: {"filter_failed": dict, "feasible": list, "refused_by_nominated": list},
    Kind.VOLUME: {"plugins": dict, "feasible": list},
}


def read(path: Path) -> Iterator[Line]:
    """Yield the lines of a .jsonl or .jsonl.gz file; blank ones are passed over. Raises GoldenFileError."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield _line(text, f"{path}:{number}")
    except (OSError, EOFError, zlib.error) as error:
        raise GoldenFileError(f"{path}: {error}") from error


def _line(text: bytes, place: str) -> Line:
    """Return a line. Raises GoldenFileError."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GoldenFileError(f"{place}: not JSON: {error}") from error
    return line_of(content, place)


def line_of(content: object, place: str) -> Line:
    """Tell of which kind a case is. Raises GoldenFileError."""
    if not isinstance(content, dict):
        raise GoldenFileError(f"{place}: not a JSON object")
    release = _release(content.get("kubernetes", Path(place).parent.name))
    if not _lacking(_BENCH_FIELDS, content):
        return Line(Kind.BENCH, content, place, release)
    if lacking := _lacking(_INPUTS, content):
        raise GoldenFileError(f"{place}: no known kind of case: lacks {', '.join(lacking)}")
    for kind, members in _EXPECTED.items():
        if not _lacking(members, content["expected"]):
            return Line(kind, content, place, release)
    found = ", ".join(content["expected"]) or "nothing"
    raise GoldenFileError(f"{place}: no known kind of case: expected holds {found}")


def _release(text: str) -> Release:
    found = nearest(text)
    return found.release if found.exact else FIRST


def _lacking(fields: Mapping[str, type], members: Members) -> list[str]:
    return [name for name, required in fields.items() if not isinstance(members.get(name), required)]
