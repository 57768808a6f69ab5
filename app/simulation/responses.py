"""The responses to the four questions, made of what the simulations found.

Source of the messages about a drain: k8s.io/kubectl v1.37 pkg/drain/filters.go.
"""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.capacity import Capacity
from core.simulation.drain import DELETE_LOCAL_DATA, FORCE, IGNORE_DAEMON_SETS, Drain, DrainedPod
from core.simulation.loss import DomainLoss, Loss
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Move, Workload
from core.simulation.orders import Chance
from core.simulation.removal import Removal


class CapacityResponse(msgspec.Struct, frozen=True):
    """How many more pods fit, after those that are pending now."""

    of: Sequence[str]
    """What the replicas are of: KIND NAMESPACE/NAME. Empty: only the pending pods are asked about."""
    requested: int | None
    """How many were asked for. None: as many as fit."""
    enough: bool
    """Whether at least that many fit in every order; without a number, whether one does; without replicas, whether all
    pending pods do."""
    capacity: Capacity
    assumed: Assumptions

    @property
    def pending(self) -> int:
        """How many pods are pending, with those whose names are hidden."""
        return self.capacity.pending_placed + len(self.capacity.pending_unplaced) + self.assumed.left_out


_MESSAGES: Final[Mapping[str, str]] = {
    IGNORE_DAEMON_SETS: f"cannot delete DaemonSet-managed Pods (use {IGNORE_DAEMON_SETS} to ignore)",
    DELETE_LOCAL_DATA: f"cannot delete Pods with local storage (use {DELETE_LOCAL_DATA} to override)",
    FORCE: f"cannot delete Pods that declare no controller (use {FORCE} to override)",
}
"""Flag -> what kubectl says without it, in the order of its filters."""


class KubectlRejection(msgspec.Struct, frozen=True):
    """Why kubectl would not begin to drain the nodes of some pods."""

    message: str
    """In kubectl's words."""
    pods: Sequence[str]
    """NAMESPACE/NAME"""


class DrainResponse(msgspec.Struct, frozen=True):
    """What a drain does."""

    ok: bool
    """Whether kubectl refuses nothing, every pod is evicted, and all that come again find a place in every order."""
    ends: Chance
    """In how many orders every pod is evicted, as if kubectl refused nothing."""
    nodes: Sequence[str]
    """In the order in which they are drained."""
    command: str
    """The command that drains them, by the selector or the zone if only this chooses them, with all flags it needs."""
    rejections: Sequence[KubectlRejection]
    pods: Sequence[DrainedPod]
    """The pods on the nodes: those that are not evicted, then those without a place, the others, and at last those
    that stay. What becomes of them is as if the flags were given."""
    rounds: int
    """In how many rounds the budgets let the pods of a node go, at most."""
    workloads: Sequence[Workload]
    """The owners of the evicted pods."""
    together: Sequence[str]
    """Owners with several replicas, which all end on one node: KIND NAMESPACE/NAME."""
    assumed: Assumptions


def drain_response(
    drain: Drain, flags: Collection[str], assumed: Assumptions, selector: str | None = None
) -> DrainResponse:
    """Return the response. `flags` are those that are given to kubectl, and `selector` one that chooses the nodes.

    kubectl takes names or one selector. None: names.
    """
    chosen = drain.nodes if selector is None else ["-l", selector]
    rejections = _rejections(drain.pods, flags)
    needed = [flag for flag in _MESSAGES if flag in drain.needs]
    return DrainResponse(
        ok=not (rejections or drain.blocked or drain.unplaced),
        ends=drain.ends,
        nodes=drain.nodes,
        command=shlex.join(["kubectl", "drain", *chosen, *needed]),
        rejections=rejections,
        pods=drain.pods,
        rounds=drain.rounds,
        workloads=drain.workloads,
        together=drain.together,
        assumed=assumed,
    )


def _rejections(pods: Sequence[DrainedPod], flags: Collection[str]) -> list[KubectlRejection]:
    """Return what kubectl says. A filter that refuses a pod ends its examination (filterPods in drain.go)."""
    rejected: dict[str, list[str]] = {}
    for pod in pods:
        lacking = [flag for flag in _MESSAGES if flag in pod.needs and flag not in flags]
        if lacking:
            rejected.setdefault(lacking[0], []).append(pod.move.pod)
    return [
        KubectlRejection(message, sorted(rejected[flag])) for flag, message in _MESSAGES.items() if flag in rejected
    ]


LEFT_OUT: Final = (
    "pods stay on a node that does not answer while they tolerate it: 300 s, or for good if they say so",
    "the node lifecycle controller evicts at a limited rate, and not at all where every zone is down",
    "a replica of a StatefulSet waits until the object of its node is deleted, or is marked out-of-service",
    "until then each pod there only terminates, and counts for affinity, anti-affinity and ReadWriteOncePod",
)
"""What happens beside the loss, and is not simulated.

Source: k8s.io/kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, and
plugin/pkg/admission/defaulttolerationseconds/admission.go.
"""


class DomainResponse(msgspec.Struct, frozen=True):
    """The loss of one domain, in the state of its nodes that is worse."""

    value: str
    """The value of the topology key."""
    survived: bool
    """Whether every pod that comes again finds a place, in every order, and with the nodes in either state."""
    nodes: Sequence[str]
    state: NodeState
    """`out`: the nodes are there and do not answer. `removed`: there are no such nodes."""
    coming: int
    """Pods there that come again."""
    without_place: int
    """Pods of these that find no place, in some order."""
    unknown: int
    """Pods without a place of which it cannot be said."""
    workloads: Sequence[Workload]
    """Owners with pods there, those that keep the smallest share of their replicas first."""
    moves: Collection[Move]
    """One for each pod there, those without a place first."""


class LossResponse(msgspec.Struct, frozen=True):
    """The loss of each domain of a topology key by itself."""

    topology_key: str
    survived: bool
    """Whether the cluster survives the loss of any one domain."""
    domains: Sequence[DomainResponse]
    """The worst first."""
    nodes_without_key: int
    """Nodes that are in no domain."""
    left_out: Sequence[str]
    """What happens beside it, and is not simulated."""
    assumed: Assumptions


def loss_response(loss: Loss, assumed: Assumptions) -> LossResponse:
    """Return the response."""
    return LossResponse(
        topology_key=loss.topology_key,
        survived=loss.is_survived,
        domains=[_domain(each) for each in loss.domains],
        nodes_without_key=loss.nodes_without_key,
        left_out=LEFT_OUT,
        assumed=assumed,
    )


def _domain(loss: DomainLoss) -> DomainResponse:
    worse = loss.worse
    return DomainResponse(
        value=loss.value,
        survived=loss.is_survived,
        nodes=loss.nodes,
        state=worse.state,
        coming=worse.coming,
        without_place=worse.without_place,
        unknown=worse.unknown,
        workloads=worse.workloads,
        moves=worse.moves,
    )


class RemovalResponse(Removal, frozen=True, kw_only=True):
    """Which nodes could go, each by itself and together."""

    assumed: Assumptions
