"""Gangs: reserves places for all members of a group in one step, and keeps them until a request comes for each member.

A reservation is an assumption whose binding is not finished: the pod counts on its node for every other decision, and
no TTL ends it, because no binding is under way. It ends

    when a request comes for the member: it is decided for that node, and from then on an assumption as any other
    when a request comes for the member, and its node no longer fits (then all of the gang's are placed anew, or none)
    when it is older than the timeout of the group
    when so many members are gone that the minimum cannot be reached, or the minimum has shrunk below it
    when the replica no longer decides

Members count as scheduled when they are bound and do not terminate, or were decided for. With the minimum of them, any
other member is decided for as an ordinary pod. A group with a scheduled member has *started*: it no longer waits for
its other members. It comes before all groups that have not started, because its running members wait for the rest.

Order: a gang is tried after the waiting ones of a greater priority, of fewer timeouts, and of an older first member
(`_AHEAD` of them at most). One that does not fit lets those behind it go first, but not for ever: when `_OVERTAKEN`
gangs have been placed so, those behind it wait for as long as its timeout. Then it is overtaken again, as it may never
fit.

Nothing here is written anywhere. After a restart the watch shows who is bound, and `begin` places the rest of all
groups that have started before anything else is decided.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nsmallest
from typing import Final, NamedTuple, TypeAlias

from core.gangs.attempts import Shortfall
from core.gangs.placing import Placer, steps_for
from core.gangs.unit import Tally, Unit, order_of, shortfall_text, tally, to_place, waiting_text
from core.gangs.unit_status import UnitStatus, packing_of, status_of, status_without_members
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.pod_groups import Group, Rule
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.objects.pod_group import Packing, PodGroup

_AHEAD: Final = 4
"""Waiting gangs that are tried before another one at its request."""
_OVERTAKEN: Final = 20
"""Gangs that are placed before a waiting one that comes before them, until it holds them up for a while."""
_SEARCH_EVERY: Final = 5.0
"""Seconds between two searches back for one gang; in between it is tried without one."""
_MEMO_FOR: Final = 5.0
"""Seconds for which a gang is refused without a try while no node and no placed pod has changed."""


class Placed(NamedTuple):
    """A member's place. It is reserved no more: the caller assumes the pod there."""

    node: str


class Refused(NamedTuple):
    """Why a member has no place; `shortfall` if the members are all there."""

    reason: str
    shortfall: Shortfall | None = None


Answer: TypeAlias = Placed | Refused | None
"""The result for a member; None: the minimum is scheduled, and it is an ordinary pod."""


class Gangs:
    """All gangs of one mirror. The decider calls `ask` for each pod with a group, before it decides itself."""

    def __init__(self, mirror: ClusterMirror, placer: Placer, eligible: Callable[[Pod], bool]) -> None:
        """Place members at `placer`; `eligible` returns whether this scheduler decides for a pending pod."""
        self.timeouts = 0
        """Gangs whose reservations were released because they were too old."""
        self.placed = 0
        """How many times all members of a gang found a place."""
        self._mirror = mirror
        self._placer = placer
        self._eligible = eligible
        self._units: dict[str, Unit] = {}
        self._reserving: dict[str, Unit] = {}  # units with a reservation
        self._waiting: dict[str, Unit] = {}  # units that were refused and not placed since
        self._packing_problems: dict[str, str] = {}  # unit -> problem that was not taken yet
        self._undone = 0  # generations that went into attempts that left nothing
        self._has_begun = False

    # Deciding.

    def begin(self, now: float) -> None:
        """Be called before each decision: the first one waits for the rest of all groups that have started.

        Reservations that have lost their reason are released. Costs next to nothing where there are none.
        """
        if not self._has_begun:
            self._has_begun = True
            self._resume(now)
        self.review(now)

    def end(self) -> None:
        """Release everything: this replica decides no more, or will begin anew."""
        for unit in tuple(self._reserving.values()):
            self._release(unit)
        self._has_begun = False

    def review(self, now: float) -> None:
        """Release reservations that have lost their reason."""
        for unit in tuple(self._reserving.values()):
            if now >= unit.deadline:
                self._time_out(unit, now)
            elif unit.group.version != unit.version:
                self._review(unit)

    def take_packing_problems(self) -> Mapping[str, str]:
        """Return, each once, why units were placed without the packing that they request, by unit."""
        problems = {key: problem for key, problem in self._packing_problems.items() if problem}
        self._packing_problems.clear()
        return problems

    def has_reserved(self, uid: str) -> bool:
        """Return whether a pod has a reservation."""
        unit = self._units.get(self._mirror.groups.key_of.get(uid, ""))
        return unit is not None and uid in unit.reserved

    def ask(self, pod: Pod, now: float, nodes: NodeBatch | None = None) -> Answer:
        """Return the result for a pending member with a group. Only a reservation may assume the member.

        `nodes` are the nodes that it may be placed on; None: all. Raises WorkLimitError as a decision does.
        """
        groups = self._mirror.groups
        if pod.uid not in groups.key_of:
            groups.see(pod, deleted=False)  # the watch is late
        group = groups.get(groups.key_of.get(pod.uid, ""))
        if group is None:
            return None
        unit = self._unit(group)
        unit.asked_at = now if unit.asked_at is None else unit.asked_at
        node = unit.reserved.get(pod.uid)
        if node is not None and self._holds(unit, pod, node, nodes):
            return self._claimed(unit, node, now)
        return self._placed(unit, pod, now, nodes)

    def _placed(self, unit: Unit, pod: Pod, now: float, nodes: NodeBatch | None) -> Answer:
        """Place all members that are needed, with `pod`, the member of the request, first."""
        rule, counts = self._rule(unit.group), self._tally(unit)
        unit.order = order_of(unit, counts, pod)
        members, missing = to_place(rule, counts, len(unit.reserved), pod)
        if waits := waiting_text(rule, counts, missing):
            return self._refused(unit, counts, waits)
        if not members:
            self._waiting.pop(unit.group.key, None)
            unit.scheduled_at = now if unit.scheduled_at is None else unit.scheduled_at
            return None
        for each in self._ahead(unit):
            self._try(each, now)
        ahead = [each for each in self._ahead(unit) if each.shortfall is not None]
        if counts.scheduled == 0 and (holding := next((each for each in ahead if now < each.holds_until), None)):
            return self._refused(unit, counts, f"waits behind group {holding.group.key}, which was overtaken too often")
        shortfall = self._attempt(unit, members, rule, now, nodes)
        if shortfall is not None:
            return self._refused(unit, counts, shortfall_text(shortfall), shortfall)
        self._overtake(ahead, now)
        node = unit.reserved.pop(pod.uid)
        self._mirror.forget(pod.uid)
        return self._claimed(unit, node, now)

    def _holds(self, unit: Unit, pod: Pod, node: str, nodes: NodeBatch | None) -> bool:
        """Take a member's reservation; if its node does not fit any more, release all of the gang's instead."""
        del unit.reserved[pod.uid]
        self._mirror.forget(pod.uid)
        if (nodes is None or nodes.position(node) >= 0) and self._placer.fits(pod, node):
            return True
        self._release(unit)
        return False

    def _claimed(self, unit: Unit, node: str, now: float) -> Placed:
        if not unit.reserved:
            self._reserving.pop(unit.group.key, None)
            unit.scheduled_at = now
        return Placed(node)

    def _refused(self, unit: Unit, counts: Tally, reason: str, shortfall: Shortfall | None = None) -> Refused:
        if (
            not counts.scheduled
        ):  # a member has come again, and has no place: the reservations of the others have no use
            self._release(unit)
        self._waiting[unit.group.key] = unit
        unit.reason, unit.is_timed_out, unit.shortfall = reason, False, shortfall
        if shortfall is None:
            unit.memo = None
        return Refused(f"group {unit.group.key}: {reason}", shortfall)

    def _attempt(
        self, unit: Unit, members: Sequence[Pod], rule: Rule, now: float, nodes: NodeBatch | None = None
    ) -> Shortfall | None:
        """Reserve places for members without one. If they do not fit, change nothing and return why."""
        before = self._mirror.generation
        memo = None if nodes is not None else (before - self._undone, unit.group.version, {pod.uid for pod in members})
        if memo is not None and memo == unit.memo and now - unit.failed_at < _MEMO_FOR:
            return unit.shortfall
        searches = unit.searched_at is None or now - unit.searched_at >= _SEARCH_EVERY
        steps = steps_for(len(self._mirror.nodes.slots)) if searches else 0
        unit.attempts += 1
        found = self._placer.place(
            members,
            now,
            of_first=nodes,
            max_steps=steps,
            packing=self._packing(unit),
            beside=unit.nodes(self._mirror),
        )
        if not isinstance(found, Shortfall):
            self._reserve(unit, found, now, rule.timeout)
            return None
        self._undone += self._mirror.generation - before
        unit.shortfall, unit.memo, unit.failed_at = found, memo, now
        unit.searched_at = now if searches else unit.searched_at
        return found

    def _reserve(self, unit: Unit, found: Mapping[str, str], now: float, timeout: float) -> None:
        self.placed += 1
        unit.reserved.update(found)
        unit.reserved_at, unit.deadline, unit.version = now, now + timeout, unit.group.version
        unit.shortfall = unit.memo = None
        unit.reason, unit.is_timed_out = "", False
        unit.overtaken = 0
        self._reserving[unit.group.key] = unit
        self._waiting.pop(unit.group.key, None)

    # Gangs that come first.

    def _ahead(self, unit: Unit) -> list[Unit]:
        there = self._mirror.groups
        for key in [key for key, each in self._waiting.items() if there.get(key) is not each.group]:
            del self._waiting[key]
        ahead = (each for each in self._waiting.values() if each is not unit and each.order < unit.order)
        return nsmallest(_AHEAD, ahead, key=lambda each: each.order)

    def _overtake(self, ahead: Sequence[Unit], now: float) -> None:
        for each in ahead:
            each.overtaken += 1
            if each.overtaken >= _OVERTAKEN:
                each.overtaken = 0
                each.holds_until = now + self._rule(each.group).timeout

    def _try(self, unit: Unit, now: float) -> None:
        """Reserve places for a gang if all of it is there. The current request is not for one of its members."""
        rule = self._rule(unit.group)
        members, _ = to_place(rule, self._tally(unit), len(unit.reserved))
        if members:
            with suppress(WorkLimitError):  # a request for one of its own members reports the error
                self._attempt(unit, members, rule, now)

    def _resume(self, now: float) -> None:
        units = [self._unit(group) for group in self._mirror.groups]
        for unit in units:
            unit.order = order_of(unit, self._tally(unit))
        for unit in sorted((unit for unit in units if not unit.order[0]), key=lambda each: each.order):
            self._try(unit, now)

    # Reservations that have lost their reason.

    def _time_out(self, unit: Unit, now: float) -> None:
        unit.reason = f"{len(unit.reserved)} members were not asked about in time"
        self._release(unit)
        unit.timed_out_at, unit.is_timed_out = now, True
        unit.timeouts += 1
        self.timeouts += 1

    def _review(self, unit: Unit) -> None:
        """Release the reservations without a use, after members or the rule have changed."""
        unit.version = unit.group.version
        for uid in tuple(unit.reserved):
            if uid not in unit.group.members or not self._mirror.is_assumed(uid):  # deleted, bound, of another group
                self._give_back(unit, uid)
        rule, scheduled = self._rule(unit.group), self._tally(unit).scheduled
        excess = scheduled + len(unit.reserved) - rule.minimum
        if rule.problem or (excess < 0 and not scheduled):
            self._release(unit)
            return
        for uid in list(unit.reserved)[-excess:] if excess > 0 else ():
            self._give_back(unit, uid)
        if not unit.reserved:
            del self._reserving[unit.group.key]

    def _release(self, unit: Unit) -> None:
        for uid in tuple(unit.reserved):
            self._give_back(unit, uid)
        self._reserving.pop(unit.group.key, None)

    def _give_back(self, unit: Unit, uid: str) -> None:
        del unit.reserved[uid]
        if self._mirror.is_assumed(uid):
            self._mirror.forget(uid)

    # Members and rules.

    def _unit(self, group: Group) -> Unit:
        unit = self._units.get(group.key)
        if unit is None or unit.group is not group:  # another life of a group of that name
            if len(self._units) > len(self._mirror.groups):
                self._forget_gone()
            unit = self._units[group.key] = Unit(group)
        return unit

    def _forget_gone(self) -> None:
        groups = self._mirror.groups
        for key in [key for key, unit in self._units.items() if groups.get(key) is not unit.group]:
            del self._units[key]

    def _rule(self, group: Group) -> Rule:
        return group.rule(self._mirror.objects(PodGroup))

    def _packing(self, unit: Unit) -> Packing:
        packing = unit.group.packing(self._mirror.objects(PodGroup))
        if packing.problem != unit.packing_problem:
            unit.packing_problem = packing.problem
            self._packing_problems[unit.group.key] = packing.problem
        return packing

    def _tally(self, unit: Unit) -> Tally:
        return tally(unit, self._mirror, self._eligible)

    # Status.

    def unit_status(self, key: str, now: float) -> UnitStatus | None:
        """Return the status of a unit by NAMESPACE/NAME (upstream GetUnitStatus); None if there is no such group."""
        group = self._mirror.groups.get(key)
        if group is not None:
            unit = self._unit(group)
            packed = packing_of(unit, self._mirror)
            return status_of(unit, self._tally(unit), self._rule(group), packed, now)
        found = self._mirror.objects(PodGroup).get(key)
        return None if found is None else status_without_members(found)

    def unit_of(self, pod: Pod, now: float) -> UnitStatus | None:
        """Return the status of a pod's unit; None if it has none, or no member of it is known."""
        return self.unit_status(pod.group_name, now) if pod.group is not None else None

    def unit_statuses(self, now: float) -> Iterator[UnitStatus]:
        """Yield the status of every unit, PodGroups without a member too, by name."""
        for key in sorted({group.key for group in self._mirror.groups} | set(self._mirror.objects(PodGroup))):
            if (status := self.unit_status(key, now)) is not None:  # as every key is of a group or of a PodGroup
                yield status
