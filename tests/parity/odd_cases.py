"""Cases with a few values that are rare, or that an API server refuses."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from tests.parity.odd_values import ABSENT, ODD
from tests.parity.random_nodes import V1

_TERMS: Final = ("Affinity.requiredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm")


def make_odd(random: Random, case: V1) -> V1:
    """Change some fields, chosen by what they are, so that rare ones are as frequent as others."""
    for _ in range(random.choice((1, 1, 2, 3, 5))):
        found = _places(case)
        members = sorted((end, member) for end, member in ODD if end in found)
        end, member = random.choice(members)
        value = random.choice(ODD[end, member])
        place = random.choice(found[end])
        if value == ABSENT:
            place.pop(member, None)
        else:
            place[member] = value
    return case


def _places(case: V1) -> Mapping[str, Sequence[V1]]:
    """Return the end of a path -> the objects there."""
    ends = {end for end, _ in ODD}
    found: dict[str, list[V1]] = defaultdict(list)
    for path, each in _objects("", case):
        for end in ends:
            if path == end or path.endswith(f".{end}"):
                found[end].append(each)
        if path.endswith(_TERMS) and ".nodeAffinity" not in path:
            found["TERM"].append(each)
    return found


def _objects(path: str, value: Any) -> Iterator[tuple[str, V1]]:  # noqa: ANN401  # any JSON
    if isinstance(value, dict):
        yield path, value
        for name, each in value.items():
            yield from _objects(f"{path}.{name}".lstrip("."), each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(path, each)
