"""A share of the answers from the cache, computed again: the law of the cache, held while it is in service."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.framework.evaluation import Evaluation, best_nodes
from core.framework.interface import AnyFilter, AnyScore, Verdicts
from core.framework.status import SUCCESS, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.mirror.work import Work
from core.objects.pod import Pod

Result: TypeAlias = Status | int | None


CHAIN: Final = "first failing filter"
"""What the verdicts of all filters together are called where plugins are called by their names."""


BEST: Final = "best nodes"
"""What a choice among the nodes that fit is called there; 1 stands for a node that may be chosen, 0 for the others."""


class Difference(msgspec.Struct, frozen=True, gc=False):
    """A cell that is not what a fresh evaluation gives: a status, or a raw score, None where there is none."""

    plugin: str
    node: str
    cached: Result
    fresh: Result


class Sampler:
    """Chooses the questions to check: every so many that the share is kept, without any chance."""

    def __init__(self, share: float) -> None:
        """Take the share of questions to check, 0..1."""
        self._share: Final = share
        self._due = 0.0

    def chosen(self) -> bool:
        """Tell whether the next question is to be checked."""
        self._due += self._share
        if self._due < 1.0:
            return False
        self._due -= 1.0
        return True


class ShadowedEvaluation:
    """Compares each answer of a cache with a fresh one, which is the one that it gives."""

    def __init__(
        self,
        cached: Evaluation,
        fresh: Evaluation,
        on_checked: Callable[[int, Sequence[Difference]], None],
        work: Work,
    ) -> None:
        """Tell `on_checked` how many cells were compared, and which of them differ; charge `work` once."""
        self._cached = cached
        self._fresh = fresh
        self._on_checked = on_checked
        self._work = work

    @property
    def mirror(self) -> ClusterMirror:
        """What the plugins are asked about."""
        return self._fresh.mirror

    @property
    def pod(self) -> Pod:
        """The pod, with all its fields."""
        return self._fresh.pod

    @property
    def source(self) -> str:
        """As the cache has it, although each answer was computed again."""
        return self._cached.source

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Return the fresh verdicts."""
        cached = self._cached.verdicts(plugin, batch)
        with self._work.uncharged():
            fresh = self._fresh.verdicts(plugin, batch)
        if cached is not None or fresh is not None:
            self._compare(plugin.name, batch, _statuses(cached, batch), _statuses(fresh, batch))
        return fresh

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Return the fresh verdicts."""
        cached = self._cached.filtered(filters, batch)
        with self._work.uncharged():
            fresh = self._fresh.filtered(filters, batch)
        self._compare(CHAIN, batch, _statuses(cached, batch), _statuses(fresh, batch))
        return fresh

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Return the fresh scores."""
        cached = self._cached.raw_scores(plugin, batch)
        with self._work.uncharged():
            fresh = self._fresh.raw_scores(plugin, batch)
        if cached is not None or fresh is not None:
            self._compare(plugin.name, batch, _numbers(cached, batch), _numbers(fresh, batch))
        return fresh

    def best(
        self, filters: Sequence[AnyFilter], scores: Sequence[tuple[AnyScore, int]], batch: NodeBatch
    ) -> IntpArray | None:
        """Return the best nodes by a fresh evaluation; None where the cache does not tell them."""
        cached = self._cached.best(filters, scores, batch)
        if cached is None:
            return None
        with self._work.uncharged():
            fitting = (self._fresh.filtered(filters, batch).codes == 0).nonzero()[0]
            fresh = best_nodes(scores, self._fresh, batch, fitting)
        self._compare(BEST, batch, _among(cached, batch), _among(fresh, batch))
        return fresh

    def _compare(self, name: str, batch: NodeBatch, cached: Sequence[Result], fresh: Sequence[Result]) -> None:
        known = [position for position in range(len(batch)) if position not in batch.strangers]
        self._on_checked(
            len(known),
            [
                Difference(name, batch.names[position], cached[position], fresh[position])
                for position in known
                if cached[position] != fresh[position]
            ],
        )


def _statuses(verdicts: Verdicts | None, batch: NodeBatch) -> Sequence[Result]:
    if verdicts is None:
        return [SUCCESS] * len(batch)
    return [verdicts.statuses[code] for code in verdicts.codes.tolist()]


def _among(best: IntpArray, batch: NodeBatch) -> Sequence[Result]:
    among = np.zeros(len(batch), np.int64)
    among[best] = 1
    return _numbers(among, batch)


def _numbers(scores: Int64Array | None, batch: NodeBatch) -> Sequence[Result]:
    numbers: Sequence[Result] = [None] * len(batch) if scores is None else scores.tolist()
    return numbers
