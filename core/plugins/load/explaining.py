"""What the plugins that follow node load add to explanations: the last measurement of each node."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.words import counted
from core.mirror.node_info import NO_SLOT
from core.mirror.node_values import RESOURCES, NodeUsage
from core.objects.node import NodeMetrics
from core.objects.quantity import quantity_text


class MeasuredResource(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource: cpu in millicores, memory in bytes."""

    resource: str
    average: int
    deviation: int | None
    """Standard deviation in the window. None if the source has one sample."""
    capacity: int
    """The capacity of the node, else its allocatable amount. 0 if the node reports neither."""

    @property
    def text(self) -> str:
        """The usage in words."""
        average, capacity = (quantity_text(self.resource, amount) for amount in (self.average, self.capacity))
        steady = "" if self.deviation is None else f", deviation {quantity_text(self.resource, self.deviation)}"
        return f"{self.resource} {average} of {capacity}{steady}"


class UsageOnNode(msgspec.Struct, frozen=True, gc=False):
    """The last measurement of a node."""

    measured_at: int | None
    """Seconds since 1970. None if the node was not measured, so the plugins ignore it."""
    too_old: bool
    """Whether the measurement is too old, so the plugins ignore it."""
    resources: Sequence[MeasuredResource]
    pods_not_covered: int
    """Pods that are not measured yet. The plugins add their predicted usage."""

    def text(self, when: Callable[[int], str]) -> str:
        """Return the measurement in words. `when` writes seconds since 1970 as a time."""
        if self.measured_at is None:
            return "usage: not measured, so the plugins that follow it pass the node over"
        at = when(self.measured_at)
        if self.too_old:
            return f"usage: measured at {at}, too long ago, so the plugins that follow it pass the node over"
        measured = ", ".join(each.text for each in self.resources) or "nothing measured"
        more = f"; not measured yet: {counted(self.pods_not_covered, 'pod')}" if self.pods_not_covered else ""
        return f"usage at {at}: {measured}{more}"


class UsageInCluster(msgspec.Struct, frozen=True, gc=False):
    """The nodes by measurement. The plugins ignore nodes without a usable one."""

    measured: int
    too_old: int
    not_measured: int

    @property
    def text(self) -> str:
        """The nodes by measurement, in words."""
        return (
            f"usage: measured on {counted(self.measured, 'node')}; the plugins that follow it pass over "
            f"{self.too_old:,} measured too long ago and {self.not_measured:,} not measured"
        )


def usage_on_node(decision: Decision, position: int, unmeasured: Callable[[int], int]) -> UsageOnNode | None:
    """Return the measurement of a node. None for a node that nobody knows. `unmeasured` counts pods, by slot."""
    node = decision.node(position)
    if node is None:
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
    return UsageOnNode(metrics.measured_at, metrics.too_old, resources, unmeasured(slot))


def usage_in_cluster(decision: Decision) -> UsageInCluster:
    """Return how many nodes have a usable measurement."""
    usage = decision.mirror.derived(NodeUsage)
    measured = np.zeros(len(decision.batch), np.bool_)
    for resource in range(len(RESOURCES)):
        measured |= usage.of(resource, decision.batch).measured
    too_old = int(np.count_nonzero(usage.outdated(decision.batch)))
    number = int(np.count_nonzero(measured))
    return UsageInCluster(number, too_old, len(decision.batch) - number - too_old)
