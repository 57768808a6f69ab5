"""The plugin LoadVariationRiskBalancing: prefer nodes whose usage is low and steady.

Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/loadvariationriskbalancing (analysis.go computeScore) and its README.
The mean utilisation mu includes the pod: it is the measured usage as a share of the capacity, plus the requests as a
share of the allocatable amount. The standard deviation sigma is a share of the capacity. The formulas are
risk = (mu + margin * sigma^(1/sensitivity)) / 2 and score = 100 * (1 - risk). The lower score of cpu and memory counts.

Here mu also includes the requests of the pods that are not measured yet. The original adds only the incoming pod, so
every pod of a burst finds a node as idle as the first one did.
"""

from math import inf
from typing import Final

import msgspec
import numpy as np

from core.framework.interface import MAX_NODE_SCORE
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import MAX_AMOUNT, RESOURCES, ResourceUsage
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.load.load_plugin import Float64Array, LoadPlugin, LoadState, rounded_all

DEFAULT_MARGIN: Final = 1.0
DEFAULT_SENSITIVITY: Final = 1.0


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

    def __init__(
        self, *, safe_variance_margin: float = DEFAULT_MARGIN, safe_variance_sensitivity: float = DEFAULT_SENSITIVITY
    ) -> None:
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
        for resource, asked in enumerate(state.asked):
            usage = state.usage.of(resource, batch)
            scores.append(self._scored(usage, asked + state.unmeasured.of(resource, batch)))
            measured.append(usage.measured)
        lower, higher = np.minimum(*scores), np.maximum(*scores)
        return rounded_all(np.where(measured[0] & measured[1], lower, higher))

    def _scored(self, usage: ResourceUsage, asked: Int64Array) -> Float64Array:
        """Return 100 less the risk of one resource, or 0 if the node has no measurement or none of the resource."""
        capacity = np.maximum(usage.capacity, 1).astype(np.float64)
        allocatable = np.maximum(usage.allocatable, 1).astype(np.float64)
        # As in the original: usage is a share of the capacity, and requests are a share of the allocatable amount.
        mu = np.minimum(np.minimum(usage.average / capacity, 1.0) + asked / allocatable, 1.0)
        sigma = np.minimum(usage.deviation / capacity, 1.0)
        if self._exponent != 1:
            sigma = np.power(sigma, self._exponent)
        risk = (mu + np.minimum(self._margin * sigma, 1.0)) / 2
        usable = usage.measured & (usage.allocatable > 0)
        return np.where(usable, (1 - risk) * MAX_NODE_SCORE, 0.0)
