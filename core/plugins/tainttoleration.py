"""TaintToleration: keeps pods off nodes with untolerated taints, and prefers nodes without PreferNoSchedule taints.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.node_labels import examples
from core.explaining.obstacles import NEAREST, Obstacles, Proposal, Search, Turn, proposed
from core.explaining.pod_steps import TolerateTaint, taint_text
from core.explaining.remedy import RepairNode, Step, is_trouble, keeps_others_off
from core.explaining.words import counted, such_as
from core.framework.interface import SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts
from core.framework.invalidation import node_update
from core.framework.scores import default_normalize
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.mirror.topology import Int64Array, IntpArray
from core.objects.node import UNSCHEDULABLE
from core.objects.pod import KEEP_PODS_OFF, Pod, Taint, ToleratedTaints
from core.plugins.nodeunschedulable import NAME as NODE_UNSCHEDULABLE
from core.plugins.nodeunschedulable import is_cordoned

NAME: Final = "TaintToleration"
_MAX_DISTINCT: Final = 256
"""How many distinct lists of taints are checked for remedies."""

Taints: TypeAlias = tuple[Taint, ...]

_PREFER_NO_SCHEDULE: Final = frozenset({"PreferNoSchedule"})

_UNTOLERATED: Final = (SUCCESS, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)))


class TaintsAndTolerations(msgspec.Struct, frozen=True):
    """The taints of all nodes, and the tolerations of a pod. Stale after the next event."""

    taints: NodeValues[Taints]
    tolerated: ToleratedTaints
    named: bool
    """Whether the reason names the first untolerated taint."""

    def untolerated(self, taints: Taints | None, effects: AbstractSet[str]) -> list[Taint]:
        """Return the taints of these effects that the pod does not tolerate, in the order of the node's spec."""
        return [taint for taint in taints or () if taint.effect in effects and taint not in self.tolerated]


# What the plugin adds to explanations: the taints that keep the pod off, and what may be done about them.


class NodeTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint that keeps the pod off a node: an untolerated NoSchedule or NoExecute taint."""

    key: str
    value: str
    effect: str

    @property
    def text(self) -> str:
        """The taint as kubectl writes it."""
        return taint_text(self.key, self.value, self.effect)


class TaintInCluster(NodeTaint, frozen=True, gc=False):
    """A taint that keeps the pod off, with the nodes that have it."""

    nodes: int
    examples: Sequence[str]

    @property
    def text(self) -> str:
        """The taint and the nodes in words."""
        nodes = f"{counted(self.nodes, 'node')}, {such_as(self.examples, self.nodes)}"
        return f"taint {taint_text(self.key, self.value, self.effect)}: {nodes}"


def untolerated_taints(decision: Decision, position: int) -> Sequence[Taint]:
    """Return the taints of a node that keep the pod off, in the order of the node's spec."""
    state, node = decision.state_of(NAME), decision.node(position)
    if not isinstance(state, TaintsAndTolerations) or node is None:
        return ()
    return state.untolerated(node.taints, KEEP_PODS_OFF)


def taints_on_node(decision: Decision, position: int) -> Sequence[NodeTaint]:
    """Return the taints of a node that keep the pod off."""
    return [NodeTaint(each.key, each.value, each.effect) for each in untolerated_taints(decision, position)]


def taints_in_cluster(decision: Decision, limit: int) -> Sequence[TaintInCluster]:
    """Return up to `limit` taints that keep the pod off some node, ordered by number of nodes, most first."""
    state = decision.state_of(NAME)
    if not isinstance(state, TaintsAndTolerations):
        return ()
    values, places = state.taints.places(decision.batch)
    numbers = np.bincount(places, minlength=len(values))
    nodes: dict[Taint, int] = {}
    at: dict[Taint, list[int]] = {}
    for place in np.flatnonzero(numbers).tolist():
        for taint in state.untolerated(values[place], KEEP_PODS_OFF):
            nodes[taint] = nodes.get(taint, 0) + int(numbers[place])
            at.setdefault(taint, []).append(place)
    most = sorted(nodes, key=lambda taint: (-nodes[taint], taint))[:limit]
    return [
        TaintInCluster(each.key, each.value, each.effect, nodes[each], examples(decision, np.isin(places, at[each])))
        for each in most
    ]


def tolerate_taints(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Tolerate all taints of a node that keep the pod off, except for the one that uncordoning removes.

    A taint of a node's trouble is not tolerated: the node is to be repaired. None for a node that is not for the pod.
    """
    decision = obstacles.decision
    cordoned = is_cordoned(decision, position)
    taints = [each for each in untolerated_taints(decision, position) if not (cordoned and each == UNSCHEDULABLE)]
    if any(keeps_others_off(each, decision.pod) for each in taints):
        return None
    troubles = tuple(dict.fromkeys(each.key for each in taints if is_trouble(each)))
    repaired = [RepairNode(decision.batch.names[position], troubles)] if troubles else []
    tolerated = [TolerateTaint(each.key, each.value, each.effect) for each in taints if not is_trouble(each)]
    return [*repaired, *tolerated]


def tolerate(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose the sets of taints of nodes that no other plugin rejects, without supersets of other sets.

    The smallest sets come first. Nodes that something is wrong with are left to `repair`.
    """
    decision = obstacles.decision
    positions = obstacles.only({NAME})
    first: dict[frozenset[Taint], int] = {}
    for position in _one_of_each(obstacles, positions):
        first.setdefault(frozenset(untolerated_taints(decision, position)), position)
    minimal = [each for each in first if not any(other < each for other in first) and not any(map(is_trouble, each))]
    for taints in sorted(minimal, key=lambda taints: (len(taints), sorted(taints))):
        yield from proposed(obstacles, tolerate_taints, first[taints])


def repair(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to repair nodes that are refused only for taints of their trouble, uncordoned where they are cordoned."""
    positions = obstacles.only({NODE_UNSCHEDULABLE, NAME})
    for position in _one_of_each(obstacles, positions)[:NEAREST]:
        taints = [each for each in untolerated_taints(obstacles.decision, position) if each != UNSCHEDULABLE]
        if taints and all(map(is_trouble, taints)):
            parts = [obstacles.fixes[plugin](obstacles, position) or () for plugin in obstacles.of(position)]
            yield Proposal(obstacles.decision.batch.names[position], [step for part in parts for step in part])


def _one_of_each(obstacles: Obstacles, positions: IntpArray) -> Sequence[int]:
    """Return the first of these nodes for each distinct list of taints, up to _MAX_DISTINCT."""
    state = obstacles.decision.state_of(NAME)
    if not isinstance(state, TaintsAndTolerations) or not len(positions):
        return ()
    _, places = state.taints.places(obstacles.decision.batch.part(positions))
    _, first = np.unique(places, return_index=True)
    chosen: list[int] = positions[np.sort(first)][:_MAX_DISTINCT].tolist()
    return chosen


class TaintToleration(Explained, FilterPlugin[TaintsAndTolerations], ScorePlugin[TaintsAndTolerations]):
    """Filters by NoSchedule and NoExecute taints, and scores by the number of untolerated PreferNoSchedule taints."""

    name = NAME
    former_filters = ("PodToleratesNodeTaints",)
    former_scores = (("TaintTolerationPriority", ""),)
    points = ("filter", "preScore", "score")
    needs_pre = ("score",)
    class_fields = ("tolerations",)
    invalidated_by = (
        node_update(
            when="a taint changed, or their order",
            because="the first taint that is not tolerated is the reason",
            reads=lambda node: node.taints,
        ),
    )
    scores_alone = True
    keeps_off = "taints"
    events = (
        Event("Node", ("Add", "UpdateNodeTaint")),
        Event("Pod", ("UpdatePodToleration",), of_pod_itself=True),
    )
    measured = Measured(
        on_node={"taints": lambda decision, position, _: taints_on_node(decision, position)},
        in_cluster={"taints": taints_in_cluster},
    )
    remedies = Remedies(searches=(Search(Turn.REPAIR, repair), Search(Turn.TOLERATE, tolerate)), fix=tolerate_taints)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, TaintsAndTolerations]:
        """Collect taints and tolerations."""
        rules = mirror.rules
        tolerated = ToleratedTaints(pod.tolerations, numeric=rules.numeric_tolerations)
        return SUCCESS, TaintsAndTolerations(mirror.derived(_taints), tolerated, rules.taint_named_in_reason)

    def filter(self, state: TaintsAndTolerations, batch: NodeBatch) -> Verdicts:
        """Reject every node with an untolerated taint. Until v1.34 the reason names the first such taint."""
        if not state.named:
            return Verdicts(
                state.taints.judged(batch, lambda taints: 1 if state.untolerated(taints, KEEP_PODS_OFF) else 0),
                _UNTOLERATED,
            )
        codes: dict[Taint | None, int] = {None: 0}

        def judge(taints: Taints | None) -> int:
            untolerated = state.untolerated(taints, KEEP_PODS_OFF)
            return codes.setdefault(untolerated[0] if untolerated else None, len(codes))

        judged = state.taints.judged(batch, judge)
        return Verdicts(judged, (SUCCESS, *(_untolerated(first) for first in codes if first is not None)))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, TaintsAndTolerations]:
        """Collect taints and tolerations. Never SKIP: if no node has a taint, each gets MAX_NODE_SCORE instead of 0."""
        return self.pre_filter(mirror, pod)

    def score(self, state: TaintsAndTolerations, batch: NodeBatch) -> Int64Array:
        """Count the untolerated PreferNoSchedule taints of every node."""
        return state.taints.judged(batch, lambda taints: len(state.untolerated(taints, _PREFER_NO_SCHEDULE)))

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Give MAX_NODE_SCORE to nodes without such taints, and 0 to the nodes with the most."""
        return default_normalize(raw, reverse=True)


def _taints(mirror: ClusterMirror) -> NodeValues[Taints]:
    return NodeValues(mirror, lambda node: node.taints or None)


def _untolerated(taint: Taint) -> Status:
    reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
