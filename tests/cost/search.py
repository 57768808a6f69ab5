"""A search for cost: hill-climbing in many cells at once, from the forms.

A cell is a figure (CPU or memory), a step, and a member of the document. Each cell keeps its most expensive attack. So
the search climbs in all plugins and verbs, not only in the most expensive one. The best attacks are changed and
combined. This finds more than hypothesis' `target()`, which follows one number and generates each example from its
strategy. Sizes of tens of kilobytes are at the limit of its generator.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from tests.cost.attack import Attack
from tests.cost.mutation import Mutator
from tests.cost.report import Row

Measure: TypeAlias = Callable[[Attack], Row]
_FROM_SEEDS: Final = 0.15
_FROM_BEST: Final = 0.5
_BEST: Final = 12
_DEEP: Final = 3  # spec.affinity.podAffinity


class Cell(NamedTuple):
    """The expensive figure, its step, and the member of the document."""

    way: str
    figure: str
    step: str
    member: str


class Tried(NamedTuple):
    """An attack and its cost. `score` is the share of its bound: more than 1 is too much."""

    score: float
    attack: Attack
    row: Row


@dataclass
class Search:
    """A search. `tried` counts attacks."""

    measure: Measure
    seeds: Sequence[Attack]
    source: random.Random
    most_bytes: int
    cells: dict[Cell, Tried] = field(default_factory=dict)
    finds: dict[Cell, Tried] = field(default_factory=dict)
    tried: int = 0

    def run(self, go_on: Callable[[], bool]) -> Iterator[tuple[Cell, Tried]]:
        """Search while `go_on` returns True. Yield the first attack in each cell that exceeds its bound."""
        mutator = Mutator(self.source, self.most_bytes)
        for attack in self._attacks(mutator):
            if not go_on():
                return
            for cell, tried in self._try(attack):
                if tried.score > 1 and cell not in self.finds:
                    again = dict(self._try(attack))  # other processes may have caused a single slow run
                    if cell in again and again[cell].score > 1:
                        self.finds[cell] = again[cell]
                        yield cell, again[cell]

    def best(self) -> list[tuple[Cell, Tried]]:
        """Return all cells, the most expensive first."""
        return sorted(self.cells.items(), key=lambda each: -each[1].score)

    def _attacks(self, mutator: Mutator) -> Iterator[Attack]:
        yield from self.seeds
        while True:
            parent = self._parent()
            alike = [each for each in self.seeds if each.way == parent.way]
            others = [tried.attack for tried in self.cells.values() if tried.attack.way == parent.way]
            yield mutator.mutated(parent, self.source.choice([*alike, *others] or [parent]))

    def _parent(self) -> Attack:
        if not self.cells or self.source.random() < _FROM_SEEDS:
            return self.source.choice(self.seeds)
        # Without cells that have a find already, or it would be found repeatedly.
        climbing = [(cell, tried) for cell, tried in self.best() if cell not in self.finds]
        figure = self.source.choice(sorted({cell.figure for cell, _ in climbing}) or [""])
        attacks = [tried.attack for cell, tried in climbing if cell.figure == figure]
        best = self.source.random() < _FROM_BEST
        return self.source.choice((attacks[:_BEST] if best else attacks) or self.seeds)

    def _try(self, attack: Attack) -> list[tuple[Cell, Tried]]:
        """Measure an attack. Return its cost in each of its cells."""
        self.tried += 1
        row = self.measure(attack)
        member = dominating_member(attack)
        found = [
            (Cell(attack.way, figure, step, member), Tried(score, attack, row))
            for figure, (score, step) in row.shares().items()
        ]
        for cell, tried in found:
            kept = self.cells.get(cell)
            if kept is None or kept.score < tried.score:
                self.cells[cell] = tried
        return found


def dominating_member(attack: Attack) -> str:
    """Return the largest member of the document, such as `spec.affinity.podAffinity`. A kind for objects."""
    here = attack.document
    if isinstance(here, list):
        first = here[0] if here else None
        return str(first.get("kind", "")) if isinstance(first, dict) else ""
    path: list[str] = []
    while isinstance(here, dict) and here and len(path) < _DEEP:
        sizes = {key: len(json.dumps(value)) for key, value in here.items()}
        key = max(sizes, key=lambda each: sizes[each])
        if sizes[key] * 2 < sum(sizes.values()) or not key.isalpha():
            break
        path.append(key)
        here = here[key]
    return ".".join(path)
