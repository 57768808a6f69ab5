"""NodeResourcesBalancedAllocation: prefers nodes whose resources would be used evenly.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.events import Kind
from core.framework.interface import (
    MAX_NODE_SCORE,
    SKIP,
    SUCCESS,
    InvalidationRule,
    Operation,
    Scope,
    ScorePlugin,
    Status,
    differs,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.noderesources.columns import ResourceColumns
from core.plugins.noderesources.strategies import (
    CPU_AND_MEMORY,
    Allocation,
    NodeAllocation,
    ResourceSpec,
    Scorer,
    ScoreState,
    in_range,
    quotient,
    with_default_weights,
)

Float64Array: TypeAlias = NDArray[np.float64]

_PAIR: Final = 2


_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="an allocatable amount changed",
        because="the scores are of shares of the allocatable amounts",
        touches=lambda before, after: before.allocatable != after.allocatable,
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it asks for anything, and for something else than before",
        because="what the pods of a node ask for is used of it; pods that ask for nothing are not seen",
        touches=differs(lambda pod: pod.requests, {}),
    ),
)


class BalanceState(msgspec.Struct, frozen=True):
    """The requests of one incoming pod, and the scoring function. Stale after the next event."""

    resources: ScoreState
    scorer: Scorer


class NodeResourcesBalancedAllocation(ScorePlugin[BalanceState]):
    """Scores by how evenly the node's resources are requested, exactly as the in-tree plugin.

    Raises ValueError for resources that upstream's ValidateNodeResourcesBalancedAllocationArgs rejects.
    """

    name = "NodeResourcesBalancedAllocation"
    kinds: tuple[Kind, ...] = (Node, Pod)
    class_fields = ("requests",)
    invalidated_by = _INVALIDATED_BY
    states = (ResourceColumns,)
    scores_alone = True
    normalizes_alone = True

    def __init__(self, *, resources: Sequence[ResourceSpec] = CPU_AND_MEMORY) -> None:
        self._resources = with_default_weights(resources)
        errors = [*_errors(self._resources)]
        if errors:
            raise ValueError("; ".join(errors))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, BalanceState | None]:
        """Collect the pod's requests. SKIP for a pod without any of the resources (kubernetes issue 129138)."""
        if not any(pod.requests.get(resource.name) for resource in self._resources):
            return SKIP, None
        scorer = _IMPROVEMENT if mirror.rules.balance_of_change else _BALANCE
        return SUCCESS, BalanceState(ScoreState(mirror.derived(ResourceColumns), pod.requests, non_zero=False), scorer)

    def score(self, state: BalanceState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node: higher for more even requests, or for a gain in evenness."""
        return state.resources.score(self._resources, state.scorer, batch)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Return the scores, which are already 0..100 (upstream has no NormalizeScore)."""
        return in_range(raw)


def _errors(resources: Sequence[ResourceSpec]) -> Iterator[str]:
    names = [resource.name for resource in resources]
    for index, resource in enumerate(resources):
        if resource.name in names[:index]:
            yield f"resources[{index}].name: duplicate value: {resource.name}"
        if resource.weight != 1:
            yield f"resources[{index}].weight: must be 1, got {resource.weight}"


def _improvement(allocations: Sequence[Allocation], length: int) -> Int64Array:
    """Return how much more even the pod makes the node: 75 for no change, 50 to 100 (since v1.36)."""
    without_pod = [each.requested - each.asked for each in allocations]
    half = MAX_NODE_SCORE // 2
    change = _balance(allocations, length) - _balance_of(allocations, without_pod, length)
    return half + quotient(half + change, np.full(length, 2, np.int64))


def _balance(allocations: Sequence[Allocation], length: int) -> Int64Array:
    """Return how evenly the resources are requested with the pod: 50 to 100 (until v1.35)."""
    return _balance_of(allocations, [each.requested for each in allocations], length)


def _improvement_of_one(allocations: Sequence[NodeAllocation]) -> int | None:
    if len(allocations) != _PAIR:
        return None
    without_pod = _balance_of_pair(allocations, [each.requested - each.asked for each in allocations])
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
    with np.errstate(invalid="ignore"):  # shares of overflowed sums may be any number, see in_range
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
