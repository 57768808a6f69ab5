"""A plugin that says of each node what the test says, and how to ask it, in the cache or afresh."""

from collections.abc import Hashable, Sequence

import numpy as np

from core.events import Kind
from core.framework.evaluation import Evaluation
from core.framework.interface import (
    SUCCESS,
    AnyFilter,
    AnyScore,
    Code,
    FilterPlugin,
    ScorePlugin,
    Status,
    Verdicts,
    Versions,
)
from core.framework.invalidation import InvalidationRule, Operation, Scope, Touches, always
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.node import Node
from core.objects.pod import Pod

ANY = (Operation.ADD, Operation.UPDATE, Operation.DELETE)


class StatedPlugin(FilterPlugin[Pod], ScorePlugin[Pod]):
    """Filters and scores by what was last said of a node's name; nothing said is SUCCESS, and 0.

    `asked` has the names of every batch that came to Filter or Score, `prepared` the pods that came to PreFilter or
    PreScore. With an `outcome`, these end the question.
    """

    scores_alone = True
    normalizes_alone = True
    kinds: tuple[Kind, ...] = (Node, Pod)

    def __init__(
        self,
        name: str = "Said",
        *,
        class_fields: tuple[str, ...] = ("namespace", "labels"),
        invalidated_by: tuple[InvalidationRule, ...] = (),
    ) -> None:
        self.name = name
        self.class_fields = class_fields
        self.invalidated_by = invalidated_by
        self.stated: dict[str, Status] = {}
        self.raw: dict[str, int] = {}
        self.outcome: Status | None = None
        self.version: Hashable = 0
        self.reference: Hashable = None
        self.requested: list[list[str]] = []
        self.prepared: list[Pod] = []

    def references(self, _mirror: ClusterMirror, _pod: Pod) -> Hashable:
        """Return what the test says."""
        return self.reference

    def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        """End with the outcome, if there is one."""
        self.prepared.append(pod)
        return (SUCCESS, pod) if self.outcome is None else (self.outcome, None)

    def filter(self, _state: Pod, batch: NodeBatch) -> Verdicts:
        """Return node -> its status, in the order of the batch."""
        self.requested.append(list(batch.names))
        codes: dict[Status, int] = {SUCCESS: 0}
        found = [codes.setdefault(self.stated.get(name, SUCCESS), len(codes)) for name in batch.names]
        return Verdicts(np.array(found, np.uint8), tuple(codes))

    def filter_versions(self, _state: Pod) -> Versions:
        """Return what the test says."""
        return (self.version,)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, Pod | None]:
        """End with the outcome, if there is one."""
        return self.pre_filter(mirror, pod)

    def score(self, _state: Pod, batch: NodeBatch) -> Int64Array:
        """Return node -> its status."""
        self.requested.append(list(batch.names))
        return np.array([self.raw.get(name, 0) for name in batch.names], np.int64)

    def score_versions(self, _state: Pod) -> Versions:
        """Return what the test says."""
        return (self.version,)

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Leave the scores as they are."""
        return raw


def failing(*reasons: str, code: Code = Code.UNSCHEDULABLE) -> Status:
    """Make a failure."""
    return Status(code, reasons)


def when(
    kind: Kind, scope: Scope, operations: tuple[Operation, ...] = ANY, touches: Touches = always
) -> InvalidationRule:
    """Make a rule."""
    return InvalidationRule(kind=kind, operations=operations, scope=scope, because="the test says so", touches=touches)


def whole(mirror: ClusterMirror) -> NodeBatch:
    """Ask about all nodes, by name."""
    return mirror.batch(sorted(mirror.nodes.slots))


def statuses(evaluation: Evaluation, plugin: AnyFilter, batch: NodeBatch) -> list[Status]:
    """Return the verdicts; where the plugin has none, all nodes pass."""
    verdicts = evaluation.verdicts(plugin, batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


def scores(evaluation: Evaluation, plugin: AnyScore, batch: NodeBatch) -> Sequence[int | None]:
    """Return the raw scores, None where there are none."""
    raw = evaluation.raw_scores(plugin, batch)
    numbers: Sequence[int | None] = [None] * len(batch) if raw is None else raw.tolist()
    return numbers
