"""A remedy: the steps after which the pod fits on a node, with the details for applying them by hand."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from core.diagnosis.amounts.quantities import quantity_text
from core.diagnosis.amounts.requirements import AskedOfNode, Source
from core.diagnosis.pod_names import PodText

ZONE: Final = "topology.kubernetes.io/zone"


class Kind(Enum):
    """The kind of change."""

    UNCORDON_NODE = "uncordonNode"
    LOWER_REQUESTS = "lowerRequests"
    TOLERATE_TAINTS = "tolerateTaints"
    RAISE_MAX_SKEW = "raiseMaxSkew"
    RELAX_SPREAD = "relaxSpread"
    CHANGE_HOST_PORTS = "changeHostPorts"
    DROP_NODE_NAME = "dropNodeName"
    RUN_POD = "runPod"
    LABEL_NODE = "labelNode"
    DROP_REQUIREMENTS = "dropRequirements"
    REMOVE_POD = "removePod"
    ADD_NODE = "addNode"
    COMBINED = "combined"
    """Steps of several kinds."""


class LowerRequest(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="lowerRequest"):
    """Lower the pod's request of a resource: cpu in millicores, all others in their own unit."""

    resource: str
    by: int
    to: int
    """The largest amount that fits. 0 if the pod fits only without this request."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        by = quantity_text(self.resource, self.by, round_up=True)
        if not self.to:
            return f"drop the {self.resource} request of {by}"
        return f"lower the {self.resource} request by {by} to {quantity_text(self.resource, self.to)}"


class TolerateTaint(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="tolerateTaint"):
    """Give the pod a toleration of exactly this taint (operator Equal)."""

    key: str
    value: str
    effect: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"tolerate the taint {taint_text(self.key, self.value, self.effect)}"


class DropRequirement(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="dropRequirement"):
    """Remove a requirement from the pod's nodeSelector, or from a term of its required node affinity.

    If the term has no other requirement, the whole required node affinity is removed, because an empty term matches no
    node.
    """

    asked: AskedOfNode

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        place = "nodeSelector" if self.asked.source is Source.NODE_SELECTOR else "required node affinity"
        return f"drop {requirement_text(self.asked)} from the pod's {place}"


class SetLabel(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="setLabel"):
    """Set a label of a node, or remove it."""

    node: str
    key: str
    value: str | None
    """None means that the label is removed."""
    had: str | None

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.value is None:
            return f"take the label {self.key}={self.had} from {self.node}"
        instead = f" instead of {self.had}" if self.had else ""
        return f"label {self.node} {self.key}={self.value}{instead}"


class Uncordon(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="uncordon"):
    """Uncordon a node: reset spec.unschedulable, and remove the taint node.kubernetes.io/unschedulable."""

    node: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"uncordon {self.node}"


class RaiseMaxSkew(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="raiseMaxSkew"):
    """Raise maxSkew of a topology spread constraint of the pod."""

    constraint: int
    """Its index among the pod's constraints."""
    topology_key: str
    domain: str
    """The domain in which the pod then fits."""
    max_skew: int
    to: int

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"raise maxSkew for {self.topology_key} from {self.max_skew} to {self.to}"


class RelaxSpread(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="relaxSpread"):
    """Set whenUnsatisfiable of a topology spread constraint of the pod to ScheduleAnyway."""

    constraint: int
    """Its index among the pod's constraints."""
    topology_key: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"set whenUnsatisfiable for {self.topology_key} to ScheduleAnyway"


class ChangeHostPort(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="changeHostPort"):
    """Change a host port of the pod to one that no pod has on any node."""

    port: int
    protocol: str
    to: int

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"use the host port {self.to}/{self.protocol} instead of {self.port}"


class DropNodeName(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="dropNodeName"):
    """Remove spec.nodeName of the pod, so that a scheduler chooses its node."""

    name: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"drop nodeName {self.name} from the pod"


class RunPod(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="runPod"):
    """Run another pod with certain labels and without requests on the node."""

    namespace: str
    labels: Mapping[str, str]
    node: str
    domains: Mapping[str, str]
    """Topology key -> the domain in which the pod must run. Any node in all of these domains is suitable."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()))
        which = f" with {labels}" if labels else ""
        where = " and ".join(f"{key}={value}" for key, value in sorted(self.domains.items()))
        return f"run a pod{which} in namespace {self.namespace} where {where}"


class RemovePod(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="removePod"):
    """Remove a pod from its node."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    budgets: Sequence[str] = ()
    """NAMESPACE/NAME of the mirrored PodDisruptionBudgets that forbid its eviction now."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        forbids = "forbids" if len(self.budgets) == 1 else "forbid"
        names = [piece for budget in self.budgets for piece in (" and ", budget)][1:]
        forbidden = (", whose eviction ", *names, f" {forbids} now") if names else ()
        return PodText("remove pod ", self.pod, f" from {self.node}", *forbidden)


class AddNode(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="addNode"):
    """Add a node without pods that is like an existing one.

    It has the labels, allocatable amounts, conditions, images and declared features of that node.
    kubernetes.io/hostname is its own name, and `labels` has other differing labels. It has the same taints, except for
    node.kubernetes.io taints. It has no CSINode, so no volume limits.
    """

    name: str
    like: str
    zone: str
    """Value of topology.kubernetes.io/zone. Empty if the node has none."""
    zones: Sequence[str] = ()
    """The other zones with nodes of this kind. One more node there would also help."""
    labels: Mapping[str, str] = {}
    """Labels that differ from that node's, because bound volumes of the pod require them."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        more = f", or in {' or '.join(self.zones)}" if self.zones else ""
        labels = ",".join(f"{key}={value}" for key, value in sorted(self.labels.items()) if key != ZONE)
        other = "" if self.name.startswith(f"{self.like}-copy") else f" named {self.name}"
        other += f" with {labels}" if labels else ""
        return f"add a node like {self.like}{other}" + (f" in zone {self.zone}{more}" if self.zone else "")


Step: TypeAlias = (
    LowerRequest
    | TolerateTaint
    | DropRequirement
    | SetLabel
    | Uncordon
    | RaiseMaxSkew
    | RelaxSpread
    | ChangeHostPort
    | DropNodeName
    | RunPod
    | RemovePod
    | AddNode
)


class Remedy(msgspec.Struct, frozen=True, gc=False):
    """Steps that together, without any other change, let the pod fit."""

    kind: Kind
    node: str
    """A node on which the pod then fits."""
    steps: Sequence[Step]
    text: str
    """The remedy in one line."""


def taint_text(key: str, value: str, effect: str) -> str:
    """Return a taint in kubectl's notation."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def requirement_text(asked: AskedOfNode) -> str:
    """Return a requirement in kubectl's notation of selectors (-l)."""
    values = ", ".join(asked.values)
    match asked.operator:
        case "In" if len(asked.values) == 1:
            return f"{asked.key}={values}"
        case "In":
            return f"{asked.key} in ({values})"
        case "NotIn":
            return f"{asked.key} notin ({values})"
        case "Exists":
            return asked.key
        case "DoesNotExist":
            return f"!{asked.key}"
        case _:
            return f"{asked.key} {'>' if asked.operator == 'Gt' else '<'} {values}"
