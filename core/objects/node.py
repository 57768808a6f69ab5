"""The node, reduced to the fields that scheduling reads."""

from collections.abc import Mapping
from typing import Final

import msgspec

from core.objects.kinds import ClusterWide
from core.objects.pod import NO_FEATURES, Taint

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
TOPOLOGY_LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that the node lifecycle controller keeps on cordoned nodes."""

CONDITION_TYPES: Final = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""The types of node conditions that affect a result."""


class Node(ClusterWide, frozen=True, gc=False):
    """A v1.Node, reduced to the fields that the plugins and the mirror read.

    `allocatable` has cpu in millicores, and all other resources in their own unit (bytes, pieces). It includes `pods`.
    `taints` keep the order of the spec, because the first untolerated taint is reported. `images` has every name of
    every image, with the size in bytes.

    `conditions` has the status of CONDITION_TYPES only. The other fields of a condition change with every heartbeat and
    affect no result. A condition that the node does not report is missing.

    `declared_features` is status.declaredFeatures. `capacity` is the cpu and memory of status.capacity, in the units of
    `allocatable`. Measured usage is a share of these amounts.
    """

    labels: Mapping[str, str] = {}
    allocatable: Mapping[str, int] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = {}
    conditions: Mapping[str, str] = {}
    declared_features: frozenset[str] = NO_FEATURES
    capacity: Mapping[str, int] = {}


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource in the window of the measurement: cpu in millicores, memory in bytes, never negative.

    `deviation` is the standard deviation within the window, or None if the source has one sample per window.
    """

    average: int
    deviation: int | None = None


class NodeMetrics(ClusterWide, frozen=True, kw_only=True, gc=False):
    """The last measurement of a node. A resource without a plausible measurement is None.

    `name` is the node's name. `measured_at` is the end of the window, in seconds since 1970. A pod that started after
    `covers_pods_until` (RFC 3339 in UTC and whole seconds, like Pod.start_time) counts as not measured yet. A caller
    with a clock sets `too_old`, see `core.mirror.node_values`. Equal values are one state, so a measurement that is
    read twice changes no state. A measurement has no `uid` and no `resource_version`.
    """

    measured_at: int
    covers_pods_until: str
    window: float = 0.0
    """Length of the window of the averages in seconds, or 0 if the source does not report it."""
    cpu: Usage | None = None
    memory: Usage | None = None
    too_old: bool = False
