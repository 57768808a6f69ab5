"""The base of the plugins that follow node load: the states that they read, and their invalidation rules."""

from collections.abc import Callable
from typing import Any, Final

from core.events import Kind
from core.framework.interface import InvalidationRule, Operation, Scope, ScorePlugin
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.mirror.node_usage import NodeUsage
from core.mirror.topology import Int64Array
from core.objects.node import Node, NodeMetrics
from core.objects.pod import Pod
from core.plugins.load.unmeasured_usage import Prediction, UnmeasuredBy, UnmeasuredUsage

_ANY: Final = (Operation.ADD, Operation.UPDATE, Operation.DELETE)


def _usage_differs(before: Pod | None, after: Pod | None) -> bool:
    return before is None or after is None or _predicted_from(before) != _predicted_from(after)


def _predicted_from(pod: Pod) -> tuple[object, ...]:
    return pod.start_time, pod.load, pod.requests


INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=NodeMetrics,
        operations=_ANY,
        scope=Scope.NODE,
        because="the usage is what is judged; a measurement that has become too old is another state of it",
    ),
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="its capacity or an allocatable amount changed",
        because="usage is judged as a share of them",
        touches=lambda before, after: before.capacity != after.capacity or before.allocatable != after.allocatable,
    ),
    InvalidationRule(
        kind=Pod,
        operations=_ANY,
        scope=Scope.NODE,
        when="it came, went or started, or its requests or limits changed",
        because="what a pod that is not measured yet will use is added to the usage",
        touches=_usage_differs,
    ),
)


class LoadPlugin(ScorePlugin[Any]):
    """Base of these plugins. A node's score depends only on the node, its measurement and its pods."""

    kinds: tuple[Kind, ...] = (Node, Pod, NodeMetrics)
    invalidated_by = INVALIDATED_BY
    scores_alone = True
    normalizes_alone = True

    def __init__(self, prediction: Prediction) -> None:
        self._unmeasured = UnmeasuredBy(prediction)

    @property
    def states(self) -> tuple[Callable[[ClusterMirror], Listener], ...]:
        """The states that the mirror keeps for the plugin. See core.derived_states."""
        return NodeUsage, self._unmeasured

    def unmeasured(self, mirror: ClusterMirror) -> UnmeasuredUsage:
        """Return the predicted usage of the pods that are not measured yet."""
        return mirror.derived(self._unmeasured)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Return the scores, which are already 0..100. The original plugins do not normalise."""
        return raw
