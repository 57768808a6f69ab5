"""Gangs: reserve places for all members of a group in one step, and keep them until a request comes for each member.

A reservation is an assumption without a binding under way. The reserved pod counts on its node for every other
decision, and no TTL ends the assumption. A reservation ends in one of these ways:

- A request comes for the member. The member is decided for that node, and its assumption becomes an ordinary one.
- A request comes for the member, and its node no longer fits. Then the whole gang is placed anew, or not at all.
- The reservation is older than the timeout of the group.
- The member terminates or is deleted, its node is gone, or so many are that the group cannot reach its minimum.
- The minimum drops below the reserved members.
- The replica stops deciding.

A member counts as scheduled if it is decided for or bound, and not terminating. Once the minimum is scheduled, any
other member is decided for as an ordinary pod. A group with a scheduled member has *started*: it no longer waits for
absent members. It comes before all groups that have not started, because its running members wait for the rest.

Before a gang is tried, some waiting gangs are tried: those with a greater priority, then with fewer timeouts, then with
an older first member. How many, and how long gangs wait for one that does not fit, is in core/gangs/holds.py.
How long an attempt may take, and when it is made again, is in core/gangs/trials.py.

This module persists nothing. After a restart the watch shows which pods are bound. `begin` then places the rest of all
started groups before the first decision.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from core.gangs.attempts import Shortfall
from core.gangs.holds import Holds, ahead_of, behind_text, holding
from core.gangs.placing import Clock, Placer
from core.gangs.trials import Part, Trials
from core.gangs.unit import (
    GangResponse,
    Placed,
    Rejected,
    Tally,
    Unfinished,
    Unit,
    UnitStatus,
    order_of,
    packing_of,
    shortfall_text,
    status_of,
    status_without_members,
    tally,
    to_place,
    waiting_text,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.pending_pods import Group, Rule
from core.mirror.work import WorkLimitError
from core.objects.groups import GroupKey, Packing, PodGroup
from core.objects.pod import Pod

_RESUME: Final = 20
"""Parts, of a second together. The first decision waits for it, and so do the Lease and the probes."""


class Gangs:
    """All gangs of one mirror. The decider calls `ask` for each pod with a group, before its own decision."""

    def __init__(
        self,
        mirror: ClusterMirror,
        placer: Placer,
        eligible: Callable[[Pod], bool],
        cpu: Clock = lambda: 0.0,
    ) -> None:
        """Place members with `placer`. `eligible` returns whether this scheduler decides for a pending pod.

        `cpu` gives the seconds of CPU of the thread, which bound attempts. By default they have no bound.
        """
        self._mirror = mirror
        self._placer = placer
        self._trials = Trials(mirror, placer, cpu)
        self._eligible = eligible
        self._units: dict[Group, Unit] = {}
        self._reserving: dict[Group, Unit] = {}  # units with a reservation
        self._waiting: dict[Group, Unit] = {}  # units that were refused and not placed since
        self._holds_of = Holds()
        self._removed = 0  # groups that had lost their last member when those were last forgotten
        self._packing_problems: dict[str, str] = {}  # unit -> problem that was not taken yet
        self._has_begun = False

    # Deciding.

    def begin(self, now: float) -> None:
        """Call before each decision. The first call places the rest of all groups that have started.

        Each releases reservations that are no longer needed. Without reservations it costs next to nothing.
        """
        if not self._has_begun:
            self._has_begun = True
            self._resume(now)
        if self._reserving:
            self.review(now)

    def end(self) -> None:
        """Release all reservations: this replica stops deciding, or starts again with `begin`."""
        for unit in tuple(self._reserving.values()):
            self._release(unit)
        for unit in self._units.values():
            unit.drop_attempt()
        self._has_begun = False

    def review(self, now: float) -> None:
        """Release reservations that are no longer needed."""
        for unit in tuple(self._reserving.values()):
            if now >= unit.deadline:
                self._time_out(unit, now)
            elif self._version(unit) != unit.version:
                self._review(unit)

    def work(self, now: float) -> bool:
        """Go on, for a moment, with gangs that wait and may fit now. Return whether one has more to do at once.

        Call it between requests, while this replica decides.
        """
        if not self._has_begun or not self._waiting:
            return False
        self._forget_gone_waiting()
        part, half = self._trials.part(now), self._trials.part(now, 0.5)
        for unit in sorted(self._waiting.values(), key=lambda each: each.looked_at):
            if self._trials.is_over(half):
                break
            if unit.stop is not None:
                self._trials.look(unit, now)
        hopeful = (each for each in self._waiting.values() if each.has_hope or each.attempt is not None)
        units, goes_on = sorted(hopeful, key=self._trials.turn), False
        part = part._replace(of=next((each for each in units if each.attempt is not None), None))
        for unit in units:
            if self._trials.is_over(part):
                return True
            goes_on |= self._try(unit, part)
        return goes_on

    def take_packing_problems(self) -> Mapping[str, str]:
        """Return unit -> why its requested packing was not followed. Each problem is returned once."""
        problems = {key: problem for key, problem in self._packing_problems.items() if problem}
        self._packing_problems.clear()
        return problems

    def has_reserved(self, uid: str) -> bool:
        """Return whether a pod has a reservation."""
        return self._reserved_for(uid) is not None

    def leave(self, uid: str) -> bool:
        """Release the reservation of a pod, and return whether it had one.

        It is no member any more, and the watch may be late, or a more important pod gets the place. If nobody of its
        gang is decided for, the others would run without it, so their reservations end, too.
        """
        unit = self._reserved_for(uid)
        if unit is not None:
            self._give_back(unit, uid)
            self._review(unit)
        return unit is not None

    def _reserved_for(self, uid: str) -> Unit | None:
        group = self._mirror.groups.of(uid)
        unit = None if group is None else self._units.get(group)
        return unit if unit is not None and uid in unit.reserved else None

    def ask(self, pod: Pod, now: float, nodes: NodeBatch | None = None) -> GangResponse:
        """Return the result for a pending member of a group. The pod must not be assumed, except by a reservation.

        `nodes` are the nodes to choose from; None means all. Raises WorkLimitError as a decision does.
        """
        groups = self._mirror.groups
        if pod.uid in self._mirror.pending and pod.uid in groups.key_of:
            return self._response(pod, now, nodes)
        groups.see(pod, deleted=False)  # the request was faster than the watch
        response: GangResponse = None
        try:
            response = self._response(pod, now, nodes)
        finally:
            if not isinstance(response, Placed):
                groups.see(pod, deleted=True)  # no event would end it if the watch never showed the pod
        return response

    def _response(self, pod: Pod, now: float, nodes: NodeBatch | None) -> GangResponse:
        group = self._mirror.groups.of(pod.uid)
        if group is None:
            return None
        if group.members[pod.uid].terminating:  # no API server binds it any more
            return Rejected(f"group {group.key}: {pod.full_name} is being deleted")
        unit = self._unit(group)
        unit.requested_at = now if unit.requested_at is None else unit.requested_at
        node = unit.reserved.get(pod.uid)
        if node is not None and self._holds(unit, pod, node, now, nodes):
            return self._claimed(unit, node, now)
        response: GangResponse = None
        try:
            response = self._settled(unit, now) or self._placed(unit, pod, now, nodes)
        finally:
            if unit.reserved and not isinstance(response, Placed):
                self._review(unit)  # this pod may have been the last one decided for: then all places go
        return response

    def _settled(self, unit: Unit, now: float) -> Rejected | Unfinished | None:
        """Return the result that needs no count of the members: to count 500 takes 0.6 ms."""
        if not self._trials.is_settled(unit, now):
            return None
        if unit.attempt is not None and unit.has_hope:
            return self._unfinished(unit, len(unit.attempt.pods))
        return Rejected(f"group {unit.group.key}: {unit.reason}")

    def _placed(self, unit: Unit, pod: Pod, now: float, nodes: NodeBatch | None) -> GangResponse:
        """Place the members that must be placed together. `pod`, the member of the request, goes first."""
        rule, counts = self._rule(unit.group), self._tally(unit, pod)
        if unit.reserved and not (counts.scheduled or self._hold(unit, pod, self._trials.part(now))):
            self._release(unit)
            counts = self._tally(unit, pod)
        unit.order = order_of(unit, counts, pod)
        members, missing = to_place(rule, counts, len(unit.reserved), pod)
        if waits := waiting_text(rule, counts, missing):
            return self._rejected(unit, waits)
        if not members:
            self._waiting.pop(unit.group, None)
            unit.drop_attempt()
            unit.scheduled_at = now if unit.scheduled_at is None else unit.scheduled_at
            return None
        part, half = self._trials.part(now), self._trials.part(now, 0.5)
        ahead = self._ahead(unit)
        for each in ahead:
            if self._trials.is_over(half):
                break
            self._try(each, half)
        if not counts.scheduled and (blocking := holding(unit, ahead, now)):
            return self._rejected(unit, behind_text(unit, blocking))
        self._attempt(unit, members, part, nodes, again=True)
        if unit.has_hope:
            return self._unfinished(unit, len(members))
        if unit.shortfall is not None:
            return self._rejected(unit, unit.reason, unit.shortfall)
        node = unit.reserved.pop(pod.uid)
        self._mirror.release(pod.uid)
        return self._claimed(unit, node, now)

    def _unfinished(self, unit: Unit, members: int) -> Unfinished:
        self._waiting[unit.group] = unit
        unit.reason, unit.is_timed_out = f"places for its {members} members are still looked for", False
        return Unfinished(f"group {unit.group.key}: {unit.reason}")

    def _holds(self, unit: Unit, pod: Pod, node: str, now: float, nodes: NodeBatch | None) -> bool:
        """End a member's reservation, and return whether its node still fits.

        Before the first member of a gang, the places of the others are judged, too: it would run without them.
        If one does not fit, or takes too much work, release the whole gang's reservations. Raises WorkLimitError.
        """
        fits = False
        try:
            others_fit = unit.has_begun or self._hold(unit, pod, self._trials.part(now))
            self._give_back(unit, pod.uid)
            fits = others_fit and (nodes is None or nodes.position(node) >= 0) and self._placer.fits(pod, node)
        finally:
            if not fits:
                self._release(unit)
        return fits

    def _hold(self, unit: Unit, first: Pod, part: Part) -> bool:
        """Return whether all members but the first still fit where a node has changed, as far as time allows."""
        infos, members = self._mirror.nodes.infos, unit.group.members
        changed = (at for at in unit.reserved.items() if at[0] != first.uid and infos[at[1]].generation > unit.judged)
        return all(self._trials.is_over(part) or self._placer.holds(members[uid], node) for uid, node in changed)

    def _claimed(self, unit: Unit, node: str, now: float) -> Placed:
        unit.has_begun = True
        if not unit.reserved:
            self._reserving.pop(unit.group, None)
            unit.scheduled_at = now
        return Placed(node)

    def _rejected(self, unit: Unit, reason: str, shortfall: Shortfall | None = None) -> Rejected:
        self._waiting[unit.group] = unit
        unit.reason, unit.is_timed_out, unit.shortfall = reason, False, shortfall
        if shortfall is None:
            unit.drop_attempt()
            unit.error = unit.stop = None
        return Rejected(f"group {unit.group.key}: {reason}")

    def _attempt(
        self, unit: Unit, members: Sequence[Pod], part: Part, nodes: NodeBatch | None = None, *, again: bool = False
    ) -> None:
        """Reserve places for members without one if they fit, see `Trials.go_on`."""
        packing = self._packing(unit)
        found = self._trials.go_on(unit, members, packing, part, nodes=nodes, again=again)
        if found is not None:
            self._reserve(unit, found, part.now, self._rule(unit.group).timeout)
            self._overtake(self._ahead(unit), part.now)
        elif unit.shortfall is not None and not unit.has_hope:
            unit.reason = shortfall_text(unit.shortfall)

    def _reserve(self, unit: Unit, found: Mapping[str, str], now: float, timeout: float) -> None:
        if not unit.reserved:  # else a member that comes again and again would keep the places of the others
            unit.reserved_at, unit.deadline, unit.finished = now, now + timeout, unit.group.finished
            unit.judged = self._mirror.generation
        unit.reserved.update(found)
        unit.has_begun = self._tally(unit).scheduled > 0
        unit.version = self._version(unit)
        unit.reason, unit.is_timed_out = "", False
        unit.overtaken = 0
        self._reserving[unit.group] = unit
        self._waiting.pop(unit.group, None)

    # Gangs that come first.

    def _forget_gone_waiting(self) -> None:
        if self._removed != self._mirror.groups.removed:  # each request asks, and 10,000 may wait
            self._removed = self._mirror.groups.removed
            for group in [group for group in self._waiting if group not in self._mirror.groups]:
                del self._waiting[group]

    def _ahead(self, unit: Unit) -> list[Unit]:
        self._forget_gone_waiting()
        return ahead_of(unit, self._waiting.values())

    def _overtake(self, ahead: Sequence[Unit], now: float) -> None:
        for each in ahead:
            if each.shortfall is not None:
                self._holds_of.overtaken(each, self._rule(each.group).timeout, now)

    def _try(self, unit: Unit, part: Part) -> bool:
        """Go on with reserving places for a gang if all its members exist and it may fit. No request is for it.

        Return whether the attempt is still open.
        """
        if not self._trials.is_due(unit, part):
            return False
        rule, counts = self._rule(unit.group), self._tally(unit)
        members, _ = to_place(rule, counts, len(unit.reserved))
        if not members:
            unit.has_hope = False
            if counts.scheduled:  # it needs no places, so it has no turn before others
                self._waiting.pop(unit.group, None)
        elif self._trials.is_over(part):  # an attempt takes one step at least
            return True
        elif counts.scheduled or not holding(unit, self._ahead(unit), part.now):
            with suppress(WorkLimitError):  # a request for a member of this gang reports the error
                self._attempt(unit, members, part)
            return unit.has_hope
        unit.drop_attempt()  # else no other one goes on while this one is held up
        return False

    def _resume(self, now: float) -> None:
        """Place the rest of the groups that have started, in one long part: no other pod should take their places."""
        part = self._trials.part(now, _RESUME)
        units = [self._unit(group) for group in self._mirror.groups]
        for unit in units:
            unit.order = order_of(unit, self._tally(unit))
        for unit in sorted((unit for unit in units if not unit.order[0]), key=lambda each: each.order):
            unit.has_hope = True
            self._waiting[unit.group] = unit
            self._try(unit, part)

    # Reservations that are no longer needed.

    def _time_out(self, unit: Unit, now: float) -> None:
        unit.reason = f"{len(unit.reserved)} members had no request in time"
        self._release(unit)
        unit.timed_out_at, unit.is_timed_out = now, True
        unit.timeouts += 1

    def _review(self, unit: Unit) -> None:
        """After members, the rule or nodes changed, release the reservations that are of no use any more."""
        unit.version = self._version(unit)
        for uid in tuple(unit.reserved):
            member, is_gone = unit.group.members.get(uid), unit.reserved[uid] not in self._mirror.nodes.slots
            if member is None or member.terminating or member.node_name or is_gone or not self._mirror.is_assumed(uid):
                self._give_back(unit, uid)
        rule, scheduled = self._rule(unit.group), self._tally(unit).scheduled
        excess = scheduled + len(unit.reserved) - rule.minimum
        finished = unit.group.finished - unit.finished  # they have run, so the others must
        if rule.problem or (excess + finished < 0 and not scheduled):
            self._release(unit)
            return
        for uid in list(unit.reserved)[-excess:] if excess > 0 else ():
            self._give_back(unit, uid)
        if not unit.reserved:
            del self._reserving[unit.group]

    def _release(self, unit: Unit) -> None:
        for uid in tuple(unit.reserved):
            self._give_back(unit, uid)
        self._reserving.pop(unit.group, None)

    def _give_back(self, unit: Unit, uid: str) -> None:
        del unit.reserved[uid]
        member = unit.group.members.get(uid)
        is_bound = member is not None and member.node_name  # a GET may have shown that, before the watch
        if self._mirror.is_assumed(uid) and not is_bound:
            self._mirror.release(uid)

    # Members and rules.

    def _unit(self, group: Group) -> Unit:
        unit = self._units.get(group)
        if unit is None:
            if len(self._units) > len(self._mirror.groups):
                self._forget_gone()
            unit = self._units[group] = Unit(group)
        return unit

    def _forget_gone(self) -> None:
        for group in [group for group in self._units if group not in self._mirror.groups]:
            del self._units[group]

    def _version(self, unit: Unit) -> tuple[int, int]:
        return unit.group.version, self._mirror.nodes.epoch

    def _rule(self, group: Group) -> Rule:
        return group.rule(self._mirror.objects(PodGroup))

    def _packing(self, unit: Unit) -> Packing:
        packing = unit.group.packing(self._mirror.objects(PodGroup))
        if packing.problem != unit.packing_problem:
            unit.packing_problem = packing.problem
            self._packing_problems[unit.group.key] = packing.problem
        return packing

    def _tally(self, unit: Unit, incoming: Pod | None = None) -> Tally:
        return tally(unit, self._mirror, self._eligible, incoming)

    # Status.

    def unit_status(self, key: GroupKey | None, now: float) -> UnitStatus | None:
        """Return the status of a unit (upstream GetUnitStatus), or None if no such group exists."""
        group = None if key is None else self._mirror.groups.get(key)
        if group is not None:
            unit = self._unit(group)
            packed = packing_of(unit, self._mirror)
            return status_of(unit, self._tally(unit), self._rule(group), packed, now)
        found = None if key is None or not key.by_object else self._mirror.objects(PodGroup).get(key.name)
        return None if found is None else status_without_members(found)

    def unit_statuses(self, now: float) -> Iterator[UnitStatus]:
        """Yield the status of every unit by name, including PodGroups without members."""
        keys = {GroupKey(name, by_object=True) for name in self._mirror.objects(PodGroup)}
        for key in sorted(keys.union(GroupKey(group.key, group.by_object) for group in self._mirror.groups)):
            if (status := self.unit_status(key, now)) is not None:  # always true: each key is of a group or a PodGroup
                yield status
