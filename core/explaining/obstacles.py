"""The plugins that reject each node, and what a plugin may propose against it. No proposal has been tried yet."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.owners import Leaving
from core.explaining.pod_steps import ChangeTopologyKey, RequiredRule
from core.explaining.remedy import Step
from core.explaining.typos import mistaken, mistaken_key
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.node import HOSTNAME, REGION, ZONE
from core.objects.pod import Pod

NEAREST: Final = 8
"""How many nodes are checked individually for a kind of remedy."""
MAX_STEPS: Final = 8
"""How many steps a remedy may have. More steps would make it another pod, or another cluster."""
MAX_TERMS: Final = 16
MAX_SELECTED: Final = 256
"""Limit of requirements and values of all terms together. A selector written by hand is smaller."""
TOPOLOGY_KEYS: Final = (HOSTNAME, ZONE, REGION)
"""Topology keys, narrowest first."""
_LABELLED: Final = 256

Value = TypeVar("Value")


class Obstacles:
    """The plugins that reject each node, each judged independently, with and without the nominated pods."""

    def __init__(
        self, decision: Decision, order: Sequence[str], by_nominated: Mapping[int, str], fixes: Mapping[str, "Fix"]
    ) -> None:
        """`order` has the filters of the profile.

        `by_nominated` has the plugin that rejects a node with nominated pods only. `fixes` are the fixes of the plugins
        that have one.
        """
        self.decision: Final = decision
        rejected = {name: codes.copy() for name, codes in decision.refusing.items()}
        for position, plugin in by_nominated.items():
            rejected.setdefault(plugin, np.zeros(len(decision.batch), np.bool_))[position] = True
        self.rejected: Final[Mapping[str, BoolArray]] = rejected
        self.number: Final[Int64Array] = sum(
            (each.astype(np.int64) for each in rejected.values()), np.zeros(len(decision.batch), np.int64)
        )
        """Number of plugins that reject each node."""
        self.fixes: Final = fixes
        self._order = order
        self._made: dict[Callable[[Obstacles], Any], Any] = {}

    def only(self, plugins: Collection[str]) -> IntpArray:
        """Return the known nodes that only plugins among these reject."""
        these = sum(
            (each.astype(np.int64) for name, each in self.rejected.items() if name in plugins),
            np.zeros(len(self.number), np.int64),
        )
        known = self.decision.known
        found: IntpArray = known[(these[known] > 0) & (these[known] == self.number[known])]
        return found

    def some_of(self, positions: IntpArray, number: int) -> Sequence[int]:
        """Return up to `number` of these nodes, at equal distances, because neighbours are often alike."""
        places = np.linspace(0, len(positions) - 1, min(len(positions), number)).astype(np.intp)
        chosen: list[int] = positions[places].tolist()
        return chosen

    def of(self, position: int) -> Sequence[str]:
        """Return the plugins that reject a node, in the order of the profile."""
        return [name for name in self._order if name in self.rejected and self.rejected[name][position]]

    def once(self, make: Callable[["Obstacles"], Value]) -> Value:
        """Return what a function makes of the obstacles. It is called once, for all plugins and nodes."""
        if make not in self._made:
            self._made[make] = make(self)
        found: Value = self._made[make]
        return found

    @cached_property
    def label_keys(self) -> Collection[str]:
        """The keys of the labels of up to 256 known nodes."""
        nodes = map(self.decision.node, self.some_of(self.decision.known, _LABELLED))
        return {key for node in nodes if node is not None for key in node.labels}

    @cached_property
    def leaving(self) -> Leaving:
        """The ways in which pods can leave their nodes."""
        return Leaving(self.decision.mirror, self.decision.pod)


Fix: TypeAlias = Callable[[Obstacles, int], Sequence[Step] | None]
"""Returns the steps after which a plugin passes a node, by its position. None if there are none."""


class Proposal(msgspec.Struct, frozen=True):
    """Steps that should make the pod fit on a node."""

    node: str | None
    """None if any node may be one on which the pod then fits."""
    steps: Sequence[Step]


def proposed(obstacles: Obstacles, fix: Fix, position: int) -> Iterator[Proposal]:
    """Yield the steps of a fix, if there are any and not too many."""
    steps = fix(obstacles, position)
    if steps and len(steps) <= MAX_STEPS:
        yield Proposal(obstacles.decision.batch.names[position], steps)


class Turn(IntEnum):
    """When a search has its turn: the order in which a user would try. Searches of one turn are one search."""

    CORRECT_REQUIREMENTS = 1
    CORRECT_SELECTOR = 2
    WAIT = 3
    REPAIR = 4
    UNCORDON = 5
    LOWER_REQUEST = 6
    LOWER_DEVICES = 7
    SELECT_NAMESPACE = 8
    HONOR = 9
    MATCH_REVISION = 10
    TOLERATE = 11
    CHANGE_KEY = 12
    RAISE_SKEW = 13
    PREFER = 14
    RELAX = 15
    CHANGE_DEVICE_CLASS = 16
    DROP = 17
    LABEL = 18
    ADD_PARTNER = 19


class Search(NamedTuple):
    """Proposals of one kind, smallest first, and the number of remedies that it may find."""

    turn: Turn
    proposals: Callable[[Obstacles], Iterator[Proposal]]
    most: int = 2


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A pod that may be removed, and its node."""

    pod: Pod
    node: str


Candidates: TypeAlias = Mapping[str, Gone]
"""UID -> a pod whose removal may let a plugin pass a node."""


def pods_of(obstacles: Obstacles, position: int) -> Candidates:
    """Return all pods of a node, except for the pod that is asked about."""
    decision, name = obstacles.decision, obstacles.decision.batch.names[position]
    return {pod.uid: Gone(pod, name) for pod in decision.mirror.pods_on(name) if pod.uid != decision.pod.uid}


def other_keys(
    obstacles: Obstacles, rule: RequiredRule, index: int, present: str, taken: Collection[str] = ()
) -> Iterator[Proposal]:
    """Propose the keys that nodes have and that are not taken, those that are probably meant first."""
    keys = [key for key in TOPOLOGY_KEYS if key != present and key not in taken and key in obstacles.label_keys]
    for key in sorted(keys, key=lambda each: not _meant_key(present, each)):
        yield Proposal(None, [ChangeTopologyKey(rule, index, present, key)])


def _meant_key(present: str, key: str) -> bool:
    """Return whether a key is probably meant, maybe without its prefix, or with another one."""
    name, other = (each.rpartition("/")[2] for each in (present, key))
    return mistaken_key(present, key) or name == other or mistaken(name, other)
