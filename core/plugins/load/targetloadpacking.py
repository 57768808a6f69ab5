"""The plugin TargetLoadPacking: fill nodes up to a target cpu utilisation, and spread pods beyond it.

Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/targetloadpacking/targetloadpacking.go, and its design, KEP-61. With
t the target and u the predicted utilisation in percent, the score is (100 - t) * u / t + t up to the target, t * (100 -
u) / (100 - t) from there to 100, and 0 beyond.
"""

from typing import Final

import msgspec
import numpy as np

from core.framework.interface import MAX_NODE_SCORE
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.load.load_plugin import Float64Array, LoadPlugin, LoadState, rounded, rounded_all

DEFAULT_TARGET_UTILIZATION: Final = 40
DEFAULT_REQUESTS_MULTIPLIER: Final = 1.5
DEFAULT_REQUEST: Final = 1000
"""Millicores of a container without a request and a limit."""

_CPU: Final = 0
_MAX_MULTIPLIER: Final = 1000.0


class PredictedCpu(msgspec.Struct, frozen=True):
    """Millicores: the limit of each container, else its request times a factor, else a default, plus the overhead."""

    multiplier: float
    default: int

    def __call__(self, pod: Pod) -> tuple[int, int]:
        """Return the millicores, and no bytes."""
        load = pod.load
        requested = sum([rounded(request * self.multiplier) for request in load.requested_cpu])
        return load.limited_cpu + requested + load.unstated * self.default + load.overhead_cpu, 0


class TargetLoadPacking(LoadPlugin):
    """Scores by the cpu that a node would use with the pod, including pods that are not measured yet.

    A node without a usable measurement gets 0, as in the original. Raises ValueError for an argument out of its range.
    """

    name = "TargetLoadPacking"
    class_fields = ("load",)

    def __init__(
        self,
        *,
        target_utilization: int = DEFAULT_TARGET_UTILIZATION,
        default_requests_multiplier: float = DEFAULT_REQUESTS_MULTIPLIER,
        default_request: int = DEFAULT_REQUEST,
    ) -> None:
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
        used = cpu.average.astype(np.float64) + state.asked[_CPU] + state.unmeasured.of(_CPU, batch)
        utilization = np.where(cpu.capacity > 0, 100 * used / np.maximum(cpu.capacity, 1), 0.0)
        return np.where(cpu.measured, self._packed(utilization), 0)

    def _packed(self, utilization: Float64Array) -> Int64Array:
        target, most = self._target, float(MAX_NODE_SCORE)
        below = (most - target) * utilization / target + target
        above = target * (most - np.minimum(utilization, most)) / (most - target)
        return rounded_all(np.where(utilization <= target, below, above))
