"""A small cluster as objects, to which the steps of a remedy are done as a person would, and then controllers act.

The controllers are written from k8s.io/kubernetes v1.36 pkg/controller, apart from the product's own owners.py: a
deleted pod is made again by its owner, and placed before the pending pod, on the node that it left if it fits there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from core.diagnosis.diagnosis import Diagnosis
from core.events import ClusterEvent, Object
from core.explaining.owners import DELETION_COST, Way
from core.explaining.pod_steps import (
    ChangeTopologyKey,
    CorrectRequirement,
    CorrectSelector,
    DropRequirement,
    HonorPolicy,
    LowerRequest,
    MatchRevision,
    PreferTerm,
    RaiseMaxSkew,
    RelaxSpread,
    RequiredRule,
    SelectNamespace,
    TolerateTaint,
)
from core.explaining.remedy import AddNode, RemakePod, RemovePod, RepairNode, RunPod, SetLabel, Step, Uncordon
from core.explaining.requirements import AskedOfNode, Source
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    WeightedAffinityTerm,
    selector_from_set,
)
from core.objects.labels import Requirement, Selector
from core.objects.node import Node
from core.objects.pod import SCHEDULE_ANYWAY, Pod, SpreadConstraint, Toleration
from core.profile import full_profile
from core.scheduling_cycle import filter_nodes
from tests.core.decoded import demanding

FULL: Final = full_profile()
_OF_NODE: Final = ("DaemonSet", "Node")


class World:
    """A cluster as a list of objects, and a pod that is asked about."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod], others: Sequence[Object], pod: Pod) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.pods = {each.uid: each for each in pods}
        self.others = others
        self.pod = pod
        self._left: list[tuple[Pod, RemovePod]] = []
        self._before = pod

    def mirror(self) -> ClusterMirror:
        """Make the cluster."""
        mirror = ClusterMirror()
        for each in (*self.nodes.values(), *self.others, *self.pods.values()):
            mirror.apply(ClusterEvent("Add", each))
        return mirror

    def diagnosis(self) -> Diagnosis:
        """Decide about the pod over all nodes."""
        mirror = self.mirror()
        return Diagnosis(FULL, mirror, self.pod, mirror.batch(sorted(self.nodes)))

    def after(self, steps: Sequence[Step]) -> "World":
        """Return the cluster and the pod after the steps, each done to the object that it is about, and then."""
        then = World([*self.nodes.values()], [*self.pods.values()], self.others, self.mirror().counted(self.pod))
        for step in steps:
            then.take(step)
        for gone, leaving in then._left:  # of the same class
            then.act(gone, leaving)
        for step in steps:
            if isinstance(step, RemakePod):
                then.make_again(then.pods.pop(step.uid), then.pod.affinity)
        return then

    def take(self, step: Step) -> None:
        """Do one step."""
        match step:
            case SetLabel(node, key, value, had):
                labels = {**self.nodes[node].labels, key: value or ""}
                assert self.nodes[node].labels.get(key) == had
                if value is None:
                    del labels[key]
                self.nodes[node] = replace(self.nodes[node], labels=labels)
            case Uncordon(node):
                taints = tuple(taint for taint in self.nodes[node].taints if "unschedulable" not in taint.key)
                self.nodes[node] = replace(self.nodes[node], unschedulable=False, taints=taints)
            case RepairNode(node, keys):
                taints = tuple(taint for taint in self.nodes[node].taints if taint.key not in keys)
                assert len(taints) < len(self.nodes[node].taints)
                self.nodes[node] = replace(self.nodes[node], taints=taints)
            case RemovePod(pod, uid, node):
                assert (pod, node) == (self.pods[uid].full_name, self.pods[uid].node_name)
                self._left.append((self.pods.pop(uid), step))
            case RunPod(namespace, labels, node, domains):
                assert domains == {key: self.nodes[node].labels[key] for key in domains}
                self.pods["beside"] = Pod("beside", namespace, "beside", labels, node)
            case AddNode(name, like):
                new = dict.fromkeys(step.new_domains, "no-other-node-has-it")
                self.nodes[name] = copied(self.nodes[like], name, {**step.labels, **new})
                for each in [each for each in self.pods.values() if each.node_name == like and _of_node(each)]:
                    self.pods[f"{each.uid}-{name}"] = replace(each, uid=f"{each.uid}-{name}", node_name=name)
            case RemakePod(pod, uid, node):
                assert (pod, node) == (self.pods[uid].full_name, self.pods[uid].node_name)
            case _:
                self.pod = changed(self.pod, step)

    def act(self, gone: Pod, step: RemovePod) -> None:
        """Do what the owner of a pod does once it has left."""
        way = step.way
        siblings = [each for each in (*self.pods.values(), self.pod) if _same_controller(each, gone)]
        if way is Way.TERMINATES:
            assert gone.terminating
        if way is Way.PREEMPTED:
            return  # what its owner makes instead waits behind the pending pod
        if _of_node(gone):
            if way is not Way.ROLLED_OVER or not self._rolls_over(gone):
                self.pods[gone.uid] = gone
        elif way is Way.OWNER_ENDS:
            assert self.pod not in siblings
            for each in siblings:
                del self.pods[each.uid]
        elif way is Way.SCALED_DOWN:
            self._delete_one(gone, step, siblings)
        elif way is Way.ROLLED_OVER and self._takes_away(gone, step):
            # It cleans up those without a node at once.
            self._delete_one(gone, step, [each for each in siblings if each.node_name])
        elif not self._stays_away(gone, way):
            self.make_again(gone)

    def _delete_one(self, gone: Pod, step: RemovePod, siblings: Sequence[Pod]) -> None:
        if step.way is Way.SCALED_DOWN and step.siblings and self._deletes_none(gone, siblings):
            return self.make_again(gone)
        first = _deleted_first(gone, siblings, costs=DELETION_COST in step.text)
        if first.uid != gone.uid:
            self.pods.pop(first.uid, None)
            self.make_again(gone)
        return None

    def _deletes_none(self, gone: Pod, siblings: Sequence[Pod]) -> bool:
        """Return whether a StatefulSet waits for a replica, or another ReplicaSet of a Deployment loses the pod."""
        if gone.controller is not None and gone.controller.kind == "StatefulSet":
            return any(not each.node_name for each in siblings)
        staying = [each for each in (*self.pods.values(), self.pod) if _deployment(each) and not each.terminating]
        revisions = Counter(each.controller for each in staying if _deployment(each) == _deployment(gone))
        own = revisions.pop(gone.controller, 0) + 1
        return max(revisions.values(), default=0) >= own

    def _takes_away(self, gone: Pod, step: RemovePod) -> bool:
        """Return whether a rolling update with maxSurge 0 takes an old pod away: rolling.go, reconcileOldReplicaSets.

        The Deployment has as many replicas as it can have: no pod more than them where it says maxUnavailable.
        """
        if not self._rolls_over(gone):
            return False
        pods = [each for each in (*self.pods.values(), self.pod) if _deployment(each) == _deployment(self.pod)]
        unavailable, number = sum(not each.node_name for each in pods), len(pods) + 1  # and the one that is to go
        most = step.max_unavailable
        replicas = number if step.max_unavailable > 1 else number - 1
        return number - (replicas - most) - unavailable > 0

    def _stays_away(self, gone: Pod, way: Way) -> bool:
        """Return whether a pod that is not scaled down leaves no gap that its owner fills."""
        if gone.controller is None:
            return True
        if way is Way.TERMINATES:  # only a StatefulSet waits for the end before it makes the next one
            return gone.controller.kind != "StatefulSet"
        return False

    def _rolls_over(self, gone: Pod) -> bool:
        """Return whether the pod is an old one of the owner whose new one is the pending pod."""
        if _of_node(gone):
            return _same_controller(gone, self.pod) and _revision(gone) != _revision(self.pod)
        old = not _same_controller(gone, self.pod) or self.pod != self._before
        return old and bool(_deployment(gone)) and _deployment(gone) == _deployment(self.pod)

    def make_again(self, gone: Pod, affinity: PodAffinity | None = None) -> None:
        """Make a deleted pod again, and place it where it was if it fits there."""
        made = replace(gone, uid=f"{gone.uid}-again", node_name="", terminating=False)
        if affinity is not None:
            made = replace(made, affinity=affinity)
        fitting = self.fitting(made)
        node = gone.node_name if gone.node_name in fitting else next(iter(fitting), "")
        self.pods[made.uid] = replace(made, node_name=node)

    def fitting(self, pod: Pod | None = None) -> list[str]:
        """Return the nodes that the pod fits on."""
        mirror = self.mirror()
        names = sorted(self.nodes)
        verdicts = filter_nodes(FULL, FreshEvaluation(mirror, pod or self.pod), mirror.batch(names))
        return [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if not code]

    def rejected_for_resources_alone(self, node: str) -> bool:
        """Return whether NodeResourcesFit is the only plugin that refuses a node."""
        mirror = self.mirror()
        decision = Diagnosis(FULL, mirror, self.pod, mirror.batch([node]))
        return [*decision.refusing] == ["NodeResourcesFit"]


def _of_node(pod: Pod) -> bool:
    return pod.controller is not None and pod.controller.kind in _OF_NODE


def _same_controller(one: Pod, other: Pod) -> bool:
    return one.controller is not None and (one.namespace, one.controller) == (other.namespace, other.controller)


def _revision(pod: Pod) -> str | None:
    return pod.labels.get("controller-revision-hash")


def _deployment(pod: Pod) -> str:
    revision = pod.labels.get("pod-template-hash")
    if pod.controller is None or pod.controller.kind != "ReplicaSet" or not revision:
        return ""
    name, _, suffix = pod.controller.name.rpartition("-")
    return f"{pod.namespace}/{name}" if suffix == revision else ""


def _deleted_first(gone: Pod, siblings: Sequence[Pod], *, costs: bool) -> Pod:
    """Return which pod its owner deletes first: without a node, not started, of the least cost, or any other."""
    assert gone.controller is not None
    assert gone.controller.kind != "Job"
    if gone.controller.kind == "StatefulSet":
        return max((gone, *siblings), key=lambda each: int(each.name.rpartition("-")[2]))
    # Without a cost, the newest goes, which may be any of them.
    return min(
        (*siblings, gone), key=lambda each: (bool(each.node_name), bool(each.start_time), each is not gone or not costs)
    )


def changed(pod: Pod, step: Step) -> Pod:
    """Return a pod after a step that changes it."""
    match step:
        case LowerRequest(resource, _, to):
            return demanding(replace(pod, requests={**pod.requests, resource: to}), resources=None)
        case TolerateTaint(key, value, effect):
            return replace(pod, tolerations=pod.tolerations | {Toleration(key, "Equal", value, effect)})
        case DropRequirement():
            return replace(pod, node_affinity=dropped(pod.node_affinity, step.asked))
        case CorrectRequirement(requested, key, value):
            (required,) = selector_from_set({key: value}).requirements
            return replace(pod, node_affinity=dropped(pod.node_affinity, requested, required))
        case (
            ChangeTopologyKey(RequiredRule.AFFINITY | RequiredRule.ANTI_AFFINITY)
            | PreferTerm()
            | SelectNamespace()
            | CorrectSelector()
        ):
            return replace(pod, affinity=with_terms(pod.affinity, step))
        case _:
            return with_spread(pod, step)


def with_spread(pod: Pod, step: Step) -> Pod:
    """Return a pod after a step that changes one of its spread constraints."""
    match step:
        case RaiseMaxSkew(place, topology_key, _, max_skew, to):
            assert (topology_key, max_skew) == (pod.spread[place].topology_key, pod.spread[place].max_skew)
            return with_constraint(pod, place, replace(pod.spread[place], max_skew=to))
        case RelaxSpread(place, topology_key):
            assert topology_key == pod.spread[place].topology_key
            return with_constraint(pod, place, replace(pod.spread[place], when_unsatisfiable=SCHEDULE_ANYWAY))
        case HonorPolicy(place, _, "nodeTaintsPolicy"):
            return with_constraint(pod, place, replace(pod.spread[place], node_taints_policy="Honor"))
        case HonorPolicy(place, _, "nodeAffinityPolicy"):
            return with_constraint(pod, place, replace(pod.spread[place], node_affinity_policy="Honor"))
        case MatchRevision(place, _, key):
            keys = tuple(sorted({*pod.spread[place].match_label_keys, key}))
            return with_constraint(pod, place, replace(pod.spread[place], match_label_keys=keys))
        case ChangeTopologyKey(RequiredRule.SPREAD, place, topology_key, to):
            assert topology_key == pod.spread[place].topology_key
            return with_constraint(pod, place, replace(pod.spread[place], topology_key=to))
        case _:
            raise AssertionError(step)


def with_terms(
    affinity: PodAffinity, step: ChangeTopologyKey | PreferTerm | SelectNamespace | CorrectSelector
) -> PodAffinity:
    """Return the terms of a pod after a step that changes one of them."""
    attracts = isinstance(step, SelectNamespace | CorrectSelector) or step.rule is RequiredRule.AFFINITY
    terms = [*(affinity.required_affinity if attracts else affinity.required_anti_affinity)]
    term = terms[step.index]
    assert term.topology_key == step.topology_key
    match step:
        case ChangeTopologyKey():
            terms[step.index] = replace(term, topology_key=step.to)
        case SelectNamespace():
            assert step.namespace not in term.matcher.namespaces
            namespaces = term.matcher.namespaces | {step.namespace}
            terms[step.index] = replace(term, matcher=replace(term.matcher, namespaces=namespaces))
        case CorrectSelector(key=key, value=value, to=to):
            requested = term.matcher.selector.requirements
            retained = [each for each in requested if (each.key, each.values) != (key, (value,))]
            assert len(retained) < len(requested)
            selector = Selector(tuple(sorted([*retained, *selector_from_set({key: to}).requirements])))
            terms[step.index] = replace(term, matcher=replace(term.matcher, selector=selector))
        case PreferTerm():
            del terms[step.index]
            preferred = WeightedAffinityTerm(term, 100)
            if attracts:
                affinity = replace(affinity, preferred_affinity=(*affinity.preferred_affinity, preferred))
            else:
                affinity = replace(affinity, preferred_anti_affinity=(*affinity.preferred_anti_affinity, preferred))
    if attracts:
        return replace(affinity, required_affinity=tuple(terms))
    return replace(affinity, required_anti_affinity=tuple(terms))


def with_constraint(pod: Pod, place: int, constraint: SpreadConstraint) -> Pod:
    """Return a pod with another constraint at a place."""
    return replace(pod, spread=tuple(constraint if at == place else each for at, each in enumerate(pod.spread)))


def dropped(affinity: NodeAffinity, requested: AskedOfNode, *instead: Requirement) -> NodeAffinity:
    """Return what a pod asks of nodes without one requirement, and with others."""
    if requested.source is Source.NODE_SELECTOR:
        retained = tuple(each for each in affinity.selector.requirements if each.key != requested.key)
        return replace(affinity, selector=Selector(tuple(sorted((*retained, *instead)))))
    assert affinity.required is not None
    assert requested.term is not None
    terms = [*affinity.required.terms]
    term = terms[requested.term]
    retained = tuple(
        each for each in term.requirements if (each.key, [*each.values]) != (requested.key, [*requested.values])
    )
    left = NodeSelectorTerm(
        tuple(sorted((*retained, *instead))),
        tuple(
            each for each in term.comparisons if (each.key, [str(each.bound)]) != (requested.key, [*requested.values])
        ),
        tuple(each for each in term.fields if [each.value] != [*requested.values]),
    )
    assert left != term
    terms[requested.term] = left
    if left == NodeSelectorTerm():
        return replace(affinity, required=None, node_names=None)
    return replace(affinity, required=NodeSelector(tuple(terms)))


def copied(node: Node, name: str, labels: Mapping[str, str]) -> Node:
    """Return a new node of the kind of another one."""
    passing = ("node.kubernetes.io/", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupt")
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(passing))
    labels = {**node.labels, "kubernetes.io/hostname": name, **labels}
    return replace(node, name=name, labels=labels, taints=taints, unschedulable=False)
