"""The input of the score sides: allocatable and requested amounts of each resource, with the incoming pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from core.framework.interface import MAX_NODE_SCORE
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.plugins.noderesources.columns import COMPUTE, LARGEST_AMOUNT, NATIVE, AmountColumns, ResourceColumns


class ResourceSpec(msgspec.Struct, frozen=True, gc=False):
    """A scored resource with its weight, 1..100. As in upstream's defaults, 0 means 1."""

    name: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""The default resources to score (upstream defaultResourceSpec)."""


class Allocation:
    """One resource on every node of a batch. If a node has none, it is not `offered`, and `allocatable` is 1.

    `requested` includes the incoming pod's own request, `asked`.
    """

    __slots__ = ("allocatable", "asked", "offered", "requested", "weight")

    def __init__(self, weight: int, allocatable: Int64Array, requested: Int64Array, asked: int) -> None:
        self.weight = weight
        self.offered = allocatable != 0
        self.allocatable = np.where(self.offered, allocatable, 1)  # a divisor
        self.requested = requested
        self.asked = asked


class NodeAllocation(NamedTuple):
    """One resource on one node. Each amount is between 0 and LARGEST_AMOUNT, `requested` is with the incoming pod."""

    weight: int
    allocatable: int
    requested: int
    asked: int


ScorerOfAll: TypeAlias = Callable[[Sequence[Allocation], int], Int64Array]
"""Gives each node its score, from the allocations and the number of nodes."""
ScorerOfOne: TypeAlias = Callable[[Sequence[NodeAllocation]], int | None]
"""Gives one node its score; None: the scorer of all nodes has to be asked."""


class Scorer(NamedTuple):
    """A formula, for all nodes of a batch and for one. Both give the same scores.

    After a decision one node is scored again. There, arrays take ten times as long as numbers.
    """

    of_all: ScorerOfAll
    of_one: ScorerOfOne


def not_alone(_: Sequence[NodeAllocation]) -> None:
    """Leave one node to the formula for all (`of_one` of a formula that is rarely used)."""


class ScoreState:
    """The requests of one incoming pod for the scored resources. Stale after the next event."""

    __slots__ = ("_asked", "_columns", "_non_zero")

    def __init__(self, columns: ResourceColumns, asked: Mapping[str, int], *, non_zero: bool) -> None:
        """With `non_zero`, count existing pods with the cpu and memory that scoring assumes for them."""
        self._columns = columns
        self._asked = asked
        self._non_zero = non_zero

    def score(self, resources: Sequence[ResourceSpec], scorer: Scorer, batch: NodeBatch) -> Int64Array:
        """Return the score of every node of the batch."""
        if len(batch) == 1 and not batch.strangers:
            score = self._score_of_one(resources, scorer, batch.slots.item(0))
            if score is not None:
                return np.array([score], np.int64)
        return scorer.of_all([*self._allocations(resources, batch)], len(batch))

    def _score_of_one(self, resources: Sequence[ResourceSpec], scorer: Scorer, slot: int) -> int | None:
        found = []
        for resource, asked, requested in self._scored(resources):
            each = NodeAllocation(
                resource.weight,
                self._columns.allocatable.on(resource.name, slot),
                requested.on(resource.name, slot) + asked,
                asked,
            )
            if not (0 <= each.allocatable <= LARGEST_AMOUNT and 0 <= asked <= each.requested <= LARGEST_AMOUNT):
                return None  # only sums that have overflowed
            found.append(each)
        return scorer.of_one(found)

    def _allocations(self, resources: Sequence[ResourceSpec], batch: NodeBatch) -> Iterator[Allocation]:
        for resource, asked, requested in self._scored(resources):
            allocatable = self._columns.allocatable_of(resource.name, batch)
            yield Allocation(resource.weight, allocatable, requested.at(resource.name, batch) + asked, asked)

    def _scored(self, resources: Sequence[ResourceSpec]) -> Iterator[tuple[ResourceSpec, int, AmountColumns]]:
        """Give the resources that count for this pod, how much it asks for, and the requests of the pods there."""
        for resource in resources:
            asked = self._asked.get(resource.name, 0)
            if not asked and resource.name not in NATIVE:
                continue  # a rare resource must not move pods that do not request it
            non_zero = self._non_zero and resource.name in COMPUTE
            yield resource, asked, self._columns.non_zero_requested if non_zero else self._columns.requested


def with_default_weights(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    """Apply the defaults of upstream's SetDefaults_NodeResourcesFitArgs: for no resources, and for weights of 0."""
    return tuple(ResourceSpec(each.name, each.weight or 1) for each in resources) or CPU_AND_MEMORY


def in_range(scores: Int64Array) -> Int64Array:
    """Return the scores limited to 0..100. Only overflowed sums are outside, for which upstream has an error.

    That error fails the pod (RunScorePlugins), so one absurd request on one node would keep every pod from every node.
    """
    return np.minimum(np.maximum(scores, 0), MAX_NODE_SCORE)  # np.clip takes 1.5 us more


def quotient(dividend: Int64Array, divisor: Int64Array) -> Int64Array:
    """Divide as Go does, truncating towards 0."""
    if dividend.min(initial=0) < 0 or divisor.min(initial=1) < 0:
        dividend = dividend - np.fmod(dividend, divisor)
    exact: Int64Array = dividend // divisor
    return exact
