"""A remedy: the steps after which the pod fits on a node, with all that applying them by hand takes."""

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

import msgspec

from core.diagnosis.amounts.quantities import quantity_text
from core.diagnosis.amounts.requirements import AskedOfNode, Source
from core.diagnosis.pod_names import PodText


class Kind(Enum):
    """What a remedy changes."""

    UNCORDON_NODE = "uncordonNode"
    LOWER_REQUESTS = "lowerRequests"
    TOLERATE_TAINTS = "tolerateTaints"
    RAISE_MAX_SKEW = "raiseMaxSkew"
    LABEL_NODE = "labelNode"
    DROP_REQUIREMENTS = "dropRequirements"
    REMOVE_POD = "removePod"
    ADD_NODE = "addNode"
    COMBINED = "combined"
    """Steps of several kinds."""


class LowerRequest(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="lowerRequest"):
    """Let the pod request less of a resource: cpu in millicores, all others in their own unit."""

    resource: str
    by: int
    to: int
    """The most that fits; 0 where the pod fits only without this request."""

    @property
    def text(self) -> str:
        """Return it as an instruction."""
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
        """Return it as an instruction."""
        return f"tolerate the taint {taint_text(self.key, self.value, self.effect)}"


class DropRequirement(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="dropRequirement"):
    """Take a requirement out of the pod's nodeSelector, or out of a term of its required node affinity.

    If the term has no other requirement, the whole required node affinity goes: an empty term matches no node.
    """

    asked: AskedOfNode

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        place = "nodeSelector" if self.asked.source is Source.NODE_SELECTOR else "required node affinity"
        return f"drop {requirement_text(self.asked)} from the pod's {place}"


class SetLabel(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="setLabel"):
    """Give a node a label, or take it away."""

    node: str
    key: str
    value: str | None
    """None: take it away."""
    had: str | None

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        if self.value is None:
            return f"take the label {self.key}={self.had} from {self.node}"
        instead = f" instead of {self.had}" if self.had else ""
        return f"label {self.node} {self.key}={self.value}{instead}"


class Uncordon(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="uncordon"):
    """Uncordon a node: spec.unschedulable and the taint node.kubernetes.io/unschedulable go."""

    node: str

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        return f"uncordon {self.node}"


class RaiseMaxSkew(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="raiseMaxSkew"):
    """Raise maxSkew of a topology spread constraint of the pod."""

    constraint: int
    """Its place among the pod's constraints."""
    topology_key: str
    domain: str
    """Where the pod then fits."""
    max_skew: int
    to: int

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        return f"raise maxSkew for {self.topology_key} from {self.max_skew} to {self.to}"


class RemovePod(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="removePod"):
    """Let a pod be gone from its node."""

    pod: str
    """NAMESPACE/NAME"""
    uid: str
    node: str

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        return PodText("remove pod ", self.pod, f" from {self.node}")


class AddNode(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag="addNode"):
    """Add a node without pods that is like another one.

    It has the labels (kubernetes.io/hostname is its own name), allocatable amounts, conditions, images and declared
    features of that node, and its taints but for those of node.kubernetes.io. It has no CSINode, so no volume limits.
    """

    name: str
    like: str
    zone: str
    """Of topology.kubernetes.io/zone; empty where the node has none."""
    zones: Sequence[str] = ()
    """The zones of other nodes of this kind: one more node there would do as well."""

    @property
    def text(self) -> str:
        """Return it as an instruction."""
        more = f", or in {' or '.join(self.zones)}" if self.zones else ""
        return f"add a node like {self.like}" + (f" in zone {self.zone}{more}" if self.zone else "")


Step: TypeAlias = (
    LowerRequest | TolerateTaint | DropRequirement | SetLabel | Uncordon | RaiseMaxSkew | RemovePod | AddNode
)


class Remedy(msgspec.Struct, frozen=True, gc=False):
    """Steps after all of which, and with nothing else changed, the pod fits."""

    kind: Kind
    node: str
    """A node that it then fits on."""
    steps: Sequence[Step]
    text: str
    """One line for people."""


def taint_text(key: str, value: str, effect: str) -> str:
    """Return a taint as kubectl writes it."""
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def requirement_text(asked: AskedOfNode) -> str:
    """Return a requirement as kubectl takes selectors (-l)."""
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
