"""A class that fits nowhere: its verdicts, which are brought up to date with what has changed since then.

Between two requests for such a pod, mostly one node has changed, and the pod still does not fit there.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from core.equivalence.ranking import NO_SLOTS
from core.equivalence.rows import STATUS_BYTES
from core.equivalence.validity import NEVER, Validities, Validity
from core.framework.interface import MAX_REASONS, PASSED, SUCCESS, AnyFilter, Code, Status, Verdicts, Versions
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.objects.pod import Pod

Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int8]]
"""Places in the list of filters."""
_MOST_STATUSES: Final = 256
"""Statuses that no node has any more are kept up to this number."""
_UNKNOWN: Final[Places] = np.empty(0, np.int8)


class _Meaning(Enum):
    SAME = "same"
    """No verdict can have changed."""
    UNKNOWN = "unknown"
    """The verdict on any node may have changed."""


class Judge(msgspec.Struct, gc=False):
    """A filter up to the last one that is the first to fail on some node."""

    place: int
    """In the list of filters."""
    plugin: AnyFilter
    validity: Validity
    versions: Versions | None
    """Of the counters that it reads. None: PreFilter had no state, and every node passed."""
    state: Any = None
    """The state of PreFilter if it lasts, once it was needed."""

    def state_now(self, mirror: ClusterMirror, pod: Pod, at: int, slots: Collection[int]) -> Any:  # noqa: ANN401
        """Return the state by which the nodes of some slots are judged again, or a _Meaning.

        They are all on which something has changed since a time of the cache. Other nodes have the verdicts of then.
        """
        if self.state is not None:
            return self.state
        status, state = self.plugin.pre_filter(mirror, pod)
        if state is None:
            return _Meaning.SAME if status.code in PASSED and self.versions is None else _Meaning.UNKNOWN
        if self.validity.reads_counters:
            return self._counted(state, at, slots)
        if self.plugin.state_lasts:
            self.state = state
        return state

    def statuses(self, state: Any, batch: NodeBatch, there: Sequence[int]) -> Sequence[Status]:  # noqa: ANN401
        """Return the verdicts on some nodes, by position."""
        found = [self.plugin.status_on(state, batch.slots.item(position)) for position in there]
        if None not in found:
            return found  # type: ignore[return-value]  # a second list would take as long as a look-up
        verdicts = self.plugin.filter(state, batch.part(np.array(there, np.intp)))
        return [*map(verdicts.status, range(len(there)))]

    def _counted(self, state: Any, at: int, slots: Collection[int]) -> Any:  # noqa: ANN401
        """Return the result of `state_now` for a filter that reads counters."""
        validity, before = self.validity, self.versions
        if before is None or validity.last_at > at:
            return _Meaning.UNKNOWN
        if self.plugin.filter_versions(state) == before:
            return _Meaning.SAME
        is_known = validity.others_at <= at and self.plugin.passes_alike(state, before, slots)
        return state if is_known else _Meaning.UNKNOWN


class _Again(msgspec.Struct, gc=False):
    """What came of judging changed nodes again, by position. It is taken over only if nothing else may have changed."""

    cells: int = 0
    """How many cells were evaluated."""
    places: dict[int, int] = {}
    """Nodes that fail otherwise than before -> the place of the filter that is the first to fail there now."""
    statuses: dict[int, Status] = {}
    """The same nodes -> why."""
    versions: list[tuple[Judge, Versions]] = []
    """Filters with the present versions of their counters."""


class Unfit(msgspec.Struct, gc=False):
    """The verdicts on nodes of which none fits, at a time of the cache."""

    at: int
    slots: IntpArray
    verdicts: Verdicts
    first: Places = _UNKNOWN
    """Place of the first filter that fails, by node. Empty: not known."""
    judging: Sequence[Judge] = ()
    """The filters up to the last of these places, in order."""
    rejecting: Sequence[AnyFilter] = ()
    """The later ones whose PreFilter may reject all nodes after a change of counters, by anything but a pod."""

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes, with the text and the response that a refusal makes of the verdicts."""
        of_text = STATUS_BYTES * min(len(self.verdicts.statuses), MAX_REASONS)
        return self.verdicts.codes.nbytes + self.first.nbytes + of_text

    def cells_again(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch, validities: Validities) -> int | None:
        """Bring the verdicts up to date, and return how many cells were evaluated. None: all nodes must be judged anew.

        `pod` is the representative of the class, and `batch` has the nodes of the verdicts. Only the changed nodes are
        judged again, and only by filters up to the one that fails there first. If they fail as before, the verdicts
        stay the same object.
        """
        at = self.at
        if at == validities.now:
            return 0
        if not len(self.first) or validities.all_at > at:
            return None
        if validities.others_at > at and _is_rejected(self.rejecting, mirror, pod):
            return None
        concerned = [each for each in self.judging if each.validity.last_at > at or each.validity.reads_counters]
        cells = 0
        if concerned:
            again = self._again(concerned, mirror, pod, batch, validities.slots_since(at))
            if again is None:
                return None
            self._take(again)
            cells = again.cells
        self.at = validities.now
        return cells

    def _again(
        self,
        concerned: Sequence[Judge],
        mirror: ClusterMirror,
        pod: Pod,
        batch: NodeBatch,
        slots: Collection[int] | None,
    ) -> _Again | None:
        """Judge the nodes of changed slots by some filters. None: too many changed, or others may have, or one fits."""
        if slots is None or len(self.verdicts.statuses) > _MOST_STATUSES:
            return None
        again, first, positions = _Again(), self.first, batch.positions_of(slots)
        for judge in concerned:
            state = judge.state_now(mirror, pod, self.at, slots)
            if state is _Meaning.UNKNOWN:
                return None
            if state is _Meaning.SAME:
                continue
            there = [each for each in positions if judge.place <= again.places.get(each, first.item(each))]
            for position, status in zip(there, judge.statuses(state, batch, there), strict=True):
                if status != (self.verdicts.status(position) if judge.place == first.item(position) else SUCCESS):
                    if status.code in {Code.SUCCESS, Code.ERROR}:
                        return None
                    again.places[position], again.statuses[position] = judge.place, status
            again.cells += len(there)
            if judge.validity.reads_counters:
                again.versions.append((judge, judge.plugin.filter_versions(state)))
        return again

    def _take(self, again: _Again) -> None:
        """Take over what came of judging nodes again."""
        for judge, versions in again.versions:
            judge.versions = versions
        if not again.places:
            return
        before = self.verdicts
        # The codes stay as they are, also of a status that two filters have.
        statuses = [*before.statuses, *(each for each in again.statuses.values() if each not in before.statuses)]
        codes = before.codes.astype(np.min_scalar_type(len(statuses)))  # a copy, because others have the verdicts
        for position, place in again.places.items():
            codes[position] = statuses.index(again.statuses[position])
            self.first[position] = place
        self.verdicts = Verdicts(codes, tuple(statuses))
        if _present(before) == _present(self.verdicts):
            self.verdicts.text, self.verdicts.stored = before.text, before.stored


def _present(verdicts: Verdicts) -> Collection[Status]:
    return {verdicts.statuses[code] for code in verdicts.found()}


def _is_rejected(filters: Sequence[AnyFilter], mirror: ClusterMirror, pod: Pod) -> bool:
    """Return whether the PreFilter of one of these rejects all nodes."""
    for plugin in filters:  # a generator takes as long as the PreFilter
        status, state = plugin.pre_filter(mirror, pod)
        if state is None and status.code not in PASSED:
            return True
    return False


NOT_STORED: Final = Unfit(NEVER, NO_SLOTS, Verdicts(NO_SLOTS, ()))
"""No node fits, and the verdicts are not all in the chain."""
