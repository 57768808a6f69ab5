"""An evaluation: a plugin's results for one pod, computed afresh or taken from the equivalence cache."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from core.framework.interface import AnyFilter, AnyScore, Codes, Verdicts
from core.framework.status import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod


class Evaluation(Protocol):
    """The results of plugins for one pod. Valid until the next event."""

    @property
    def mirror(self) -> ClusterMirror:
        """The mirror in which the plugins find nodes and pods."""

    @property
    def pod(self) -> Pod:
        """The pod, with all its fields."""

    @property
    def source(self) -> str:
        """The source of the results so far: `hit HASH`, `partial HASH` or `miss HASH` of a cache, or `none`."""

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Return a plugin's verdict on every node of the batch, or None if all pass."""

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Return for every node of the batch the verdict of the first plugin that fails there, or success.

        For one pod, the plugins must be the same at each call.
        """

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Return a plugin's raw score of every node of the batch, or None if it skips the pod and every node gets 0."""

    def best(
        self, filters: Sequence[AnyFilter], scores: Sequence[tuple[AnyScore, int]], batch: NodeBatch
    ) -> IntpArray | None:
        """Return the result of `best_nodes` among the nodes on which all filters pass, if it is available at less cost.

        None: the caller must use `filtered` and `raw_scores`. This includes the case that no node fits, which needs
        reasons.
        """


class FreshEvaluation:
    """Runs the plugins."""

    source = "none"

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        self.mirror: Final = mirror
        self.pod: Final = mirror.counted(pod)
        mirror.work.begin()

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Run PreFilter and Filter."""
        status, state = plugin.pre_filter(self.mirror, self.pod)
        return everywhere(status, batch) if state is None else plugin.filter(state, batch)

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Run PreFilter and Filter of all plugins."""
        return first_failures(filters, batch, self.verdicts)

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Run PreScore and Score."""
        _, state = plugin.pre_score(self.mirror, self.pod, batch)
        return None if state is None else plugin.score(state, batch)

    def best(
        self, _filters: Sequence[AnyFilter], _scores: Sequence[tuple[AnyScore, int]], _batch: NodeBatch
    ) -> IntpArray | None:
        """Return None: no earlier result is available."""
        return None


def first_failures(
    filters: Sequence[AnyFilter],
    batch: NodeBatch,
    verdicts_of: Callable[[AnyFilter, NodeBatch], Verdicts | None],
) -> Verdicts:
    """Run all plugins. The first plugin that fails a node determines its status.

    kube-scheduler runs every PreFilter before any Filter, so the first PreFilter that fails determines the status of
    all nodes. Source: k8s.io/kubernetes pkg/scheduler/schedule_one.go (findNodesThatFitPod).
    """
    if len(filters) == 1:
        return verdicts_of(filters[0], batch) or Verdicts(np.zeros(len(batch), np.uint8), (SUCCESS,))
    codes: Codes | None = None
    statuses: tuple[Status, ...] = (SUCCESS,)
    everywhere_failed: Verdicts | None = None
    for plugin in filters:
        verdicts = verdicts_of(plugin, batch)
        if verdicts is None or not verdicts.codes.any():
            continue
        if verdicts.of_pre_filter:
            everywhere_failed = everywhere_failed or verdicts
            continue
        if codes is None:  # usually the only failures, so the codes are used without a copy
            codes, statuses = verdicts.codes, verdicts.statuses
            continue
        fails_first_here = (verdicts.codes > 0) & (codes == 0)
        # In int64 before the sum: cached codes may be narrow, and 2 + 254 in uint8 would overflow to success.
        codes = codes.astype(np.int64)
        codes[fails_first_here] = verdicts.codes[fails_first_here].astype(np.int64) + (len(statuses) - 1)
        statuses += verdicts.statuses[1:]
    if everywhere_failed is not None:
        return everywhere_failed
    return Verdicts(np.zeros(len(batch), np.uint8) if codes is None else codes, statuses)


def best_nodes(
    scores: Sequence[tuple[AnyScore, int]], evaluation: Evaluation, batch: NodeBatch, fitting: IntpArray
) -> IntpArray:
    """Return the positions of the nodes with the highest score among the fitting ones. Ties give several positions.

    As in kube-scheduler, the scores are normalised over the fitting nodes and compared by their exact weighted sum. The
    mean of `score_nodes` is rounded, so it would give ties that kube-scheduler does not have. Source: k8s.io/kubernetes
    pkg/scheduler/schedule_one.go (schedulePod, selectHost).
    """
    if len(fitting) <= 1 or not scores:
        return fitting
    sums = weighted_sums(scores, evaluation, batch if len(fitting) == len(batch) else batch.part(fitting))
    return fitting.compress(sums == sums.max())


def weighted_sums(scores: Sequence[tuple[AnyScore, int]], evaluation: Evaluation, batch: NodeBatch) -> Int64Array:
    """Return the sums of weight times normalised score. A single score is not weighted: the order is the same."""
    total: Int64Array | None = None
    for plugin, weight in scores:
        raw = evaluation.raw_scores(plugin, batch)
        if raw is None:
            continue
        score = plugin.normalize(raw)
        weighted = weight * score if len(scores) > 1 else score
        total = weighted if total is None else total + weighted
    return np.zeros(len(batch), np.int64) if total is None else total


def everywhere(status: Status, batch: NodeBatch) -> Verdicts | None:
    """Return the verdicts for a PreFilter without a state: all nodes pass (None), or all fail with its status."""
    if status.code in {Code.SKIP, Code.SUCCESS}:
        return None
    return Verdicts(np.ones(len(batch), np.uint8), (SUCCESS, status), of_pre_filter=True)
