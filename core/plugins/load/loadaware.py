"""The plugin LoadAware: reject nodes whose estimated usage exceeds a threshold, and prefer the least used nodes.

Source: koordinator pkg/scheduler/plugins/loadaware (load_aware.go, pod_assign_cache.go, estimator/default_estimator.go)
and its design, 20220510-load-aware-scheduling. The estimated usage of a node is the sum of its measured usage, the
estimated usage of its pods that are not measured yet, and the estimated usage of the incoming pod. Each resource scores
100 * (allocatable - used) / allocatable, or 0 if the used amount exceeds the allocatable one. The score is the weighted
mean.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.scores import MAX_NODE_SCORE, rounded, rounded_all
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import MAX_AMOUNT, RESOURCES
from core.mirror.topology import BoolArray, Int64Array
from core.objects.pod import Pod
from core.plugins.load.load_plugin import LoadPlugin, LoadState

DEFAULT_THRESHOLDS: Final[Mapping[str, int]] = {"cpu": 65, "memory": 95}
"""Percent of the allocatable amount."""
DEFAULT_WEIGHTS: Final[Mapping[str, int]] = {"cpu": 1, "memory": 1}
DEFAULT_SCALING_FACTORS: Final[Mapping[str, int]] = {"cpu": 85, "memory": 70}
"""The estimated usage of a pod, as a percentage of the larger of its request and limit."""

EXPIRED: Final = Status(Code.UNSCHEDULABLE, ("node(s) nodeMetric expired",))
EXCEEDED: Final = tuple(Status(Code.UNSCHEDULABLE, (f"node(s) {name} usage exceed threshold",)) for name in RESOURCES)
_STATUSES: Final = (SUCCESS, *EXCEEDED, EXPIRED)
_PERCENT: Final = 100
_UNSTATED: Final = (250, 200 * 2**20)
"""The estimated usage of a pod without a request and a limit: DefaultMilliCPURequest, DefaultMemoryRequest."""


class EstimatedUsage(msgspec.Struct, frozen=True):
    """A share of the larger of request and limit, at most the limit. A default if the pod has neither."""

    factors: tuple[int, int]

    def __call__(self, pod: Pod) -> tuple[int, int]:
        """Return millicores and bytes."""
        limits = pod.demand.load.limits
        cpu, memory = (
            _estimate(pod.requests.get(name, 0), limit, factor, unstated)
            for name, limit, factor, unstated in zip(RESOURCES, limits, self.factors, _UNSTATED, strict=True)
        )
        return cpu, memory


def _estimate(request: int, limit: int, factor: int, unstated: int) -> int:
    most = max(request, limit)
    if not most:
        return unstated
    estimated = rounded(most * factor / _PERCENT)
    return min(estimated, limit or estimated, MAX_AMOUNT)


class LoadAware(LoadPlugin, FilterPlugin[LoadState]):
    """Filters and scores by the usage of nodes.

    A resource without a measurement rejects no node and scores 0. By default, a measurement that is too old counts as
    missing. The original's `enableScheduleWhenNodeMetricsExpired` has another default: such a node is rejected. Raises
    ValueError for an argument out of its range.
    """

    name = "LoadAware"
    class_fields = ("demand.load", "of_daemon_set", "requests")

    def __init__(
        self,
        *,
        usage_thresholds: Mapping[str, int] = DEFAULT_THRESHOLDS,
        resource_weights: Mapping[str, int] | None = None,
        dominant_resource_weight: int = 0,
        estimated_scaling_factors: Mapping[str, int] = DEFAULT_SCALING_FACTORS,
        enable_schedule_when_node_metrics_expired: bool = True,
    ) -> None:
        if resource_weights is None:
            resource_weights = {} if dominant_resource_weight else DEFAULT_WEIGHTS
        errors = [
            *_errors("usageThresholds", usage_thresholds, 0),
            *_errors("resourceWeights", resource_weights, 0),
            *_errors("resourceWeights", {"dominantResourceWeight": dominant_resource_weight}, 0, ()),
            *_errors("estimatedScalingFactors", estimated_scaling_factors, 1),
        ]
        if errors:
            raise ValueError("; ".join(errors))
        self._thresholds = [usage_thresholds.get(name, 0) for name in RESOURCES]
        self._weights = [resource_weights.get(name, 0) for name in RESOURCES]
        self._dominant_weight = dominant_resource_weight
        self._refuses_expired = not enable_schedule_when_node_metrics_expired
        factors = {**DEFAULT_SCALING_FACTORS, **estimated_scaling_factors}
        super().__init__(EstimatedUsage((factors["cpu"], factors["memory"])))

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, LoadState | None]:
        """Estimate the usage of the pod. SKIP for a pod of a DaemonSet, which has only one possible node."""
        if pod.of_daemon_set or not any(self._thresholds):
            return SKIP, None
        return SUCCESS, self.state(mirror, pod)

    def filter(self, state: LoadState, batch: NodeBatch) -> Verdicts:
        """Reject the nodes that would exceed a threshold. The first such resource gives the reason."""
        codes: Int64Array = np.zeros(len(batch), np.int64)
        for resource, threshold in reversed([*enumerate(self._thresholds)]):
            if threshold:
                measured, used, allocatable = _used(state, resource, batch)
                percent = rounded_all(used / np.maximum(allocatable, 1) * _PERCENT)
                codes[measured & (allocatable > 0) & (percent > threshold)] = 1 + resource
        if self._refuses_expired:
            codes[state.usage.outdated(batch)] = len(_STATUSES) - 1
        return Verdicts(codes, _STATUSES)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, LoadState | None]:
        """Estimate the usage of the pod. SKIP if no resource has a weight."""
        weighs = any(self._weights) or self._dominant_weight
        return super().pre_score(mirror, pod, batch) if weighs else (SKIP, None)

    def score(self, state: LoadState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node."""
        total: Int64Array = np.zeros(len(batch), np.int64)
        dominant: Int64Array = np.full(len(batch), MAX_NODE_SCORE, np.int64)
        anything: BoolArray = np.zeros(len(batch), np.bool_)
        for resource, weight in enumerate(self._weights):
            measured, used, allocatable = _used(state, resource, batch)
            free = np.maximum(allocatable - used, 0)
            score = np.where(measured, free * MAX_NODE_SCORE // np.maximum(allocatable, 1), 0)
            total += weight * score
            dominant = np.minimum(dominant, score)
            anything |= measured
        mean = (total + self._dominant_weight * dominant) // (sum(self._weights) + self._dominant_weight)
        return np.where(anything, mean, 0)


def _used(state: LoadState, resource: int, batch: NodeBatch) -> tuple[BoolArray, Int64Array, Int64Array]:
    """Return for one resource where it is measured, its estimated usage, and its allocatable amount."""
    found = state.usage.of(resource, batch)
    used = found.average + state.unmeasured.of(resource, batch) + state.requests[resource]
    return found.measured, used, found.allocatable


def _errors(field: str, amounts: Mapping[str, int], least: int, known: tuple[str, ...] = RESOURCES) -> Iterator[str]:
    for name, amount in amounts.items():
        if known and name not in known:
            yield f"{field}.{name}: is not measured; there are {', '.join(known)}"
        elif not least <= amount <= _PERCENT:
            where = f"{field}.{name}" if known else name
            yield f"{where}: must be {least}..{_PERCENT}, got {amount}"
