"""The measured usage of nodes, for explanations of the plugins that follow node load."""

from collections.abc import Sequence

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.mirror.node_info import NO_SLOT
from core.mirror.node_values import RESOURCES, NodeUsage
from core.objects.node import NodeMetrics
from core.plugins.load.load_plugin import LoadPlugin


class MeasuredResource(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource: cpu in millicores, memory in bytes."""

    resource: str
    average: int
    deviation: int | None
    """Standard deviation in the window. None if the source has one sample."""
    capacity: int
    """The capacity of the node, else its allocatable amount. 0 if the node reports neither."""


class UsageOnNode(msgspec.Struct, frozen=True, gc=False):
    """The last measurement of a node."""

    measured_at: int | None
    """Seconds since 1970. None if the node was not measured, so the plugins ignore it."""
    too_old: bool
    """Whether the measurement is too old, so the plugins ignore it."""
    resources: Sequence[MeasuredResource]
    pods_not_covered: int
    """Pods that are not measured yet. The plugins add their predicted usage."""


class UsageInCluster(msgspec.Struct, frozen=True, gc=False):
    """The nodes by measurement. The plugins ignore nodes without a usable one."""

    measured: int
    too_old: int
    not_measured: int


def usage_on_node(decision: Diagnosis, position: int) -> UsageOnNode | None:
    """Return the measurement of a node, or None if no plugin follows node load."""
    plugin = _load_plugin(decision)
    node = decision.node(position)
    if plugin is None or node is None:
        return None
    slot = int(decision.batch.slots[position])
    metrics = decision.mirror.objects(NodeMetrics).get(node.name)
    if metrics is None or slot == NO_SLOT:
        return UsageOnNode(None, too_old=False, resources=(), pods_not_covered=0)
    resources = []
    for name in RESOURCES:
        usage = getattr(metrics, name)
        if usage is not None:
            capacity = node.capacity.get(name, node.allocatable.get(name, 0))
            resources.append(MeasuredResource(name, usage.average, usage.deviation, capacity))
    pods = plugin.unmeasured(decision.mirror).pods(slot)
    return UsageOnNode(metrics.measured_at, metrics.too_old, resources, pods)


def usage_in_cluster(decision: Diagnosis) -> UsageInCluster | None:
    """Return how many nodes have a usable measurement, or None if no plugin follows node load."""
    if _load_plugin(decision) is None:
        return None
    usage = decision.mirror.derived(NodeUsage)
    measured = np.zeros(len(decision.batch), np.bool_)
    for resource in range(len(RESOURCES)):
        measured |= usage.of(resource, decision.batch).measured
    too_old = int(np.count_nonzero(usage.outdated(decision.batch)))
    number = int(np.count_nonzero(measured))
    return UsageInCluster(number, too_old, len(decision.batch) - number - too_old)


def _load_plugin(decision: Diagnosis) -> LoadPlugin | None:
    return next((each for each in decision.profile.plugins if isinstance(each, LoadPlugin)), None)
