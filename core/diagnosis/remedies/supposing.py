"""Applies the steps of a remedy: to the pod as a value, and to the cluster as a supposition."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from core.diagnosis.amounts.requirements import NODE_NAME, Asked, AskedOfNode, Source, told_of
from core.diagnosis.remedies.remedy import (
    AddNode,
    ChangeHostPort,
    DropNodeName,
    DropRequirement,
    LowerRequest,
    RaiseMaxSkew,
    RelaxSpread,
    RemovePod,
    RunPod,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition, WhatIfError
from core.objects.affinity import NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.labels import Selector
from core.objects.node import Node
from core.objects.pod import SCHEDULE_ANYWAY, HostPort, Pod, Taint, Toleration

HOSTNAME: Final = "kubernetes.io/hostname"
UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that the node lifecycle controller keeps on cordoned nodes."""
SUPPOSED: Final = "supposed"
"""Name of a supposed pod, and prefix of its UID. No UID of the API server has a slash."""
NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
NODE_CONDITIONS: Final = "node.kubernetes.io/"
"""Prefix of the taints that the control plane sets for the state of a node."""


def changed_pod(pod: Pod, steps: Sequence[Step]) -> Pod:
    """Return a pod after the steps that change it. It must have its counted requests (ClusterMirror.counted)."""
    for step in steps:
        match step:
            case LowerRequest():
                pod = replace(pod, requests={**pod.requests, step.resource: step.to}, resources=None)
            case TolerateTaint():
                added = Toleration(step.key, "Equal", step.value, step.effect)
                pod = replace(pod, tolerations=pod.tolerations | {added})
            case DropRequirement():
                pod = replace(pod, node_affinity=_without(pod.node_affinity, step.asked))
            case RaiseMaxSkew():
                spread = [*pod.spread]
                spread[step.constraint] = replace(spread[step.constraint], max_skew=step.to)
                pod = replace(pod, spread=tuple(spread))
            case RelaxSpread():
                spread = [*pod.spread]
                spread[step.constraint] = replace(spread[step.constraint], when_unsatisfiable=SCHEDULE_ANYWAY)
                pod = replace(pod, spread=tuple(spread))
            case ChangeHostPort():
                pod = replace(pod, host_ports=frozenset(_changed(each, step) for each in pod.host_ports))
            case DropNodeName():
                pod = replace(pod, node_name="")
            case _:
                pass
    return pod


def suppose(mirror: ClusterMirror, supposed: Supposition, steps: Sequence[Step]) -> None:
    """Suppose the steps that change the cluster. Raises WhatIfError for a missing object."""
    for at, step in enumerate(steps):
        match step:
            case SetLabel():
                node = _known(mirror, step.node)
                labels = {key: value for key, value in node.labels.items() if key != step.key}
                if step.value is not None:
                    labels[step.key] = step.value
                supposed.change_node(replace(node, labels=labels))
            case Uncordon():
                node = _known(mirror, step.node)
                taints = tuple(taint for taint in node.taints if taint != UNSCHEDULABLE)
                supposed.change_node(replace(node, unschedulable=False, taints=taints))
            case RemovePod():
                pod = mirror.get_pod(step.uid)
                if pod is None:
                    raise WhatIfError(f"pod {step.pod} is not there")
                supposed.remove(pod)
            case AddNode():
                supposed.add_node(copy_of(_known(mirror, step.like), step.name, step.labels))
            case RunPod():
                supposed.place(Pod(f"{SUPPOSED}/{at}", step.namespace, SUPPOSED, step.labels), step.node)
            case _:
                pass


def copy_of(node: Node, name: str, labels: Mapping[str, str] = NO_LABELS) -> Node:
    """Return a new node like `node`, with another name and other labels. See AddNode."""
    own = {HOSTNAME: name} if HOSTNAME in node.labels else NO_LABELS
    labels = {**node.labels, **own, **labels}
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(NODE_CONDITIONS))
    return replace(node, name=name, labels=labels, taints=taints, unschedulable=False, uid="", resource_version="")


def _changed(port: HostPort, step: ChangeHostPort) -> HostPort:
    return replace(port, port=step.to) if (port.port, port.protocol) == (step.port, step.protocol) else port


def _known(mirror: ClusterMirror, name: str) -> Node:
    info = mirror.nodes.infos.get(name)
    if info is None or info.node is None:
        raise WhatIfError(f"node {name} is not there")
    return info.node


def _without(affinity: NodeAffinity, dropped: AskedOfNode) -> NodeAffinity:
    """Return an affinity without a requirement."""
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
