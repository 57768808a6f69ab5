"""NodeDeclaredFeatures: keep pods off nodes that do not declare a feature that the pod needs.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go. The rules of a
release list its features. A release without features does not have the plugin.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured
from core.explaining.words import counted
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.objects.pod import NO_FEATURES, Pod
from core.releases.release import Rules

Features: TypeAlias = frozenset[str]

NAME: Final = "NodeDeclaredFeatures"
NOT_DECLARED: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's required features",))


class NeededFeatures(msgspec.Struct, frozen=True):
    """The features that a pod needs, and those that all nodes declare. Stale after the next event."""

    declared: NodeValues[Features]
    needed: Features
    named: bool
    """Whether the reason names the missing features."""


class FeatureInCluster(msgspec.Struct, frozen=True, gc=False):
    """A feature that the pod needs, with the number of nodes that do not declare it."""

    feature: str
    nodes: int

    @property
    def text(self) -> str:
        """The feature and the nodes in words."""
        return f"needs the feature {self.feature}: not declared by {counted(self.nodes, 'node')}"


class NodeDeclaredFeatures(Explained, FilterPlugin[NeededFeatures]):
    """Filters by `status.declaredFeatures`. A pod that needs no feature of the release passes everywhere."""

    name = NAME
    class_fields = ("demand.needed_features",)
    invalidated_by = (
        node_update(
            when="a declared feature came or went",
            because="the node must declare the features that the pod needs",
            reads=lambda node: node.declared_features,
        ),
    )
    events = (
        Event("Node", ("Add", "UpdateNodeDeclaredFeature")),
        Event("Pod", ("Update",), of_pod_itself=True),
    )
    measured = Measured(
        on_node={"missing_features": lambda decision, position, _: _missing_on_node(decision, position)},
        in_cluster={"missing_features": lambda decision, _: [*_missing(decision)]},
    )

    def filters_in(self, rules: Rules) -> bool:
        """Return whether the release has the plugin."""
        return bool(rules.declared_features)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, NeededFeatures | None]:
        """Collect the needed features that the release has. SKIP if there are none."""
        needed = pod.demand.needed_features.intersection(mirror.rules.declared_features)
        if not needed:
            return SKIP, None
        named = mirror.rules.declared_features_named_in_reason
        return SUCCESS, NeededFeatures(mirror.derived(_declared), needed, named)

    def filter(self, state: NeededFeatures, batch: NodeBatch) -> Verdicts:
        """Reject the nodes that do not declare every needed feature."""
        statuses = {SUCCESS: 0}

        def judge(declared: Features | None) -> int:
            missing = state.needed - (declared or NO_FEATURES)
            if not missing:
                return 0
            return statuses.setdefault(_named(missing) if state.named else NOT_DECLARED, len(statuses))

        codes = state.declared.judged(batch, judge)
        return Verdicts(codes, tuple(statuses))


def _declared(mirror: ClusterMirror) -> NodeValues[Features]:
    return NodeValues(mirror, lambda node: node.declared_features or None)


def _missing_on_node(decision: Decision, position: int) -> Sequence[str]:
    state, node = decision.state_of(NAME), decision.node(position)
    return () if state is None or node is None else sorted(state.needed - node.declared_features)


def _missing(decision: Decision) -> Iterator[FeatureInCluster]:
    state: NeededFeatures | None = decision.state_of(NAME)
    if state is None:
        return
    for feature in sorted(state.needed):

        def lacks(declared: Features | None, required: str = feature) -> bool:
            return required not in (declared or ())

        nodes = int(np.count_nonzero(state.declared.judged(decision.batch, lacks)))
        if nodes:
            yield FeatureInCluster(feature, nodes)


def _named(missing: Features) -> Status:
    """Return the message of v1.35, with the features ordered by name."""
    reason = f"node declared features check failed - unsatisfied requirements: {', '.join(sorted(missing))}"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
