"""When attempts to place units are made, and for how long.

An attempt costs up to a second of CPU, and any number of units may wait. So

- an attempt is made in parts of `_PART`: the first one at a request or between requests, the others between them, one
  attempt after another (`Gangs.work`);
- a unit that did not fit is tried again when what stopped it can have changed: a node that has changed fits the member
  that had none, beside the members that had a node (`Placer.may_fit_now`); or the unit itself, an object that is
  neither a node nor a pod, or the rules have changed. A request for a member also has it tried again after
  `_AGAIN_AFTER`, because a nomination can have ended, or another order of its members may do;
- the attempts that fail get a tenth of the process (core/gangs/ledger.py). Half of that is for the first parts of
  attempts, which are the whole of ordinary ones, and half for later parts, so that neither keeps the other waiting.
  Of longer attempts, those of namespaces whose attempts have failed least come first. What one takes beyond its half,
  the next window has less.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from core.events import Kind
from core.gangs.attempts import Shortfall
from core.gangs.ledger import WINDOW, Ledger
from core.gangs.placing import Attempt, Clock, Gang, Placer, steps_for
from core.gangs.unit import Stop, Unit
from core.mirror.changes import NamespaceChange, ObjectChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import ForkError
from core.mirror.node_info import NodeBatch
from core.mirror.pending_pods import placing
from core.mirror.work import WorkLimitError
from core.objects.groups import SPREAD, Packing
from core.objects.pod import Pod

_PART: Final = 0.05
"""Seconds of CPU. The members that have a node are supposed there anew in each part: 0.02 s for 500."""
_HALF: Final = 0.4
"""Seconds of CPU in ten seconds, for the first parts of all attempts that fail, and as much for their later parts."""
_MOST_OF_LOOKS: Final = 0.15
"""Seconds of CPU in ten seconds, for finding out whether an attempt may end otherwise than the last one."""
_LOOK_EVERY: Final = 0.5
"""Seconds between two looks for one gang, when a third of that is used."""
_WITHOUT_HOPE: Final = 0.1
"""Up to so many of a namespace, attempts are made though nothing is known to have changed that could help."""
_LONG: Final = 2.0
"""Seconds of CPU. An attempt that has taken longer counts as one that failed."""
_SEARCH_EVERY: Final = 5.0
"""Seconds between two searches for one gang. Attempts in between skip the search."""
_FEW: Final = 10
"""If an attempt has failed for so many members, the next one begins with its places."""
_AGAIN_AFTER: Final = 5.0
"""Seconds for which a gang is rejected without an attempt while nothing that can help has changed."""


class OtherChanges:
    """Counts the changes of other objects than nodes and pods that can make a pod fit."""

    hears: Final = (NamespaceChange, ObjectChange, RulesChange)

    def __init__(self, kinds: Collection[Kind]) -> None:
        self.count = 0
        self._kinds = kinds

    def changed(self, change: NamespaceChange | ObjectChange | RulesChange) -> None:
        """Handle a change that the mirror has made."""
        self.count += not isinstance(change, ObjectChange) or change.kind in self._kinds


class Part(NamedTuple):
    """A time for parts of attempts."""

    now: float
    """By the caller's clock."""
    end: float
    """By the clock of the CPU."""
    of: Unit | None = None
    """The unit whose attempt goes on. All others may only begin."""


class Trials:
    """The attempts for all units of a mirror. `clock` gives seconds of CPU."""

    def __init__(self, mirror: ClusterMirror, placer: Placer, clock: Clock) -> None:
        """Listen to the mirror."""
        self._mirror = mirror
        self._placer = placer
        self._clock = clock
        self._first_parts = Ledger()
        self._later_parts = Ledger()
        self._looks = Ledger()
        self._attempts = 0
        self._others = OtherChanges(placer.kinds)
        mirror.listen(self._others)

    def part(self, now: float, share: float = 1.0) -> Part:
        """Begin a part, or a share of one."""
        return Part(now, self._clock() + _PART * share)

    def is_over(self, part: Part) -> bool:
        """Return whether a part is over."""
        return self._clock() >= part.end

    def turn(self, unit: Unit) -> tuple[bool, float, object]:
        """Return a sort key: hopeful units come first, then those of namespaces whose attempts have failed least."""
        of_present = unit.spent if unit.spent <= _LONG else 0.0  # which says nothing yet
        return not unit.has_hope, self._used_by(unit) - of_present, unit.order

    def _used_by(self, unit: Unit) -> float:
        return self._first_parts.used_by(unit.group.key) + self._later_parts.used_by(unit.group.key)

    def is_due(self, unit: Unit, part: Part, *, again: bool = False) -> bool:
        """Return whether an attempt for a unit begins or goes on. With `again`, also without hope from time to time."""
        self.look(unit, part.now)
        is_again = again and part.now - unit.failed_at >= _AGAIN_AFTER
        return (unit.has_hope or unit.attempt is not None or is_again) and self._allows(unit, part)

    def _allows(self, unit: Unit, part: Part) -> bool:
        of_first, of_later = self._first_parts.used_for(unit.group.key, part.now), self._later_parts.used(part.now)
        if unit.attempt is not None and unit is not part.of:
            return False
        if not unit.has_hope and self._used_by(unit) >= _WITHOUT_HOPE:
            return False
        if unit.attempt is None:
            return of_first < _HALF
        # What one that is under way takes beyond that, the next window has less, see `_stop`.
        return of_later < _HALF or (unit.parts > 1 and unit.spent <= _LONG)

    def look(self, unit: Unit, now: float) -> None:
        """See whether an attempt for a unit may end otherwise than the last one."""
        if unit.has_hope:
            return
        stop, now_is = unit.stop, (unit.group.version, self._mirror.nodes.epoch, self._others.count)
        if stop is None or (stop.version, stop.nodes, stop.others) != now_is or stop.of_nodes:
            unit.has_hope = True
        elif stop.generation != self._mirror.generation and unit.shortfall is not None and self._may_look(unit, now):
            began = self._clock()
            unit.has_hope = self._placer.may_fit_now(unit.shortfall, stop.generation)
            unit.stop = stop._replace(generation=self._mirror.generation)
            unit.looked_at = now
            self._looks.charge(unit.group.key, self._clock() - began, now)
        if unit.has_hope:
            unit.drop_attempt()  # which was made without

    def is_settled(self, unit: Unit, now: float) -> bool:
        """Return whether a request for a member makes no attempt, for the same reason as before."""
        if unit.version_tried != unit.group.version:
            return False
        if unit.attempt is not None and unit.has_hope:
            return unit.attempt.is_possible
        is_due = self.is_due(unit, Part(now, 0.0), again=True)
        return unit.shortfall is not None and not unit.has_hope and not is_due

    def _may_look(self, unit: Unit, now: float) -> bool:
        used = self._looks.used_for(unit.group.key, now)
        return used < _MOST_OF_LOOKS / 3 or (used < _MOST_OF_LOOKS and now - unit.looked_at >= _LOOK_EVERY)

    def go_on(  # noqa: PLR0913  # the gang, and the time that there is
        self,
        unit: Unit,
        members: Sequence[Pod],
        packing: Packing,
        part: Part,
        *,
        nodes: NodeBatch | None = None,
        again: bool = False,
    ) -> Mapping[str, str] | None:
        """Place the members, or go on with that until the part is over. Return uid -> node if they have places now.

        Else `unit.has_hope` is whether that is open, and `unit.shortfall` is why they have none. With `again`, try them
        without hope if that was long ago. Raises WorkLimitError for a member that takes too much work.
        """
        if not self._is_of(unit, members):
            unit.drop_attempt()
        if self.is_due(unit, part, again=again):
            attempt = unit.attempt or self._begin(unit, members, packing, part.now, nodes)
            if (found := self._go_on(unit, attempt, part)) is not None:
                return found
        if not unit.has_hope and unit.error is not None:
            raise unit.error.with_traceback(None)
        return None

    def _is_of(self, unit: Unit, members: Sequence[Pod]) -> bool:
        """Return whether a unit's attempt is for as many members, which are as they were when it began."""
        attempt, group = unit.attempt, unit.group
        if attempt is None or not attempt.is_possible or len(attempt.pods) != len(members):
            return False
        if unit.version_tried != group.version:
            of_now = (group.members.get(uid) for uid in attempt.pods)
            pairs = zip(attempt.pods.values(), of_now, strict=True)
            if any(pod is None or placing(pod) != placing(before) for before, pod in pairs):
                return False
            unit.version_tried = group.version
        return True

    def _begin(
        self, unit: Unit, members: Sequence[Pod], packing: Packing, now: float, nodes: NodeBatch | None
    ) -> Attempt:
        searches = unit.searched_at is None or now - unit.searched_at >= _SEARCH_EVERY
        steps = steps_for(len(self._mirror.nodes.slots)) if searches else 0
        gang = Gang(members, nodes, steps, packing, others_on=unit.nodes(self._mirror))
        failed = unit.shortfall if unit.has_hope and packing == SPREAD and nodes is None else None
        if failed is not None and failed.needed - failed.placed > _FEW:
            failed = None
        unit.attempt, unit.version_tried = self._placer.begin(gang, failed), unit.group.version
        unit.others = self._others.count
        unit.attempts, self._attempts = unit.attempts + 1, self._attempts + 1
        unit.charged = f"{unit.group.key}/{self._attempts}"
        return unit.attempt

    def _go_on(self, unit: Unit, attempt: Attempt, part: Part) -> Mapping[str, str] | None:
        began = self._clock()
        if unit.parts and attempt.is_last_part and part.end - began < _PART * 0.8:
            return None  # it takes longer than a part
        found: Mapping[str, str] | Shortfall | ForkError | WorkLimitError | None
        others = self._others.count
        try:
            found = attempt.go_on(part.now, self._clock, part.end)
        except (ForkError, WorkLimitError) as error:
            found = error.with_traceback(None)
        self._others.count = others  # volumes that were reserved and given back are no change
        spent, ledger = self._clock() - began, self._later_parts if unit.parts else self._first_parts
        ledger.charge(unit.charged, spent, part.now)
        unit.spent, unit.parts = unit.spent + spent, unit.parts + 1
        if isinstance(found, ForkError):  # a member has a node now
            unit.drop_attempt()
        elif isinstance(found, Shortfall | WorkLimitError):
            self._stop(unit, attempt, found, part.now)
        elif found is not None:
            for each in (self._first_parts, self._later_parts):
                each.forgive(unit.charged)
            unit.drop_attempt()
            unit.has_hope, unit.shortfall, unit.error, unit.stop = False, None, None, None
            return found
        return None

    def _stop(self, unit: Unit, attempt: Attempt, why: Shortfall | WorkLimitError, now: float) -> None:
        unit.shortfall = stopped = why if isinstance(why, Shortfall) else None
        unit.error = why if isinstance(why, WorkLimitError) else None
        unit.failed_at = now
        unit.searched_at = now if attempt.searches else unit.searched_at
        of_nodes = attempt.of_nodes and stopped is not None and stopped.pod.uid == next(iter(attempt.pods))
        unit.stop = Stop(attempt.generation, unit.version_tried, attempt.nodes, unit.others, of_nodes)
        if (excess := self._later_parts.used(now) - _HALF) > 0.0:
            self._later_parts.charge(unit.group.key, min(excess, unit.spent), now + WINDOW)
        unit.has_hope = False
        unit.drop_attempt()
