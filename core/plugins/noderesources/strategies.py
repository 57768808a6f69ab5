"""The scores by resources: the strategies of NodeResourcesFit, in Go's integer arithmetic, and the plugin of balance.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/ (least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go, resource_allocation.go, balanced_allocation.go) and plugins/helper/shape_score.go.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from core.framework.interface import SKIP, SUCCESS, DeviceAmounts, ScorePlugin, Status
from core.framework.invalidation import InvalidationRule, Scope, node_update
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Float64Array, Int64Array
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.pod_requests import may_be_devices
from core.plugins.noderesources.arguments import (
    CPU_AND_MEMORY,
    MAX_CUSTOM_PRIORITY_SCORE,
    MAX_UTILIZATION,
    ResourceSpec,
    ScoredResource,
    ScoringStrategy,
    UtilizationShapePoint,
    effect_of,
    with_default_weights,
)
from core.plugins.noderesources.columns import (
    COMPUTE,
    LARGEST_AMOUNT,
    NATIVE,
    AmountColumns,
    ResourceColumns,
    asks_otherwise,
)

# The input of the score sides (resource_allocation.go): allocatable and requested amounts, with the incoming pod.


class Allocation:
    """One resource on every node of a batch. If a node has none, it is not `offered`, and `allocatable` is 1.

    `requested` includes the incoming pod's own request, `pod_request`.
    """

    __slots__ = ("allocatable", "offered", "pod_request", "requested", "weight")

    def __init__(self, weight: int, allocatable: Int64Array, requested: Int64Array, pod_request: int) -> None:
        self.weight = weight
        self.offered = allocatable != 0
        self.allocatable = np.where(self.offered, allocatable, 1)  # a divisor
        self.requested = requested
        self.pod_request = pod_request


class NodeAllocation(msgspec.Struct, frozen=True, gc=False):
    """One resource on one node. Each amount is between 0 and LARGEST_AMOUNT, `requested` is with the incoming pod."""

    weight: int
    allocatable: int
    requested: int
    pod_request: int


ScorerOfAll: TypeAlias = Callable[[Sequence[Allocation], int], Int64Array]
"""Gives each node its score, from the allocations and the number of nodes."""
ScorerOfOne: TypeAlias = Callable[[Sequence[NodeAllocation]], int | None]
"""Gives one node its score; None: the scorer of all nodes has to be called."""


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

    __slots__ = ("_columns", "_counted", "_devices", "_scorer")

    def __init__(
        self,
        columns: ResourceColumns,
        requests: Mapping[str, int],
        resources: Sequence[ScoredResource],
        scorer: Scorer,
        *,
        non_zero: bool,
    ) -> None:
        """With `non_zero`, count existing pods with the cpu and memory that scoring assumes for them."""
        self._scorer = scorer
        self._devices: DeviceAmounts | None = None  # they count where a node has no amount of a resource
        self._columns = columns
        self._counted: list[tuple[ScoredResource, int, AmountColumns]] = []
        """The resources that count for this pod, how much it asks for, and the requests of the pods there."""
        for resource in resources:
            request = requests.get(resource.name, 0)
            if not request and resource.name not in NATIVE:
                continue  # a rare resource must not move pods that do not request it
            of_scoring = non_zero and resource.name in COMPUTE
            self._counted.append((resource, request, columns.non_zero_requested if of_scoring else columns.requested))

    def score(self, batch: NodeBatch) -> Int64Array:
        """Return the score of every node of the batch."""
        return self._scorer.of_all([*self._allocations(batch)], len(batch))

    def score_on(self, slot: int) -> int | None:
        """Return the score of the known node of a slot, 0..100. None: `score` says."""
        if self._devices is not None:
            return None
        found = []
        for resource, request, requested in self._counted:
            allocatable = self._columns.allocatable.on(resource.name, slot)
            in_use = requested.on(resource.name, slot) + request
            if not (0 <= allocatable <= LARGEST_AMOUNT and 0 <= request <= in_use <= LARGEST_AMOUNT):
                return None  # only sums that have overflowed
            found.append(NodeAllocation(resource.weight, allocatable, in_use, request))
        return self._scorer.of_one(found)

    def _allocations(self, batch: NodeBatch) -> Iterator[Allocation]:
        for resource, request, requested in self._counted:
            allocatable = self._columns.allocatable_of(resource.name, batch)
            in_use = requested.at(resource.name, batch)
            found = None if self._devices is None else self._devices.of(resource.name, batch)
            if found is not None:
                devices, allocated = found
                counted = (allocatable == 0) & (devices > 0)
                allocatable, in_use = np.where(counted, devices, allocatable), np.where(counted, allocated, in_use)
            yield Allocation(resource.weight, allocatable, in_use + request, request)

    def with_devices(self, devices: DeviceAmounts) -> "ScoreState":
        """Return a state that counts devices."""
        state = copy(self)
        state._devices = devices  # noqa: SLF001  # of this class
        return state


class ResourceScore(ScorePlugin[ScoreState]):
    """What the two plugins that score by resources have in common. Upstream has no NormalizeScore for them."""

    states = (ResourceColumns,)
    scores_alone = True
    normalizes_alone = True
    state_lasts = True
    effect_of = staticmethod(effect_of)

    def __init__(self, resources: Sequence[ResourceSpec]) -> None:
        self._resources = with_default_weights(resources)
        self.may_count_devices = any(may_be_devices(each.name) for each in self._resources)

    def counts_devices(self, amounts: DeviceAmounts, pod: Pod) -> bool:
        """Return whether devices provide one of the resources, and the pod requests it.

        Upstream's BalancedAllocation panics if the class has selectors, because it has no cache for CEL (1.36, 1.37).
        Here it counts the devices as NodeResourcesFit does.
        """
        return any(pod.requests.get(each.name) and amounts.backs(each.name) for each in self._resources)

    def with_devices(self, state: ScoreState, amounts: DeviceAmounts) -> ScoreState:
        """Return a state that counts devices."""
        return state.with_devices(amounts)

    def score(self, state: ScoreState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node by the formula."""
        return state.score(batch)

    def score_on(self, state: ScoreState, slot: int) -> int | None:
        """Return the score of the node of a slot."""
        return state.score_on(slot)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Return the scores limited to 0..100. Only overflowed sums are outside, for which upstream has an error.

        That error fails the pod (RunScorePlugins), so one absurd request on one node would keep every pod from every
        node.
        """
        if len(raw) == 1:  # the node of the last decision
            score = raw.item()
            return raw if 0 <= score <= MAX_NODE_SCORE else np.array([min(max(score, 0), MAX_NODE_SCORE)])
        return np.minimum(np.maximum(raw, 0), MAX_NODE_SCORE)  # np.clip takes 1.5 us more


def quotient(dividend: Int64Array, divisor: Int64Array) -> Int64Array:
    """Divide as Go does, truncating towards 0."""
    if dividend.min(initial=0) < 0 or divisor.min(initial=1) < 0:
        dividend = dividend - np.fmod(dividend, divisor)
    exact: Int64Array = dividend // divisor
    return exact


def scorer_of(strategy: ScoringStrategy) -> Scorer:
    """Return the scorer of a strategy without errors."""
    if strategy.type == "LeastAllocated":
        return Scorer(_weighted_mean(_least_requested), _weighted_mean_of_one(_least_requested_of_one))
    if strategy.type == "MostAllocated":
        return Scorer(_weighted_mean(_most_requested), _weighted_mean_of_one(_most_requested_of_one))
    return Scorer(_requested_to_capacity_ratio(_score_by_utilization(strategy.shape)), not_alone)


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


# NodeResourcesBalancedAllocation (balanced_allocation.go): prefers nodes whose resources would be used evenly.

_PAIR: Final = 2


class NodeResourcesBalancedAllocation(ResourceScore):
    """Scores by how evenly the node's resources are requested, exactly as the in-tree plugin.

    Raises ValueError for resources that upstream's ValidateNodeResourcesBalancedAllocationArgs rejects.
    """

    name = "NodeResourcesBalancedAllocation"
    former_scores = (("BalancedResourceAllocation", ""),)
    kinds = (Node, Pod)
    class_fields = ("requests",)
    invalidated_by = (
        node_update(
            when="an allocatable amount changed",
            because="the scores are of shares of the allocatable amounts",
            reads=lambda node: node.allocatable,
        ),
        InvalidationRule(
            kind=Pod,
            scope=Scope.NODE,
            when="it asks for anything, and for something else than before",
            because="what the pods of a node ask for is used of it; pods that ask for nothing are not seen",
            touches=asks_otherwise,
        ),
    )

    def __init__(self, *, resources: Sequence[ResourceSpec] = CPU_AND_MEMORY) -> None:
        super().__init__(resources)
        errors = [*_errors(self._resources)]
        if errors:
            raise ValueError("; ".join(errors))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, ScoreState | None]:
        """Collect the pod's requests. SKIP for a pod without any of the resources (kubernetes issue 129138)."""
        if not any(pod.requests.get(resource.name) for resource in self._resources):
            return SKIP, None
        scorer = _IMPROVEMENT if mirror.rules.balance_of_change else _BALANCE
        columns = mirror.derived(ResourceColumns)
        return SUCCESS, ScoreState(columns, pod.requests, self._resources, scorer, non_zero=False)


def _errors(resources: Sequence[ScoredResource]) -> Iterator[str]:
    names = [resource.name for resource in resources]
    for index, resource in enumerate(resources):
        if resource.name in names[:index]:
            yield f"resources[{index}].name: duplicate value: {resource.name}"
        if resource.weight != 1:
            yield f"resources[{index}].weight: must be 1, got {resource.weight}"


def _improvement(allocations: Sequence[Allocation], length: int) -> Int64Array:
    """Return how much more even the pod makes the node: 75 for no change, 50 to 100 (since v1.36)."""
    without_pod = [each.requested - each.pod_request for each in allocations]
    half = MAX_NODE_SCORE // 2
    change = _balance(allocations, length) - _balance_of(allocations, without_pod, length)
    return half + quotient(half + change, np.full(length, 2, np.int64))


def _balance(allocations: Sequence[Allocation], length: int) -> Int64Array:
    """Return how evenly the resources are requested with the pod: 50 to 100 (until v1.35)."""
    return _balance_of(allocations, [each.requested for each in allocations], length)


def _improvement_of_one(allocations: Sequence[NodeAllocation]) -> int | None:
    if len(allocations) != _PAIR:
        return None
    without_pod = _balance_of_pair(allocations, [each.requested - each.pod_request for each in allocations])
    half = MAX_NODE_SCORE // 2
    return half + (half + _balance_of_pair(allocations, [each.requested for each in allocations]) - without_pod) // 2


def _balance_of_one(allocations: Sequence[NodeAllocation]) -> int | None:
    if len(allocations) != _PAIR:
        return None
    return _balance_of_pair(allocations, [each.requested for each in allocations])


def _balance_of_pair(allocations: Sequence[NodeAllocation], amounts: Sequence[int]) -> int:
    """Return the result of `_balance_of` for two resources of one node. It is never below 50."""
    (first, second), (one, other) = allocations, amounts
    if not (first.allocatable and second.allocatable):
        return MAX_NODE_SCORE
    difference = min(one / first.allocatable, 1.0) - min(other / second.allocatable, 1.0)
    return int((1 - abs(difference) / _PAIR) * float(MAX_NODE_SCORE))


def _balance_of(allocations: Sequence[Allocation], amounts: Sequence[Int64Array], length: int) -> Int64Array:
    """Return 100 less the standard deviation of the shares of amounts, in exactly upstream's float64 operations."""
    if len(allocations) < _PAIR:
        return np.full(length, MAX_NODE_SCORE, np.int64)
    shares = [np.minimum(amount / each.allocatable, 1.0) for each, amount in zip(allocations, amounts, strict=True)]
    if len(allocations) == _PAIR:
        (first, second), (one, other) = allocations, shares
        deviation = np.where(first.offered & second.offered, np.abs(one - other) / _PAIR, 0.0)
    else:
        deviation = _deviation(np.stack([each.offered for each in allocations]), np.stack(shares))
    with np.errstate(invalid="ignore"):  # shares of overflowed sums may be any number, see ResourceScore.normalize
        return ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)


def _deviation(offered: BoolArray, shares: Float64Array) -> Float64Array:
    number: Int64Array = offered.sum(axis=0, dtype=np.int64)
    # For two shares upstream takes half of their difference, which needs no root. One share has no deviation.
    largest, least = np.where(offered, shares, -np.inf).max(axis=0), np.where(offered, shares, np.inf).min(axis=0)
    of_pair = np.where(number == _PAIR, (largest - least) / _PAIR, 0.0)
    return np.where(number > _PAIR, _standard_deviation(offered, shares, number), of_pair)


def _standard_deviation(offered: BoolArray, shares: Float64Array, number: Int64Array) -> Float64Array:
    # Summed in order: numpy's own sums may use another order, and then round differently.
    divisor = np.maximum(number, 1)
    total, squares = np.zeros(len(number)), np.zeros(len(number))
    for there, share in zip(offered, shares, strict=True):
        total += np.where(there, share, 0.0)
    mean = total / divisor
    for there, share in zip(offered, shares, strict=True):
        squares += np.where(there, (share - mean) * (share - mean), 0.0)
    return np.sqrt(squares / divisor)


_IMPROVEMENT: Final = Scorer(_improvement, _improvement_of_one)
_BALANCE: Final = Scorer(_balance, _balance_of_one)
