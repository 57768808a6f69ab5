"""The response to a loss: which zone can fail, what its workloads keep, and which pods find no place."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from app.simulation.assumptions import Assumptions
from core.simulation.loss import DomainLoss, Loss
from core.simulation.lost_nodes import NodeState
from core.simulation.moves import Move, Workload

LEFT_OUT: Final = (
    "pods stay on a node that does not answer for the 300 s that they tolerate it",
    "the node lifecycle controller evicts at a limited rate, and not at all where every zone is down",
    "a replica of a StatefulSet waits until the object of its node is deleted, or is marked out-of-service",
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
