"""What NodeResourcesFit adds to explanations: amounts by resource, and the remedies that lower or free them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from core.events import Kind
from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.obstacles import Candidates, Obstacles, Proposal, Search, Turn, pods_of, proposed
from core.explaining.pod_names import name_of
from core.explaining.pod_steps import LowerRequest
from core.explaining.remedy import Step
from core.explaining.words import counted
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.kinds import DeviceClass
from core.objects.pod import Pod
from core.objects.pod_requests import OVERFLOW, resizes
from core.objects.quantity import quantity_text
from core.plugins.noderesources.columns import PODS, ResourceColumns
from core.plugins.noderesources.filtering import MeasuredResource, PreFilterState

NAME: Final = "NodeResourcesFit"
MAX_RESOURCES: Final = 32
"""How many resources are reported. Each costs a pass over the nodes, and a pod may name hundreds."""
_MAX_OF_VENDOR: Final = 4


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

    @property
    def text(self) -> str:
        """The missing amount in words."""
        requested, free, in_use, allocatable = (
            quantity_text(self.resource, each) for each in (self.requested, self.free, self.in_use, self.allocatable)
        )
        missing = quantity_text(self.resource, self.missing, round_up=True)
        return (
            f"needs {self.resource} {requested}; free {free} ({in_use} of {allocatable} in use): {missing} too little"
        )


class ResourceInCluster(msgspec.Struct, frozen=True, gc=False):
    """A resource on all known nodes of the request, in the unit of ResourceOnNode."""

    resource: str
    requested: int
    """Requested by the pod."""
    origin: str
    """What decides this amount, such as an init container. Empty: the sum over the containers."""
    free: int
    """Free on all nodes together."""
    most_free: int
    most_free_node: str
    """The first node with the greatest free amount. Empty if no node offers the resource."""
    nodes: int
    """How many nodes have enough of this resource for the pod."""
    instead: Sequence[str] = ()
    """Resources of the same vendor that nodes offer, if none offers this one."""

    @property
    def text(self) -> str:
        """The amounts in words."""
        requested, most = (quantity_text(self.resource, each) for each in (self.requested, self.most_free))
        fits = f"enough on {counted(self.nodes, 'node')}" if self.nodes else "enough on no node"
        if self.resource == PODS:
            return f"pods: {fits}; most free on any node: {most}, on {self.most_free_node}"
        origin = f" ({self.origin})" if self.origin else ""
        if not self.most_free_node:
            instead = f", but {', '.join(self.instead)}" if self.instead else ""
            return f"needs {self.resource} {requested}{origin}; no node offers it{instead}"
        most = f"{most}, on {self.most_free_node}"
        return f"needs {self.resource} {requested}{origin}; most free on any node: {most}; {fits}"


def measured_resources(decision: Decision, batch: NodeBatch) -> Iterator[MeasuredResource]:
    """Yield the pod's resources on nodes: `pods`, then at most 32 others. None if NodeResourcesFit is not enabled."""
    state = decision.state_of(NAME)
    if isinstance(state, PreFilterState):
        yield from state.measured(batch, MAX_RESOURCES)


def resources_on_node(decision: Decision, position: int) -> Sequence[ResourceOnNode]:
    """Return the pod's resources on one node."""
    found = []
    for each in measured_resources(decision, decision.batch.part(np.array([position]))):
        allocatable, in_use = int(each.allocatable[0]), int(each.in_use[0])
        missing = each.requested - (allocatable - in_use) if each.short[0] else 0
        found.append(ResourceOnNode(each.resource, each.requested, allocatable, in_use, allocatable - in_use, missing))
    return found


def resources_in_cluster(decision: Decision) -> Sequence[ResourceInCluster]:
    """Return the pod's resources on all nodes. Empty without a known node."""
    if not len(decision.known):
        return ()
    batch, origins = decision.batch.part(decision.known), dict(decision.pod.demand.origins)
    found = []
    for each in measured_resources(decision, batch):
        free = each.allocatable - each.in_use
        most = int(free.argmax())
        found.append(
            ResourceInCluster(
                resource=each.resource,
                requested=each.requested,
                origin=origins.get(each.resource, ""),
                free=int(free.sum()),
                most_free=int(free[most]),
                most_free_node=batch.names[most] if each.allocatable.any() else "",
                nodes=int(np.count_nonzero(~each.short)),
                instead=() if each.allocatable.any() else _of_vendor(decision, each.resource),
            )
        )
    return found


def _of_vendor(decision: Decision, resource: str) -> Sequence[str]:
    vendor, slash, _ = resource.rpartition("/")
    offered = decision.mirror.derived(ResourceColumns).allocatable.of
    return [each for each in sorted(offered) if slash and each.startswith(f"{vendor}/")][:_MAX_OF_VENDOR]


def overflows(decision: Decision) -> Sequence[str]:
    """Return the requests of the pod that no int64 holds, with what kube-scheduler counts instead."""
    return [f"{name} is {origin}" for name, origin in decision.pod.demand.origins if origin.startswith(OVERFLOW)]


class WaitingResize(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node whose resize in place is not done. kube-scheduler counts the larger amount."""

    pod: str
    """NAMESPACE/NAME"""
    node: str
    resource: str
    holds: int
    actual: int
    asked: int

    @property
    def text(self) -> str:
        """What the pod holds, in words."""
        name = self.resource
        holds, actual, requested = (quantity_text(name, each) for each in (self.holds, self.actual, self.asked))
        return f"{self.pod} on {self.node} holds {name} {holds}: its resize from {actual} to {requested} is not done"


def waiting_resizes(decision: Decision, limit: int) -> Sequence[WaitingResize]:
    """Return the resizes that hold most of what the pod requests, if NodeResourcesFit rejects a node.

    None if the search has taken too long, see PodSearch. Source: k8s.io/component-helpers resource/helpers.go
    (AggregateContainerRequests).
    """
    rows, pods = decision.mirror.pods.rows.values(), decision.mirror.pods.pods
    if NAME not in decision.refusing or not decision.search.may_look_at(len(pods)):
        return ()
    known = {decision.batch.names[position] for position in decision.known.tolist()}
    found = []
    # One short pass over all pods: by mirror.placed_pods() it took 30 ms for 150,000.
    for pod, resources in [(pods[row], own) for row in rows if (own := pods.like(row).demand.resources) is not None]:
        for resource, (actual, requested) in resizes(resources).items() if pod.node_name in known else ():
            holds = pod.requests.get(resource, 0)
            if decision.pod.requests.get(resource) and holds > min(actual, requested):
                found.append(WaitingResize(name_of(pod), pod.node_name, resource, holds, actual, requested))
    return sorted(found, key=lambda each: (min(each.actual, each.asked) - each.holds, each.pod))[:limit]


class FreeAmount(msgspec.Struct, frozen=True):
    """The free amount of a resource by node, less nominated pods, and whether it is too little for the pod."""

    resource: str
    requested: int
    free: Int64Array
    short: BoolArray
    least: int
    """What the pod takes if its containers request nothing: the overhead of its RuntimeClass."""

    @property
    def can_be_lowered(self) -> BoolArray:
        """By node, whether the pod fits if its containers request less. A request of 0 is never checked."""
        found: BoolArray = self.free.clip(0) >= self.least
        return found


def free_amounts(obstacles: Obstacles, positions: IntpArray) -> Sequence[FreeAmount]:
    """Return the free amounts of `pods`, then of the pod's resources. Empty without nodes."""
    if not len(positions):
        return ()
    found, nominated, overhead = [], obstacles.once(_nominated), dict(obstacles.decision.pod.demand.overhead)
    for each in measured_resources(obstacles.decision, obstacles.decision.batch.part(positions)):
        free = each.allocatable - each.in_use
        left = (free < each.requested) & ~each.short  # NodeResourcesFit leaves these resources to devices
        for place in np.flatnonzero(np.isin(positions, [*nominated])).tolist():
            free[place] -= nominated[int(positions[place])].get(each.resource, 0)
        short, least = (free < each.requested) & ~left, overhead.get(each.resource, 0)
        found.append(FreeAmount(each.resource, each.requested, free, short, least))
    return found


def _nominated(obstacles: Obstacles) -> Mapping[int, Mapping[str, int]]:
    """Return by position the requests of the nominated pods that count on that node."""
    decision, mirror = obstacles.decision, obstacles.decision.mirror
    slots = [mirror.nodes.slots.get(name, NO_SLOT) for name in mirror.pending.nominated]
    found: dict[int, dict[str, int]] = {}
    for position in np.flatnonzero(np.isin(decision.batch.slots, [each for each in slots if each >= 0])).tolist():
        taken = found.setdefault(position, {})
        for pod in decision.nominated_on(position):
            for resource, amount in {**mirror.counted(pod).requests, PODS: 1}.items():
                taken[resource] = taken.get(resource, 0) + amount
    return found


def lower_requests(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Lower all requests that are too large for a node to the free amounts.

    None if the node has too many pods, or too little for the overhead of the pod's RuntimeClass.
    """
    steps = []
    for each in free_amounts(obstacles, np.array([position])):
        if each.short[0]:
            if each.resource == PODS or not each.can_be_lowered[0]:
                return None
            steps.append(lowered(each.resource, each.requested, int(each.free[0])))
    return steps


def lowered(resource: str, requested: int, free: int) -> LowerRequest:
    """Return the step that lowers a request to the free amount, or to 0, which is never checked, if none is free."""
    to = max(free, 0)
    return LowerRequest(resource, requested - to, to)


def lower_one_request(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each resource to lower only its request, to the most that is free on a node without other shortages.

    If no single request suffices, propose to lower several on the node with the smallest sum of their shares.
    """
    positions = obstacles.only({NAME})
    rooms = free_amounts(obstacles, positions)
    if not rooms:
        return
    pods, *others = rooms
    number = sum((each.short.astype(np.int64) for each in others), np.zeros(len(positions), np.int64))
    found = False
    for each in others:
        alone = np.flatnonzero(each.short & ~pods.short & (number == 1) & each.can_be_lowered)
        if len(alone):
            found = True
            best = int(alone[each.free[alone].argmax()])
            node = obstacles.decision.batch.names[int(positions[best])]
            yield Proposal(node, (lowered(each.resource, each.requested, int(each.free[best])),))
    lowered_all = np.all([each.can_be_lowered | ~each.short for each in others], axis=0)
    several = np.flatnonzero(~pods.short & (number > 1) & lowered_all)
    if not found and len(several):
        best = int(several[missing_shares(others)[several].argmin()])
        yield from proposed(obstacles, lower_requests, int(positions[best]))


def missing_shares(rooms: Sequence[FreeAmount]) -> Int64Array:
    """Return for each node the sum of the shares of requests that do not fit, in thousandths."""
    return sum(
        ((each.requested - each.free).clip(0, each.requested) * 1000 // each.requested for each in rooms),
        np.zeros(len(rooms[0].free), np.int64),
    )


def with_enough(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that request at least the missing amount."""
    missing = {
        each.resource: each.requested - int(each.free[0])
        for each in free_amounts(obstacles, np.array([position]))
        if each.short[0]
    }
    return {
        uid: each
        for uid, each in pods_of(obstacles, position).items()
        if all({**each.pod.requests, PODS: 1}.get(resource, 0) >= amount for resource, amount in missing.items())
    }


_EVENTS: Final = (
    Event("Pod", ("Delete",)),
    Event("Node", ("Add", "UpdateNodeAllocatable")),
    Event("Pod", ("UpdatePodScaleDown",), registered=lambda rules: rules.wakes_by_resize),
    Event("Pod", ("UpdatePodScaleDown",), of_pod_itself=True, registered=lambda rules: rules.wakes_by_resize),
    Event(
        "DeviceClass",
        ("Add", "Update"),
        registered=lambda rules: rules.wakes_by_device_class,
        may_help=lambda decision, _: _asks_for_extended(decision.pod),
    ),
)


def _asks_for_extended(pod: Pod) -> bool:
    return any("/" in resource for resource in pod.requests)


class ExplainedFit(Explained):
    """What the plugin adds to explanations."""

    keeps_off = "the resources that are free"
    events = _EVENTS
    measured = Measured(
        on_node={"resources": lambda decision, position, _: resources_on_node(decision, position)},
        in_cluster={
            "resources": lambda decision, _: resources_in_cluster(decision),
            "overflows": lambda decision, _: overflows(decision),
            "resizes": waiting_resizes,
        },
    )
    remedies = Remedies(
        searches=(Search(Turn.LOWER_REQUEST, lower_one_request),), fix=lower_requests, removable=with_enough
    )

    def reads(self, _mirror: ClusterMirror, pod: Pod, missing: Collection[Kind]) -> Collection[Kind]:
        """Return all kinds, but for a DeviceClass, which provides only extended resources."""
        return missing if _asks_for_extended(pod) else {*missing} - {DeviceClass}

    def shortage(self, obstacles: Obstacles, positions: IntpArray) -> Int64Array | None:
        """Return the sum of the shares of requests that do not fit."""
        return missing_shares(free_amounts(obstacles, positions))
