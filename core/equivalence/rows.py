"""The results of one plugin for one class: a verdict or a raw score per node, or one status for all nodes."""

from typing import Final, Protocol

import numpy as np

from core.equivalence.cells import Cells, Miss
from core.framework.interface import AnyFilter, AnyScore, Verdicts, Versions
from core.framework.status import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array
from core.objects.pod import Pod

_MANY_STATUSES: Final = 1024
"""From this many statuses on, unused ones are removed."""
NEVER: Final = -1
"""Time of a row without results."""
ROW_BYTES: Final = 600
"""Size of a row without its cells and statuses."""
STATUS_BYTES: Final = 300
"""Size of a status other than success, with a reason and its code."""


class Row:
    """The results of one plugin for one class. `cells` hold codes into `statuses`, or raw scores.

    `outcome` is set if the plugin had one status for all nodes. Then there are no cells. At the time `as_of` of the
    cache, all results were valid. `versions` are the versions of the counters that the row depends on.
    """

    __slots__ = ("_codes", "as_of", "cells", "drops", "empty", "miss", "outcome", "statuses", "versions")

    def __init__(self, miss: Miss) -> None:
        self.as_of = NEVER
        self.outcome: Status | None = None
        self.cells: Cells | None = None
        self.versions: Versions = ()
        self.drops = 0
        """How often all results were dropped, or replaced by one outcome."""
        self.empty = True  # whether no cell has a number
        self.miss = miss  # why the row is empty
        self.statuses: list[Status] = [SUCCESS]
        self._codes: dict[Status, int] = {SUCCESS: 0}

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        cells = 0 if self.cells is None else self.cells.nbytes
        return ROW_BYTES + cells + STATUS_BYTES * (len(self.statuses) - 1)

    def settle(self, outcome: Status) -> None:
        """Store one status for all nodes."""
        self.outcome = outcome
        self.cells = None
        self.versions = ()
        self.drops += 1

    def grow(self, capacity: int) -> None:
        """Extend to `capacity` slots."""
        if self.cells is not None:
            self.cells.grow(capacity)

    def drop(self, miss: Miss) -> None:
        """Drop all results."""
        if self.outcome is not None or not self.empty:
            self.miss = miss
        self.drops += 1
        self.outcome = None
        if self.cells is not None:
            self.cells.drop_all(miss)
        self.empty = True
        self.statuses, self._codes = [SUCCESS], {SUCCESS: 0}  # no code is in use now

    def drop_some(self, which: BoolArray, miss: Miss) -> None:
        """Drop the results of some slots, or of all slots if the list of statuses is long."""
        if self.cells is None:
            return
        if len(self.statuses) > max(_MANY_STATUSES, 2 * len(self.cells.values)):
            self.drop(miss)
        else:
            self.cells.drop(which, miss)

    def codes_of(self, statuses: tuple[Status, ...]) -> Int64Array:
        """Return this row's codes for a plugin's own statuses."""
        codes = []
        for status in statuses:
            code = self._codes.get(status)
            if code is None:
                code = self._codes[status] = len(self.statuses)
                self.statuses.append(status)
            codes.append(code)
        return np.array(codes, np.int64)


class Aspect(Protocol):
    """The filter side or the score side of a plugin, as a row uses it."""

    name: str

    def prepare(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, object]:
        """Run the Pre extension point. If the state is None, the status is for all nodes."""

    def versions(self, state: object) -> Versions:
        """Return the versions of the counters that the state reads."""

    def results(self, row: Row, state: object, batch: NodeBatch) -> tuple[Int64Array, BoolArray | None]:
        """Run the extension point. Return the row's numbers, and which of them may be cached (None: all)."""


class FilterAspect:
    """PreFilter and Filter."""

    __slots__ = ("_plugin", "name")

    def __init__(self, plugin: AnyFilter) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def prepare(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, object]:
        """Run PreFilter."""
        return self._plugin.pre_filter(mirror, pod)

    def versions(self, state: object) -> Versions:
        """Return the versions of the counters that the state reads."""
        return self._plugin.filter_versions(state)

    def results(self, row: Row, state: object, batch: NodeBatch) -> tuple[Int64Array, BoolArray | None]:
        """Run Filter."""
        return kept_codes(row, self._plugin.filter(state, batch))


class ScoreAspect:
    """PreScore and Score."""

    __slots__ = ("_plugin", "name")

    def __init__(self, plugin: AnyScore) -> None:
        self.name = plugin.name
        self._plugin = plugin

    def prepare(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, object]:
        """Run PreScore."""
        return self._plugin.pre_score(mirror, pod, batch)

    def versions(self, state: object) -> Versions:
        """Return the versions of the counters that the state reads."""
        return self._plugin.score_versions(state)

    def results(self, _row: Row, state: object, batch: NodeBatch) -> tuple[Int64Array, BoolArray | None]:
        """Run Score."""
        return self._plugin.score(state, batch), None


def kept_codes(row: Row, verdicts: Verdicts) -> tuple[Int64Array, BoolArray | None]:
    """Return the row's codes of verdicts, and which may be cached (None: all). An error may not occur again."""
    codes = verdicts.codes
    errors = [code for code, status in enumerate(verdicts.statuses) if status.code is Code.ERROR]
    kept: BoolArray | None = ~np.isin(codes, errors) if errors else None
    translated: Int64Array = row.codes_of(verdicts.statuses)[codes]
    return translated, kept


def counters_unchanged(row: Row, aspect: Aspect, prepared: tuple[Status, object]) -> bool:
    """Return whether a row's results still agree with the counters, by the present state of PreFilter or PreScore."""
    status, state = prepared
    if state is None:
        return status == row.outcome
    return row.outcome is None and aspect.versions(state) == row.versions
