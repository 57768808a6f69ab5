"""A remedy: the steps after which the pod fits on a node, with the details for applying them by hand.

A step changes the pod as a value, or the cluster as a supposition.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from core.diagnosis.amounts.requirements import NODE_NAME, Asked, AskedOfNode, Source, told_of
from core.diagnosis.amounts.resources import quantity_text
from core.diagnosis.pod_names import PodText
from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition, WhatIfError
from core.objects.affinity import NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.labels import Selector
from core.objects.node import HOSTNAME, ZONE, Node
from core.objects.pod import SCHEDULE_ANYWAY, Pod, SpreadConstraint, Toleration
from core.plugins.nodeunschedulable import UNSCHEDULABLE

SUPPOSED: Final = "supposed"
"""Name of a supposed pod, and prefix of its UID. No UID of the API server has a slash."""
NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
NODE_CONDITIONS: Final = "node.kubernetes.io/"
"""Prefix of the taints that the control plane sets for the state of a node."""


class Kind(Enum):
    """The kind of change."""

    UNCORDON_NODE = "uncordonNode"
    LOWER_REQUESTS = "lowerRequests"
    TOLERATE_TAINTS = "tolerateTaints"
    RAISE_MAX_SKEW = "raiseMaxSkew"
    RELAX_SPREAD = "relaxSpread"
    RUN_POD = "runPod"
    LABEL_NODE = "labelNode"
    DROP_REQUIREMENTS = "dropRequirements"
    REMOVE_POD = "removePod"
    ADD_NODE = "addNode"
    COMBINED = "combined"
    """Steps of several kinds."""


class _Step(msgspec.Struct, frozen=True, gc=False, tag_field="step", tag=lambda name: f"{name[0].lower()}{name[1:]}"):
    """One change, to the pod or to the cluster."""

    kind: ClassVar[Kind]

    def changed(self, pod: Pod) -> Pod:
        """Return a pod after the step. It must have its counted requests (ClusterMirror.counted)."""
        return pod

    def suppose(self, mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose the step in the cluster. Raises WhatIfError for a missing object."""


class LowerRequest(_Step, frozen=True, gc=False):
    """Lower the pod's request of a resource: cpu in millicores, all others in their own unit."""

    kind = Kind.LOWER_REQUESTS
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

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the lower request."""
        return replace(pod, requests={**pod.requests, self.resource: self.to}, resources=None)


class TolerateTaint(_Step, frozen=True, gc=False):
    """Give the pod a toleration of exactly this taint (operator Equal)."""

    kind = Kind.TOLERATE_TAINTS
    key: str
    value: str
    effect: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"tolerate the taint {taint_text(self.key, self.value, self.effect)}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the toleration."""
        return replace(pod, tolerations=pod.tolerations | {Toleration(self.key, "Equal", self.value, self.effect)})


class DropRequirement(_Step, frozen=True, gc=False):
    """Remove a requirement from the pod's nodeSelector, or from a term of its required node affinity.

    If the term has no other requirement, the whole required node affinity is removed, because an empty term matches no
    node.
    """

    kind = Kind.DROP_REQUIREMENTS
    asked: AskedOfNode

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        place = "nodeSelector" if self.asked.source is Source.NODE_SELECTOR else "required node affinity"
        return f"drop {self.asked.text} from the pod's {place}"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod without the requirement."""
        return replace(pod, node_affinity=_without(pod.node_affinity, self.asked))


class SetLabel(_Step, frozen=True, gc=False):
    """Set a label of a node, or remove it."""

    kind = Kind.LABEL_NODE
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

    def suppose(self, mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose that the node has the label, or does not."""
        node = _known(mirror, self.node)
        labels = {key: value for key, value in node.labels.items() if key != self.key}
        if self.value is not None:
            labels[self.key] = self.value
        supposed.change_node(replace(node, labels=labels))


class Uncordon(_Step, frozen=True, gc=False):
    """Uncordon a node: reset spec.unschedulable, and remove the taint node.kubernetes.io/unschedulable."""

    kind = Kind.UNCORDON_NODE
    node: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"uncordon {self.node}"

    def suppose(self, mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose that the node is not cordoned."""
        node = _known(mirror, self.node)
        taints = tuple(taint for taint in node.taints if taint != UNSCHEDULABLE)
        supposed.change_node(replace(node, unschedulable=False, taints=taints))


class RaiseMaxSkew(_Step, frozen=True, gc=False):
    """Raise maxSkew of a topology spread constraint of the pod."""

    kind = Kind.RAISE_MAX_SKEW
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

    def changed(self, pod: Pod) -> Pod:
        """Return a pod with the greater maxSkew."""
        return _with_constraint(pod, self.constraint, replace(pod.spread[self.constraint], max_skew=self.to))


class RelaxSpread(_Step, frozen=True, gc=False):
    """Set whenUnsatisfiable of a topology spread constraint of the pod to ScheduleAnyway."""

    kind = Kind.RELAX_SPREAD
    constraint: int
    """Its index among the pod's constraints."""
    topology_key: str

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        return f"set whenUnsatisfiable for {self.topology_key} to ScheduleAnyway"

    def changed(self, pod: Pod) -> Pod:
        """Return a pod whose constraint is a preference."""
        relaxed = replace(pod.spread[self.constraint], when_unsatisfiable=SCHEDULE_ANYWAY)
        return _with_constraint(pod, self.constraint, relaxed)


class RunPod(_Step, frozen=True, gc=False):
    """Run another pod with certain labels and without requests on the node."""

    kind = Kind.RUN_POD
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

    def suppose(self, _mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose that the pod is on the node. A remedy has at most one such step."""
        supposed.place(Pod(f"{SUPPOSED}/pod", self.namespace, SUPPOSED, self.labels), self.node)


class RemovePod(_Step, frozen=True, gc=False):
    """Remove a pod from its node."""

    kind = Kind.REMOVE_POD
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

    def suppose(self, mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose that the pod is gone."""
        pod = mirror.get_pod(self.uid)
        if pod is None:
            raise WhatIfError(f"pod {self.pod} is not there")
        supposed.remove(pod)


class AddNode(_Step, frozen=True, gc=False):
    """Add a node without pods that is like an existing one.

    It has the labels, allocatable amounts, conditions, images and declared features of that node.
    kubernetes.io/hostname is its own name, and `labels` has other differing labels. It has the same taints, except for
    node.kubernetes.io taints. It has no CSINode, so no volume limits.
    """

    kind = Kind.ADD_NODE
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

    def suppose(self, mirror: ClusterMirror, supposed: Supposition) -> None:
        """Suppose that the node is there."""
        supposed.add_node(copy_of(_known(mirror, self.like), self.name, self.labels))


Step: TypeAlias = (
    LowerRequest
    | TolerateTaint
    | DropRequirement
    | SetLabel
    | Uncordon
    | RaiseMaxSkew
    | RelaxSpread
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


def copy_of(node: Node, name: str, labels: Mapping[str, str] = NO_LABELS) -> Node:
    """Return a new node like `node`, with another name and other labels. See AddNode."""
    own = {HOSTNAME: name} if HOSTNAME in node.labels else NO_LABELS
    labels = {**node.labels, **own, **labels}
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(NODE_CONDITIONS))
    return replace(node, name=name, labels=labels, taints=taints, unschedulable=False, uid="", resource_version="")


def _with_constraint(pod: Pod, place: int, constraint: SpreadConstraint) -> Pod:
    return replace(pod, spread=(*pod.spread[:place], constraint, *pod.spread[place + 1 :]))


def _known(mirror: ClusterMirror, name: str) -> Node:
    info = mirror.nodes.infos.get(name)
    if info is None or info.node is None:
        raise WhatIfError(f"node {name} is not there")
    return info.node


def _without(affinity: NodeAffinity, dropped: AskedOfNode) -> NodeAffinity:
    if dropped.term is None or affinity.required is None:
        kept = (
            each
            for each in affinity.selector.requirements
            if told_of(Asked(Source.NODE_SELECTOR, None, each)) != dropped
        )
        return replace(affinity, selector=Selector(tuple(kept)))
    terms = [*affinity.required.terms]
    terms[dropped.term] = _term_without(terms[dropped.term], dropped)
    if terms[dropped.term] == NodeSelectorTerm():
        return replace(affinity, required=None, node_names=None)
    names = _node_names(terms) if dropped.key == NODE_NAME else affinity.node_names
    return replace(affinity, required=NodeSelector(tuple(terms)), node_names=names)


def _term_without(term: NodeSelectorTerm, dropped: AskedOfNode) -> NodeSelectorTerm:
    def stays(asked: Asked) -> bool:
        return told_of(asked) != dropped

    return replace(
        term,
        requirements=tuple(each for each in term.requirements if stays(Asked(dropped.source, dropped.term, each))),
        comparisons=tuple(each for each in term.comparisons if stays(Asked(dropped.source, dropped.term, each))),
        fields=tuple(each for each in term.fields if stays(Asked(dropped.source, dropped.term, each))),
    )


def _node_names(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the only nodes that the fields of the terms allow, like NodeAffinity.node_names of the parsed terms."""
    names: set[str] = set()
    for term in terms:
        values = {each.value for each in term.fields if each.key == NODE_NAME and not each.negated}
        if not values:
            return None
        if len(values) == 1:  # several names contradict each other
            names |= values
    return frozenset(names)
