"""Differences between the mirror and the API server, for people: how many by resource, and which objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from app.commands.printer import Line, Styled
from app.commands.text_columns import Side, counted, table, wrapped, wrapped_table
from core.mirror.comparer import Differences

_MAX: Final = 20
"""Maximum number of objects in the text, unless it is wide."""
_COUNTS: Final[Sequence[tuple[str, Side]]] = (
    ("RESOURCE", "left"),
    ("LISTED", "right"),
    ("MISSED", "right"),
    ("REDUNDANT", "right"),
    ("DIFFERING", "right"),
    ("ASSUMED", "right"),
)
_MORE_COUNTS: Final[Sequence[tuple[str, Side]]] = (("UNREADABLE", "right"), ("OTHER VERSIONS", "right"))


def diff_text(found: Mapping[str, Differences], *, wide: bool) -> Iterator[Line]:
    """Return the differences as lines, which have colours on a terminal."""
    return _lines(found, wide=wide)


def _lines(found: Mapping[str, Differences], *, wide: bool) -> Iterator[Line]:
    objects = [row for resource, differences in found.items() for row in _objects(resource, differences)]
    if objects:
        text = f"The mirror differs from the API server in {counted(len(objects), 'object')}."
    else:
        text = "The mirror equals the API server's lists."
    yield from (Styled(line, fg="red" if objects else "green", bold=True) for line in wrapped(text))
    yield ""
    heads = (*_COUNTS, *_MORE_COUNTS) if wide else _COUNTS
    yield from table(heads, [_counts(*each)[: len(heads)] for each in found.items()], 0, wide=wide)
    if not objects:
        return
    yield ""
    shown = objects if wide else objects[:_MAX]
    yield from wrapped_table(("RESOURCE", "OBJECT", "DIFFERENCE"), shown, 0, wide=wide)
    if len(shown) < len(objects):
        yield f"... and {counted(len(objects) - len(shown), 'more object')}, see -o wide"


def _counts(resource: str, differences: Differences) -> tuple[str, ...]:
    numbers = (
        differences.listed,
        len(differences.missed),
        len(differences.redundant),
        len(differences.differing),
        len(differences.assumed),
        differences.unreadable,
        differences.other_versions,
    )
    return resource, *(f"{number:,}" for number in numbers)


def _objects(resource: str, differences: Differences) -> Iterator[tuple[str, str, str]]:
    for each in differences.missed:
        yield resource, each.name, "missed: not in the mirror"
    for each in differences.redundant:
        yield resource, each.name, "redundant: in the mirror alone"
    for each in differences.differing:
        yield resource, each.name, f"differing: {', '.join(each.fields)}"
