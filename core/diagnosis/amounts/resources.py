"""Resources, as NodeResourcesFit measures them: requested, allocatable, in use, free and missing, also as text."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.mirror.node_info import NodeBatch
from core.plugins.noderesources.fit import MeasuredResource, NodeResourcesFit, PreFilterState

MAX_RESOURCES: Final = 32
"""How many resources are reported. Each costs a pass over the nodes, and a pod may name hundreds."""


class ResourceOnNode(msgspec.Struct, frozen=True, gc=False):
    """A resource on one node: cpu in millicores, all others in their own unit (bytes, pieces)."""

    resource: str
    requested: int
    """Requested by the pod, 1 for `pods`."""
    allocatable: int
    in_use: int
    """Requested by the pods on the node."""
    free: int
    """Negative if the pods on the node request more than is allocatable."""
    missing: int
    """The amount that the pod lacks. 0 if the node has enough of this resource for NodeResourcesFit."""


class ResourceInCluster(msgspec.Struct, frozen=True, gc=False):
    """A resource on all known nodes of the request, in the unit of ResourceOnNode."""

    resource: str
    requested: int
    """Requested by the pod."""
    free: int
    """Free on all nodes together."""
    most_free: int
    most_free_node: str
    """The first node with the greatest free amount."""
    nodes: int
    """How many nodes have enough of this resource for the pod."""


def measured_resources(decision: Diagnosis, batch: NodeBatch) -> Iterator[MeasuredResource]:
    """Yield the measured resources of the pod on nodes: `pods` first, then at most 32 others.

    Yields none if NodeResourcesFit is not enabled.
    """
    state = decision.state_of(NodeResourcesFit.name)
    if isinstance(state, PreFilterState):
        yield from state.measured(batch, MAX_RESOURCES)


def resources_on_node(decision: Diagnosis, position: int) -> Sequence[ResourceOnNode]:
    """Return the pod's resources on one node."""
    found = []
    for each in measured_resources(decision, decision.batch.part(np.array([position]))):
        allocatable, in_use = int(each.allocatable[0]), int(each.in_use[0])
        missing = each.asked - (allocatable - in_use) if each.short[0] else 0
        found.append(ResourceOnNode(each.resource, each.asked, allocatable, in_use, allocatable - in_use, missing))
    return found


def resources_in_cluster(decision: Diagnosis) -> Sequence[ResourceInCluster]:
    """Return the pod's resources on all nodes. Empty without a known node."""
    if not len(decision.known):
        return ()
    batch = decision.batch.part(decision.known)
    found = []
    for each in measured_resources(decision, batch):
        free = each.allocatable - each.in_use
        most = int(free.argmax())
        found.append(
            ResourceInCluster(
                resource=each.resource,
                requested=each.asked,
                free=int(free.sum()),
                most_free=int(free[most]),
                most_free_node=batch.names[most],
                nodes=int(np.count_nonzero(~each.short)),
            )
        )
    return found


_BINARY: Final = {"Ei": 2**60, "Pi": 2**50, "Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}
_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MILLIS: Final = 1000
_SHORT: Final = 10_000
"""Numbers below this value are written in full."""
_PLACES: Final = 100


def quantity_text(resource: str, amount: int, *, round_up: bool = False) -> str:
    """Return an amount (cpu in millicores, all others in their own unit) in the notation of Kubernetes.

    Bytes have at most two decimals. They are rounded down, or up with `round_up`.
    """
    if amount < 0:
        return f"-{quantity_text(resource, -amount, round_up=not round_up)}"
    if resource == "cpu":
        whole, millis = divmod(amount, _MILLIS)
        return f"{amount}m" if millis else f"{whole}"
    return _bytes_text(amount, round_up=round_up) if resource.startswith(_IN_BYTES) else f"{amount}"


def _bytes_text(amount: int, *, round_up: bool) -> str:
    for suffix, unit in _BINARY.items():
        if amount >= unit and not amount % unit and amount // unit < _SHORT:
            return f"{amount // unit}{suffix}"
    for suffix, unit in _BINARY.items():
        if amount >= unit:
            hundredths = -(-amount * _PLACES // unit) if round_up else amount * _PLACES // unit
            whole, rest = divmod(hundredths, _PLACES)
            return f"{whole}.{rest:02d}".rstrip("0").rstrip(".") + suffix
    return f"{amount}"
