"""The plugins that follow node load: their states, their invalidation rules, and the two that only score."""

from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from core.explaining.explained import Explained, Measured
from core.framework.arguments import NULL, Args, Keywords, ReadQuantity, Strict
from core.framework.interface import SUCCESS, ScorePlugin, Status
from core.framework.invalidation import InvalidationRule, Scope, differs, node_update
from core.framework.scores import MAX_NODE_SCORE, rounded, rounded_all
from core.mirror.changes import NodeChange, ObjectChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.node_values import MAX_AMOUNT, RESOURCES, NodeUsage, ResourceUsage
from core.mirror.topology import Float64Array, Int64Array
from core.objects.node import Node, NodeMetrics
from core.objects.pod import Pod
from core.objects.quantity import millis
from core.plugins.load.explaining import usage_in_cluster, usage_on_node

# The predicted usage of the pods that a node's last measurement does not cover yet, updated by every event.
#
# Source: sigs.k8s.io/scheduler-plugins pkg/trimaran (PodAssignEventHandler, TargetLoadPacking.Score) and koordinator
# pkg/scheduler/plugins/loadaware (podAssignCache). Both count a pod that was assigned later than 60 s before the end
# of the measured window. They take the time of assignment from their own clock, or from the condition PodScheduled.
# Here it is the start of the pod, so that a restart, another replica and a dump give the same result. An assumed pod
# has not started, nor has a pod that its kubelet has not seen.

Prediction: TypeAlias = Callable[[Pod], tuple[int, int]]
"""Predicts the millicores and bytes that a pod uses, from its object alone. Hashable: equal ones share one state."""
_MOST: int = 2**50
"""Upper bound of one pod's amounts. With it, the sums of a node cannot overflow."""


class _Part(NamedTuple):
    start_time: str
    cpu: int
    memory: int


class UnmeasuredUsage:
    """Predicted cpu and memory by slot, of the pods that are not measured yet. A derived state.

    A node without a measurement has no counted pods, because the plugins ignore its sums. A pod is removed once a
    measurement covers it, so the state has the pods of the last minutes, not all pods.
    """

    hears: Final = (NodeChange, ObjectChange, PodChange)

    def __init__(self, mirror: ClusterMirror, prediction: Prediction) -> None:
        """Count the pods of all measured nodes. From then on `changed` must receive every change."""
        self._mirror = mirror
        self._prediction = prediction
        self._sums: Int64Array = np.zeros((2, mirror.nodes.capacity), np.int64)
        self._until: dict[int, str] = {}  # slot -> covers_pods_until of the node's measurement
        self._parts: dict[int, dict[str, _Part]] = {}  # slot -> uid -> counted amounts
        measurements = mirror.objects(NodeMetrics)
        for slot, node in mirror.nodes:
            self._begin(slot, measurements.get(node.name))
        for slot, pod in mirror.placed_pods():
            self._add(slot, pod)

    def changed(self, change: NodeChange | ObjectChange | PodChange) -> None:
        """Follow pods that are added, start or are removed, and measurements."""
        if isinstance(change, PodChange):
            if change.before is not None:
                self._remove(change.slot, change.before.uid)
            if change.after is not None:
                self._add(change.slot, change.after)
        elif isinstance(change, NodeChange):
            if change.before is None and change.after is not None:  # the changes of its pods follow
                self._begin(change.slot, self._mirror.objects(NodeMetrics).get(change.after.name))
            elif change.after is None:
                self._begin(change.slot, None)
        elif change.kind is NodeMetrics and change.slot != NO_SLOT:
            self._measured(change.slot, change.after)

    def of(self, resource: int, batch: NodeBatch) -> Int64Array:
        """Return the predicted amounts on the nodes of a batch. `resource` is as in core.mirror.node_values."""
        found: Int64Array = self._sums[resource].take(batch.slots)
        if batch.unmirrored:
            found[list(batch.unmirrored)] = 0
        return found

    def pods(self, slot: int) -> int:
        """Return how many pods of a node count as not measured."""
        return len(self._parts.get(slot, ()))

    def _begin(self, slot: int, metrics: NodeMetrics | None) -> None:
        """Start counting for a newly measured node, with no pod yet."""
        if slot >= self._sums.shape[1]:
            more = max(slot + 1 - self._sums.shape[1], self._sums.shape[1])
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))
        self._sums[:, slot] = 0
        self._parts.pop(slot, None)
        self._until.pop(slot, None)
        if metrics is not None:
            self._until[slot] = metrics.covers_pods_until

    def _measured(self, slot: int, metrics: NodeMetrics | None) -> None:
        before = self._until.get(slot)
        if metrics is None or before is None or metrics.covers_pods_until < before:
            self._begin(slot, metrics)
            pods = self._mirror.pods
            for row in () if metrics is None else self._mirror.nodes.infos[metrics.name].rows:
                if pods.slot_of_row[row] == slot:  # else the pod is supposed gone
                    self._add(slot, pods.pods[row])
            return
        until = self._until[slot] = metrics.covers_pods_until
        covered = [uid for uid, part in self._parts.get(slot, {}).items() if "" < part.start_time <= until]
        for uid in covered:
            self._remove(slot, uid)

    def _add(self, slot: int, pod: Pod) -> None:
        until = self._until.get(slot)
        if until is None or "" < pod.start_time <= until:
            return
        cpu, memory = self._prediction(pod)
        part = _Part(pod.start_time, min(cpu, _MOST), min(memory, _MOST))
        self._parts.setdefault(slot, {})[pod.uid] = part
        self._count(slot, part, 1)

    def _remove(self, slot: int, uid: str) -> None:
        parts = self._parts.get(slot)
        part = None if parts is None else parts.pop(uid, None)
        if part is None:
            return
        self._count(slot, part, -1)
        if not parts:
            del self._parts[slot]

    def _count(self, slot: int, part: _Part, sign: int) -> None:
        self._sums[0, slot] += sign * part.cpu
        self._sums[1, slot] += sign * part.memory


class UnmeasuredBy(msgspec.Struct, frozen=True):
    """Creates the state of a prediction. Equal values are one key of `ClusterMirror.derived`."""

    prediction: Prediction

    def __call__(self, mirror: ClusterMirror) -> UnmeasuredUsage:
        """Create the state over a mirror."""
        return UnmeasuredUsage(mirror, self.prediction)


INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=NodeMetrics,
        scope=Scope.NODE,
        because="the usage is what is judged; a measurement that has become too old is another state of it",
    ),
    node_update(
        when="its capacity or an allocatable amount changed",
        because="usage is judged as a share of them",
        reads=lambda node: (node.capacity, node.allocatable),
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it came, went or started, or its requests or limits changed",
        because="what a pod that is not measured yet will use is added to the usage",
        touches=differs(lambda pod: (pod.start_time, pod.demand.load, pod.requests)),
    ),
)


class LoadState(msgspec.Struct, frozen=True):
    """The predicted usage of one incoming pod, in millicores and bytes, and that of nodes. Stale after an event."""

    requests: tuple[int, int]
    usage: NodeUsage
    unmeasured: UnmeasuredUsage


class LoadPlugin(Explained, ScorePlugin[LoadState]):
    """Base of these plugins. A node's score depends only on the node, its measurement and its pods."""

    kinds = (Node, Pod, NodeMetrics)
    invalidated_by = INVALIDATED_BY
    scores_alone = True
    normalizes_alone = True

    def __init__(self, prediction: Prediction) -> None:
        self._prediction = prediction
        self._unmeasured = UnmeasuredBy(prediction)
        self.states = (NodeUsage, self._unmeasured)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, LoadState | None]:
        """Predict the usage of the pod."""
        return SUCCESS, self.state(mirror, pod)

    def state(self, mirror: ClusterMirror, pod: Pod) -> LoadState:
        """Return the predicted usage of a pod, and that of nodes."""
        return LoadState(self._prediction(pod), mirror.derived(NodeUsage), self.unmeasured(mirror))

    def unmeasured(self, mirror: ClusterMirror) -> UnmeasuredUsage:
        """Return the predicted usage of the pods that are not measured yet."""
        return mirror.derived(self._unmeasured)

    @property
    def measured(self) -> Measured:  # type: ignore[override]  # it reads the plugin's own counts
        """The last measurement of each node."""
        return Measured(
            {"usage": lambda decision, at, _: usage_on_node(decision, at, self.unmeasured(decision.mirror).pods)},
            {"usage": lambda decision, _: usage_in_cluster(decision)},
        )


# The plugin LoadVariationRiskBalancing: prefer nodes whose usage is low and steady.
#
# Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/loadvariationriskbalancing (analysis.go computeScore) and its
# README. The mean utilisation mu includes the pod: it is the measured usage as a share of the capacity, plus the
# requests as a share of the allocatable amount. The standard deviation sigma is a share of the capacity. The formulas
# are risk = (mu + margin * sigma^(1/sensitivity)) / 2 and score = 100 * (1 - risk). The lower score of cpu and memory
# counts.
#
# Here mu also includes the requests of the pods that are not measured yet. The original adds only the incoming pod,
# so every pod of a burst finds a node as idle as the first one did.


class RequestedUsage(msgspec.Struct, frozen=True):
    """Predicts that a pod uses as much as it requests."""

    def __call__(self, pod: Pod) -> tuple[int, int]:
        """Return millicores and bytes."""
        cpu, memory = (min(pod.requests.get(name, 0), MAX_AMOUNT) for name in RESOURCES)
        return cpu, memory


class LoadVariationRiskBalancing(LoadPlugin):
    """Scores by the risk that the usage of a node exceeds its resources.

    If only cpu or only memory is measured, that one decides. A node without a usable measurement gets 0, as in the
    original. Raises ValueError for an argument out of its range.
    """

    name = "LoadVariationRiskBalancing"
    class_fields = ("requests",)

    def __init__(self, *, safe_variance_margin: float = 1.0, safe_variance_sensitivity: float = 1.0) -> None:
        if not 0 <= safe_variance_margin < inf:
            raise ValueError(f"safeVarianceMargin: must be a number from 0, got {safe_variance_margin}")
        if not 0 <= safe_variance_sensitivity < inf:
            raise ValueError(f"safeVarianceSensitivity: must be a number from 0, got {safe_variance_sensitivity}")
        self._margin = safe_variance_margin
        self._exponent = 1 / safe_variance_sensitivity if safe_variance_sensitivity else inf
        super().__init__(RequestedUsage())

    def score(self, state: LoadState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node."""
        scores, measured = [], []
        for resource, amount in enumerate(state.requests):
            usage = state.usage.of(resource, batch)
            scores.append(self._scored(usage, amount + state.unmeasured.of(resource, batch)))
            measured.append(usage.measured)
        lower, higher = np.minimum(*scores), np.maximum(*scores)
        return rounded_all(np.where(measured[0] & measured[1], lower, higher))

    def _scored(self, usage: ResourceUsage, requests: Int64Array) -> Float64Array:
        """Return 100 less the risk of one resource, or 0 if the node has no measurement or none of the resource."""
        capacity = np.maximum(usage.capacity, 1).astype(np.float64)
        allocatable = np.maximum(usage.allocatable, 1).astype(np.float64)
        # As in the original: usage is a share of the capacity, and requests are a share of the allocatable amount.
        mu = np.minimum(np.minimum(usage.average / capacity, 1.0) + requests / allocatable, 1.0)
        sigma = np.minimum(usage.deviation / capacity, 1.0)
        if self._exponent != 1:
            sigma = np.power(sigma, self._exponent)
        risk = (mu + np.minimum(self._margin * sigma, 1.0)) / 2
        usable = usage.measured & (usage.allocatable > 0)
        return np.where(usable, (1 - risk) * MAX_NODE_SCORE, 0.0)


# The plugin TargetLoadPacking: fill nodes up to a target cpu utilisation, and spread pods beyond it.
#
# Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/targetloadpacking/targetloadpacking.go, and its design, KEP-61.
# With t the target and u the predicted utilisation in percent, the score is (100 - t) * u / t + t up to the target, t
# * (100 - u) / (100 - t) from there to 100, and 0 beyond.

_CPU: Final = 0
_MAX_MULTIPLIER: Final = 1000.0


class PredictedCpu(msgspec.Struct, frozen=True):
    """Millicores: the limit of each container, else its request times a factor, else a default, plus the overhead."""

    multiplier: float
    default: int

    def __call__(self, pod: Pod) -> tuple[int, int]:
        """Return the millicores, and no bytes."""
        load = pod.demand.load
        requested = sum([rounded(request * self.multiplier) for request in load.requested_cpu])
        return load.limited_cpu + requested + load.unstated * self.default + load.overhead_cpu, 0


class CpuRequest(Strict):
    """The requests of a container without one: only of cpu."""

    cpu: msgspec.Raw = NULL


class TargetLoadPackingArgs(Args):
    """The arguments of TargetLoadPacking."""

    target_utilization: int | None = None
    default_requests: CpuRequest | None = None
    default_requests_multiplier: str | None = None

    def keywords(self, quantity: ReadQuantity) -> Keywords:
        """Return the arguments of the constructor. Raises ValueError."""
        given: Keywords = {}
        if self.target_utilization:  # as upstream, use the default for 0, too
            given["target_utilization"] = self.target_utilization
        if self.default_requests is not None and self.default_requests.cpu != NULL:
            given["default_request"] = millis(quantity(self.default_requests.cpu, "defaultRequests.cpu"))
        if self.default_requests_multiplier is not None:
            given["default_requests_multiplier"] = _number(self.default_requests_multiplier)
        return given


def _number(text: str) -> float:
    """Read a number that the API represents as a string."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"defaultRequestsMultiplier: expected a number, got {text[:40]!r}") from None


class TargetLoadPacking(LoadPlugin):
    """Scores by the cpu that a node would use with the pod, including pods that are not measured yet.

    A node without a usable measurement gets 0, as in the original. Raises ValueError for an argument out of its range.
    """

    name = "TargetLoadPacking"
    arguments = TargetLoadPackingArgs
    class_fields = ("demand.load",)

    def __init__(
        self,
        *,
        target_utilization: int = 40,
        default_requests_multiplier: float = 1.5,
        default_request: int = 1000,
    ) -> None:
        """`default_request`: millicores of a container without a request and a limit."""
        if not 1 <= target_utilization < MAX_NODE_SCORE:
            raise ValueError(f"targetUtilization: must be 1..99, got {target_utilization}")
        if not 0 <= default_requests_multiplier <= _MAX_MULTIPLIER:
            raise ValueError(f"defaultRequestsMultiplier: must be 0..1000, got {default_requests_multiplier}")
        if default_request < 0:
            raise ValueError(f"defaultRequests.cpu: must not be negative, got {default_request}m")
        self._target = float(target_utilization)
        super().__init__(PredictedCpu(default_requests_multiplier, default_request))

    def score(self, state: LoadState, batch: NodeBatch) -> Int64Array:
        """Return the score of every node."""
        cpu = state.usage.of(_CPU, batch)
        used = cpu.average.astype(np.float64) + state.requests[_CPU] + state.unmeasured.of(_CPU, batch)
        utilization = np.where(cpu.capacity > 0, 100 * used / np.maximum(cpu.capacity, 1), 0.0)
        return np.where(cpu.measured, self._packed(utilization), 0)

    def _packed(self, utilization: Float64Array) -> Int64Array:
        target, most = self._target, float(MAX_NODE_SCORE)
        below = (most - target) * utilization / target + target
        above = target * (most - np.minimum(utilization, most)) / (most - target)
        return rounded_all(np.where(utilization <= target, below, above))
