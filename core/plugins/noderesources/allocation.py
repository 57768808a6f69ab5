"""The input of the score sides: allocatable and requested amounts of each resource, with the incoming pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.framework.interface import MAX_NODE_SCORE
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.plugins.noderesources.columns import COMPUTE, NATIVE, ResourceColumns


class ResourceSpec(msgspec.Struct, frozen=True, gc=False):
    """A resource that is scored, and how much it weighs, 1..100; 0 is 1, as upstream's defaults have it."""

    name: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""The default resources to score (upstream defaultResourceSpec)."""


class Allocation:
    """One resource on every node of a batch. Where a node has none it is not `offered`, and `allocatable` is 1.

    `requested` is with the incoming pod, which asks for `asked` itself.
    """

    __slots__ = ("allocatable", "asked", "offered", "requested", "weight")

    def __init__(self, weight: int, allocatable: Int64Array, requested: Int64Array, asked: int) -> None:
        self.weight = weight
        self.offered = allocatable != 0
        self.allocatable = np.where(self.offered, allocatable, 1)  # to divide by
        self.requested = requested
        self.asked = asked


Scorer: TypeAlias = Callable[[Sequence[Allocation], int], Int64Array]
"""Gives each node its score, from the allocations and the number of nodes."""


class ScoreState:
    """The requests of one incoming pod for the scored resources. Stale after the next event."""

    __slots__ = ("_asked", "_columns", "_non_zero")

    def __init__(self, columns: ResourceColumns, asked: Mapping[str, int], *, non_zero: bool) -> None:
        """`non_zero`: of the pods that are there, count the cpu and the memory that scoring takes them for."""
        self._columns = columns
        self._asked = asked
        self._non_zero = non_zero

    def score(self, resources: Sequence[ResourceSpec], scorer: Scorer, batch: NodeBatch) -> Int64Array:
        """Return the score of every node of the batch."""
        return scorer([*self._allocations(resources, batch)], len(batch))

    def _allocations(self, resources: Sequence[ResourceSpec], batch: NodeBatch) -> Iterator[Allocation]:
        for resource in resources:
            name, asked = resource.name, self._asked.get(resource.name, 0)
            if not asked and name not in NATIVE:
                continue  # a rare resource must not move pods that do not request it
            there = self._columns.requested_of
            if self._non_zero and name in COMPUTE:
                there = self._columns.non_zero_requested_of
            allocatable, requested = self._columns.allocatable_of(name, batch), there(name, batch) + asked
            yield Allocation(resource.weight, allocatable, requested, asked)


def with_default_weights(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    """Fill in the defaults of upstream's SetDefaults_NodeResourcesFitArgs: for no resources, and for weights of 0."""
    return tuple(ResourceSpec(each.name, each.weight or 1) for each in resources) or CPU_AND_MEMORY


def in_range(scores: Int64Array) -> Int64Array:
    """Return the scores between 0 and 100: only sums that have overflowed give others, for which upstream has an error.

    It fails the pod (RunScorePlugins), which would let one absurd request on one node keep every pod from every node.
    """
    return np.minimum(np.maximum(scores, 0), MAX_NODE_SCORE)  # np.clip takes 1.5 us more


def quotient(dividend: Int64Array, divisor: Int64Array) -> Int64Array:
    """Divide as Go does, towards 0."""
    if dividend.min(initial=0) < 0 or divisor.min(initial=1) < 0:
        dividend = dividend - np.fmod(dividend, divisor)
    exact: Int64Array = dividend // divisor
    return exact
