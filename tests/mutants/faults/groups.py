"""Faults of scheduling groups: members that do not count, and places that end too early or never."""

from typing import Final

from tests.mutants.fault import Fault

_CYCLES: Final = ("core/gangs/test_group_cycles.py",)
_DECISIONS: Final = ("deciding/test_scheduling_groups.py",)

FAULTS: Final = (
    Fault(
        id="a-second-request-ends-no-cycle",
        breaks="The places of a cycle that failed stay, and make the next one look complete.",
        old="if pod.scheduling_group == cycle.group and pod.uid not in cycle.places:",
        new="if pod.scheduling_group == cycle.group:",
        tests=_CYCLES,
    ),
    Fault(
        id="members-not-in-the-watch-do-not-count",
        breaks="Members that were read from the API server look like missing ones, and their siblings are released.",
        old="if each.pod.scheduling_group == cycle.group}",
        new="if False}",
        tests=_CYCLES,
    ),
    Fault(
        id="ended-members-do-not-count",
        breaks="A member that kube-scheduler still counts is missing, and its siblings are released while they bind.",
        old="ended = sum(group == cycle.group for _, group in self._ended)",
        new="ended = 0",
        tests=_CYCLES,
    ),
    Fault(
        id="released-shortly-after-a-start",
        breaks="Members that ended before the start do not count.",
        old="return self._began is None or now - self._began <= _JUST_ENDED",
        new="return self._began is None",
        tests=_CYCLES,
    ),
    Fault(
        id="unproved-places-stay",
        breaks="After a start, a gang without room holds nodes for as long as a binding may wait.",
        old="self._unproved |= {uid: _Unproved(cycle.group, at, now) for uid, at in cycle.places.items()}",
        new="pass",
        tests=_CYCLES,
    ),
    Fault(
        id="unproved-places-count-as-proved",
        breaks="The places of one failed cycle after a start make the next one look complete.",
        old="if len(placed - unproved) + ended >= minimum:",
        new="if len(placed) + ended >= minimum:",
        tests=_CYCLES,
    ),
    Fault(
        id="an-unproved-place-is-released-while-its-pod-waits",
        breaks="A member whose binding waits for its volume loses its place half a minute after a start.",
        old=" and not self._is_nominated(uid)",
        new="",
        tests=_CYCLES,
    ),
    Fault(
        id="unproved-places-are-released-without-a-list",
        breaks="The watch is late with the binding of a member, and its place is given to another pod.",
        old="            await catch_up()\n",
        new="",
        tests=_DECISIONS,
    ),
    Fault(
        id="a-newer-group-is-judged-late",
        breaks="A group without room keeps its places after a start until kube-scheduler tries it again.",
        old="if self._earlier is not None and group not in self._earlier:",
        new="if False:",
        tests=_CYCLES,
    ),
    Fault(
        id="every-group-is-newer-than-the-start",
        breaks="A group of before the start is judged as if the mirror had had all its members.",
        old="self._earlier = frozenset(self._mirror.objects(SchedulingGroup))",
        new="self._earlier = frozenset()",
        tests=_CYCLES,
    ),
    Fault(
        id="places-of-later-assumptions-released",
        breaks="A member that was placed anew, out of its cycle, is released with the cycle.",
        old="return assumed is not None and assumed.assumed_at == assumed_at",
        new="return assumed is not None",
        tests=_CYCLES,
    ),
    Fault(
        id="the-present-minimum-alone-counts",
        breaks="kube-scheduler has seen a smaller minimum, and what it binds is released.",
        old="self._smallest[key] = min(group.minimum, self._smallest.get(key, group.minimum))",
        new="self._smallest[key] = group.minimum",
    ),
    Fault(
        id="cycles-without-the-feature-gate",
        breaks="Members that are bound one by one are released.",
        old="        if not self._mirror.rules.group_cycles:\n            return\n",
        new="",
        tests=_CYCLES,
    ),
    Fault(
        id="a-member-is-refused-by-kindred",
        breaks="A gang is refused for ever, because a failed place of a sibling counts here and not in kube-scheduler.",
        old="if not len(best) and pod.in_scheduling_group:",
        new="if False:",
        tests=_DECISIONS,
    ),
    Fault(
        id="a-nominated-place-expires",
        breaks="A pod whose binding waits for its volume no longer counts.",
        old="self._assumed.take_overdue(now, is_nominated)",
        new="self._assumed.take_overdue(now)",
        tests=_DECISIONS,
    ),
    Fault(
        id="placements-are-decided-for",
        breaks="Of a group with schedulingConstraints, a placement is counted that is not bound.",
        old="        if group.unsupported:\n",
        new="        if False:\n",
        tests=_DECISIONS,
    ),
    Fault(
        id="an-older-version-is-not-tried",
        breaks="No PodGroup of Kubernetes 1.36 and 1.37 is seen.",
        old="        if self.state.try_next_version():\n",
        new="        if False:\n",
        tests=("test_reflector_objects.py",),
    ),
    Fault(
        id="a-member-of-a-whole-group-is-evicted",
        breaks="One member of a group with disruptionMode all is evicted, and the others run in part.",
        old="return group is not None and group.disrupted_whole",
        new="return False",
    ),
)
