"""The scoring strategies of NodeResourcesFit, in Go's integer arithmetic.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/ (least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go) and plugins/helper/shape_score.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from core.framework.interface import MAX_NODE_SCORE
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.plugins.noderesources.columns import COMPUTE, LARGEST_AMOUNT, NATIVE, AmountColumns, ResourceColumns

# The input of the score sides: allocatable and requested amounts of each resource, with the incoming pod.
#
# Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/resource_allocation.go.


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


MAX_UTILIZATION: Final = 100
MAX_CUSTOM_PRIORITY_SCORE: Final = 10
MAX_WEIGHT: Final = 100
_TYPES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_PATH: Final = "scoringStrategy"


class UtilizationShapePoint(msgspec.Struct, frozen=True, gc=False):
    """A point of the function from utilization, 0..100, to score, 0..10."""

    utilization: int
    score: int


class ScoringStrategy(msgspec.Struct, frozen=True, gc=False):
    """The way to score nodes, and the scored resources. Only RequestedToCapacityRatio reads `shape`."""

    type: str = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    shape: tuple[UtilizationShapePoint, ...] = ()

    def errors(self) -> Iterator[str]:
        """Yield the errors of the strategy, by upstream's field names (ValidateNodeResourcesFitArgs)."""
        if self.type not in _TYPES:
            yield f"{_PATH}.type: must be one of {', '.join(_TYPES)}, got {self.type}"
        for index, resource in enumerate(with_default_weights(self.resources)):
            if not 0 < resource.weight <= MAX_WEIGHT:
                path = f"{_PATH}.resources[{index}].weight"
                yield (
                    f"{path}: resource weight of {resource.name} not in valid range (0, {MAX_WEIGHT}], "
                    f"got {resource.weight}"
                )
        if self.shape or self.type == "RequestedToCapacityRatio":
            yield from _shape_errors(self.shape)

    def scorer(self) -> Scorer:
        """Return the scorer. The strategy must be without errors."""
        if self.type == "LeastAllocated":
            return Scorer(_weighted_mean(_least_requested), _weighted_mean_of_one(_least_requested_of_one))
        if self.type == "MostAllocated":
            return Scorer(_weighted_mean(_most_requested), _weighted_mean_of_one(_most_requested_of_one))
        return Scorer(_requested_to_capacity_ratio(_score_by_utilization(self.shape)), not_alone)


def _shape_errors(shape: Sequence[UtilizationShapePoint]) -> Iterator[str]:
    path = f"{_PATH}.shape"
    if not shape:
        yield f"{path}: at least one point must be specified"
    for index, (before, point) in enumerate(pairwise(shape), 1):
        if before.utilization >= point.utilization:
            yield f"{path}[{index}].utilization: values must be sorted in increasing order, got {point.utilization}"
            break
    for index, point in enumerate(shape):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            yield f"{path}[{index}].utilization: not in valid range [0, {MAX_UTILIZATION}], got {point.utilization}"
        if not 0 <= point.score <= MAX_CUSTOM_PRIORITY_SCORE:
            yield f"{path}[{index}].score: not in valid range [0, {MAX_CUSTOM_PRIORITY_SCORE}], got {point.score}"


def _weighted_mean(score_of: Callable[[Int64Array, Int64Array], Int64Array]) -> ScorerOfAll:
    def scorer(allocations: Sequence[Allocation], length: int) -> Int64Array:
        scores, weights = np.zeros(length, np.int64), np.zeros(length, np.int64)
        for each in allocations:
            weight = each.offered * np.int64(each.weight)
            scores += score_of(each.requested, each.allocatable) * weight
            weights += weight
        return quotient(scores, np.maximum(weights, 1))

    return scorer


def _weighted_mean_of_one(score_of: Callable[[int, int], int]) -> ScorerOfOne:
    def scorer(allocations: Sequence[NodeAllocation]) -> int:
        score = weights = 0
        for each in allocations:
            if each.allocatable:
                score += score_of(each.requested, each.allocatable) * each.weight
                weights += each.weight
        return score // max(weights, 1)

    return scorer


def _least_requested_of_one(requested: int, capacity: int) -> int:
    return 0 if requested > capacity else (capacity - requested) * MAX_NODE_SCORE // capacity


def _most_requested_of_one(requested: int, capacity: int) -> int:
    return min(requested, capacity) * MAX_NODE_SCORE // capacity


def _least_requested(requested: Int64Array, capacity: Int64Array) -> Int64Array:
    return np.where(requested > capacity, 0, quotient((capacity - requested) * MAX_NODE_SCORE, capacity))


def _most_requested(requested: Int64Array, capacity: Int64Array) -> Int64Array:
    # `requested` may exceed the capacity, because scoring assumes a usage for pods without requests.
    return quotient(np.minimum(requested, capacity) * MAX_NODE_SCORE, capacity)


def _requested_to_capacity_ratio(by_utilization: Int64Array) -> ScorerOfAll:
    def scorer(allocations: Sequence[Allocation], length: int) -> Int64Array:
        scores, weights = np.zeros(length, np.int64), np.zeros(length, np.int64)
        for each in allocations:
            utilization = quotient(each.requested * MAX_UTILIZATION, each.allocatable)
            utilization[each.requested > each.allocatable] = MAX_UTILIZATION
            # Products that overflow are out of range. There the function has the value of its end.
            score = by_utilization[np.clip(utilization, 0, MAX_UTILIZATION)]
            # A score of 0 has no weight, so it does not lower the mean of the others.
            weight = (each.offered & (score > 0)) * np.int64(each.weight)
            scores += score * weight
            weights += weight
        divisor = np.maximum(weights, 1)
        # Exactly math.Round of the mean, as no score is below 0.
        return quotient(2 * scores + divisor, 2 * divisor)

    return scorer


def _score_by_utilization(shape: Sequence[UtilizationShapePoint]) -> Int64Array:
    """Return the values of the shape's broken linear function at 0..MAX_UTILIZATION (BuildBrokenLinearFunction)."""
    factor = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    by_utilization = np.full(MAX_UTILIZATION + 1, shape[-1].score * factor, np.int64)
    by_utilization[: shape[0].utilization + 1] = shape[0].score * factor
    for start, end in pairwise(shape):
        steps = np.arange(1, end.utilization - start.utilization + 1, dtype=np.int64)
        rise = quotient((end.score - start.score) * factor * steps, np.full_like(steps, len(steps)))
        by_utilization[start.utilization + 1 : end.utilization + 1] = start.score * factor + rise
    return by_utilization
