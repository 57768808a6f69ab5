"""Pods without a node in the watch: candidates for a decision, some with a nominated node."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from msgspec.structs import replace

from core.mirror.node_info import NodeTable
from core.mirror.pod_columns import PodColumns
from core.objects.groups import (
    DEFAULT_TIMEOUT,
    MAX_MINIMUM,
    MAX_TIMEOUT,
    PACKING_ANNOTATION,
    SPREAD,
    GroupKey,
    Packing,
    PodGroup,
    SchedulingGroup,
)
from core.objects.pod import Pod, Waiting

_NONE: Final[Mapping[str, Pod]] = {}


class PendingPods:
    """uid -> pod, for the pods of the API server that are neither bound nor ended.

    Source of `nominated_for`: k8s.io/kubernetes pkg/scheduler/backend/queue/nominator.go. Nominations that a scheduler
    has not written yet are missing, because they are only in the scheduler's memory.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self.nominated: Final[dict[str, dict[str, Pod]]] = {}
        """Node, known or not -> uid -> pods nominated for the node. Nodes without nominated pods have no entry."""
        self.changes = 0
        """Grows with each change of the pods. Pods without a node take no generation of the mirror."""
        self._expected: dict[str, list[Callable[[], None]]] = {}  # uid -> callbacks for when the watch shows the pod

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def get(self, uid: str) -> Pod | None:
        """Return a pod, or None if it is unknown or not pending."""
        return self._pods.get(uid)

    def nominated_for(self, node: str) -> Mapping[str, Pod]:
        """Return the pods nominated for a node, by UID."""
        return self.nominated.get(node, _NONE)

    @contextmanager
    def expecting(self, uid: str, call: Callable[[], None]) -> Iterator[None]:
        """Within the block, call `call` each time the state of a pod is put. `call` must not change the mirror."""
        calls = self._expected.setdefault(uid, [])
        calls.append(call)
        try:
            yield
        finally:
            calls.remove(call)
            if not calls:
                del self._expected[uid]

    def put(self, pod: Pod) -> None:
        """Add or update a pod without a node."""
        self.remove(pod.uid)
        self._pods[pod.uid] = pod
        self.changes += 1
        if pod.nominated_node_name:
            self.nominated.setdefault(pod.nominated_node_name, {})[pod.uid] = pod
        if self._expected:
            for call in self._expected.get(pod.uid, ()):
                call()

    def remove(self, uid: str) -> None:
        """Remove a pod that is bound, ended or deleted. An unknown pod is ignored."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        self.changes += 1
        if known.nominated_node_name:
            there = self.nominated[known.nominated_node_name]
            del there[uid]
            if not there:
                del self.nominated[known.nominated_node_name]


UNSEEN: Final = 30.0
"""Seconds after an eviction. If the watch does not show the victim terminating by then, the wait ends."""


class VictimWait(NamedTuple):
    """One pod waits for the end of another."""

    preemptor: Pod
    victim: Pod
    node: str
    since: float
    """When the wait was first seen, by the caller's clock."""


class _Eviction(NamedTuple):
    node: str
    victims: frozenset[str]
    at: float


class Preemptors:
    """(preemptor, victim) -> since when the preemptor waits for the victim.

    A pending pod waits for the pods that Kindred evicted for it. On the node for which it is nominated, it also waits
    for terminating pods of lower priority. It does not matter which client deleted them: the preemptor gets their
    resources in any case. The rule applies to the pods of every scheduler. Source of the rule: k8s.io/kubernetes v1.37
    pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (PodEligibleToPreemptOthers).

    A wait ends when the victim is deleted or on another node. It also ends when the preemptor is assumed, bound,
    deleted, or nominated for another node. Reads never return an ended wait. They return a new wait after the next
    `follow`.
    """

    def __init__(self, nodes: NodeTable, pods: PodColumns, pending: PendingPods) -> None:
        self._nodes = nodes
        self._pods = pods
        self._pending = pending
        self._evictions: dict[str, _Eviction] = {}  # uid of the preemptor -> its eviction
        self._since: dict[tuple[str, str], float] = {}  # uids of (preemptor, victim)

    def evicted(self, preemptor: str, node: str, victims: Collection[str], now: float) -> None:
        """Record the victims on a node, by UID, that were evicted for a pod. They replace the pod's earlier victims."""
        self._evictions[preemptor] = _Eviction(node, frozenset(victims), now)
        self.follow(now)

    def forget(self, preemptor: str) -> None:
        """Remove the eviction for a pod that no longer gets that node."""
        self._evictions.pop(preemptor, None)

    def follow(self, now: float) -> None:
        """Record the waits that have begun, and drop those that have ended. Visits only pods of nominated nodes."""
        self._evictions = {uid: each for uid, each in self._evictions.items() if self._lasts(uid, each, now)}
        self._since = {pair: self._since.get(pair, now) for pair in self._pairs()}

    def waits(self) -> Iterator[VictimWait]:
        """Yield all waits, ordered by the names of victims, then of preemptors (upstream GetPreemptorsByVictim)."""
        waits = (self._wait(*pair) for pair in self._pairs() if pair in self._since)
        yield from sorted(waits, key=_order)

    def of_preemptor(self, uid: str) -> Iterator[VictimWait]:
        """Yield the waits of a pod, ordered by the names of the victims."""
        return (each for each in self.waits() if each.preemptor.uid == uid)

    def _wait(self, preemptor: str, victim: str) -> VictimWait:
        pod, waiting = self._pods.get(victim), self._pending.get(preemptor)
        if pod is None or waiting is None:
            raise KeyError(f"{preemptor} does not wait for {victim}")
        return VictimWait(waiting, pod, pod.node_name, self._since[preemptor, victim])

    def _pairs(self) -> set[tuple[str, str]]:
        """Return (preemptor, victim) of all present waits."""
        found = set()
        for node, pods in self._pending.nominated.items():
            info = self._nodes.infos.get(node)
            on_node = [] if info is None else [self._pods.pods[row] for row in info.rows]
            terminating = [pod for pod in on_node if pod.terminating]
            for uid, pod in pods.items():
                if uid not in self._pods.rows:
                    found |= {(uid, each.uid) for each in terminating if each.priority < pod.priority}
        for uid, eviction in self._evictions.items():
            if self._is_pending_for(uid, eviction.node):
                found |= {(uid, victim) for victim in eviction.victims if self._is_on(victim, eviction.node)}
        return found

    def _lasts(self, uid: str, eviction: _Eviction, now: float) -> bool:
        """Return whether a victim exists and terminates, or the watch may not show its termination yet."""
        on_node = [pod for victim in eviction.victims if (pod := self._pods.get(victim)) is not None]
        return self._is_pending_for(uid, eviction.node) and any(
            pod.terminating or now - eviction.at < UNSEEN for pod in on_node
        )

    def _is_pending_for(self, uid: str, node: str) -> bool:
        pod = self._pending.get(uid)
        # Without a nomination, the watch may be late, or the pod will be nominated again (app/verbs/evictor.py).
        return pod is not None and uid not in self._pods.rows and pod.nominated_node_name in {"", node}

    def _is_on(self, uid: str, node: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.node_name == node


def _order(wait: VictimWait) -> tuple[str, str, str]:
    return wait.victim.full_name, wait.victim.uid, wait.preemptor.full_name


_MAX_LEFT: Final = 10_000


class SchedulingGroups:
    """Pod.scheduling_group -> members, as the watch shows them: with or without a node, and while they terminate.

    The memory is bounded by the existing pods and PodGroups.
    """

    def __init__(self) -> None:
        self.key_of: Final[dict[str, str]] = {}
        """uid -> group, for all members."""
        self._members: dict[str, dict[str, Pod]] = {}
        self._present: set[str] = set()
        self._smallest: dict[str, int] = {}
        self.left: Final[deque[str]] = deque(maxlen=_MAX_LEFT)
        """The groups of members that counted on a node and left, one entry for each. The reader takes them out."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the groups that have a member."""
        return iter(self._members)

    def members(self, key: str) -> Mapping[str, Pod]:
        """Return uid -> member of a group, in the order of arrival."""
        return self._members.get(key, _NONE)

    def smallest_minimum(self, key: str) -> int:
        """Return the smallest minimum that the PodGroup has had, or 1 if it is unknown.

        kube-scheduler may schedule by an earlier state of the PodGroup than the watch shows.
        """
        return self._smallest.get(key, 1)

    def see(self, pod: Pod, *, deleted: bool, counted: bool) -> None:
        """Apply the state of a pod. `counted`: the mirror has counted it on a node up to now."""
        key = "" if deleted or pod.terminal else pod.scheduling_group
        known = self.key_of.get(pod.uid)
        if known is not None and known != key:
            self._leave(known, pod.uid, counted=counted)
        if key:
            self.key_of[pod.uid] = key
            self._members.setdefault(key, {})[pod.uid] = pod

    def see_group(self, group: SchedulingGroup, *, deleted: bool) -> None:
        """Apply the state of a PodGroup."""
        key = group.full_name
        if deleted:
            self._present.discard(key)
            self._forget_unused(key)
            return
        self._present.add(key)
        self._smallest[key] = min(group.minimum, self._smallest.get(key, group.minimum))

    def _leave(self, key: str, uid: str, *, counted: bool) -> None:
        members = self._members[key]
        del members[uid], self.key_of[uid]
        if counted:
            self.left.append(key)
        if not members:
            del self._members[key]
            self._forget_unused(key)

    def _forget_unused(self, key: str) -> None:
        if key not in self._present and key not in self._members:
            self._smallest.pop(key, None)


class Rule(NamedTuple):
    """How many members of a group are placed together, and for how many seconds places are reserved for them.

    `problem` is why the rule is unknown, in one line. Empty if it is known.
    """

    minimum: int
    timeout: float
    problem: str = ""


class Group:
    """The members of one group. `version` changes with each change of the group that can affect its placement."""

    __slots__ = ("by_object", "ended", "finished", "key", "members", "version")

    def __init__(self, key: GroupKey) -> None:
        self.key: Final = key.name
        """NAMESPACE/NAME"""
        self.by_object: Final = key.by_object
        """Whether the group is a PodGroup."""
        self.members: dict[str, Pod] = {}  # uid -> pod as in the watch, in the order of arrival
        self.ended = 0
        """Members that had a node and were deleted or have ended, since the group first had a member."""
        self.finished = 0
        """Members that have ended on a node, and were not deleted before."""
        self.version = 0

    def rule(self, pod_groups: Mapping[str, PodGroup]) -> Rule:
        """Return the rule from the PodGroup or from the annotations of the members.

        If annotations differ, the largest minimum and the shortest timeout apply: no member is placed too early, and no
        place is reserved for too long.
        """
        if self.by_object:
            return _of_object(self.key, pod_groups.get(self.key))
        stated = [pod.group for pod in self.members.values() if pod.group is not None]
        problem = next((each.problem for each in stated if each.problem), "")
        if problem:
            return Rule(0, 0.0, problem)
        minimum = max((each.minimum for each in stated), default=0)
        if not minimum:
            return Rule(0, 0.0, "no member has the annotation kindred.dev/group-minimum")
        return Rule(minimum, min((each.timeout for each in stated if each.timeout), default=DEFAULT_TIMEOUT))

    def packing(self, pod_groups: Mapping[str, PodGroup]) -> Packing:
        """Return the packing from the PodGroup or from the annotations of the members, or SPREAD if none is set.

        An invalid annotation, or members that differ, are a `problem`.
        """
        if self.by_object:
            found = pod_groups.get(self.key)
            return SPREAD if found is None else found.packing
        stated = [pod.group.packing for pod in self.members.values() if pod.group is not None]
        packings = {each for each in stated if each is not None}
        wrong = sorted(each.problem for each in packings if each.problem)
        if wrong:
            return Packing(problem=wrong[0])
        if len(packings) > 1:
            ways = ", ".join(sorted(f"{each.way.value} {each.topology_key}".strip() for each in packings))
            return Packing(problem=f"metadata.annotations[{PACKING_ANNOTATION}]: members differ: {ways}")
        return next(iter(packings), SPREAD)


class PodGroups:
    """The groups with a member. Upstream's own pod groups are not included.

    A group is removed with its last member, so the memory is bounded by the existing pods.
    """

    def __init__(self) -> None:
        self.key_of: Final[dict[str, GroupKey]] = {}
        """uid -> key of the group, for all members."""
        self._groups: dict[GroupKey, Group] = {}
        self.removed = 0
        """How many groups have lost their last member so far."""

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __contains__(self, group: Group) -> bool:
        """Return whether a group still has members. One that had none for a time is another group."""
        return self._groups.get(GroupKey(group.key, group.by_object)) is group

    def get(self, key: GroupKey) -> Group | None:
        """Return a group, or None if it has no member."""
        return self._groups.get(key)

    def of(self, uid: str) -> Group | None:
        """Return the group of a pod, or None if it is in none."""
        key = self.key_of.get(uid)
        return None if key is None else self._groups[key]

    def see(self, pod: Pod, *, deleted: bool) -> None:
        """Apply the state of a pod, which may join a group, leave it, or move to another one."""
        key = None if deleted or pod.terminal else pod.group_key
        known = self.key_of.get(pod.uid)
        if known is not None and known != key:
            self._groups[known].finished += bool(pod.terminal and pod.node_name and not deleted)
            self._leave(known, pod.uid)
        if key is not None:
            self._enter(key, pod)

    def touch(self, name: str) -> None:
        """Mark the group of a PodGroup as changed, because that was changed or deleted."""
        group = self._groups.get(GroupKey(name, by_object=True))
        if group is not None:
            group.version += 1

    def touch_member(self, uid: str) -> None:
        """Mark the group of a pod as changed, because the pod no longer counts on the node that was decided for it."""
        group = self.of(uid)
        if group is not None:
            group.version += 1

    def _enter(self, key: GroupKey, pod: Pod) -> None:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
        before = group.members.get(pod.uid)
        group.members[pod.uid] = pod
        self.key_of[pod.uid] = key
        # Each failed attempt writes the pod's condition, which is no reason to try the gang again.
        if before is None or placing(before) != placing(pod):
            group.version += 1

    def _leave(self, key: GroupKey, uid: str) -> None:
        group = self._groups[key]
        group.ended += bool(group.members.pop(uid).node_name)
        group.version += 1
        del self.key_of[uid]
        if not group.members:
            del self._groups[key]
            self.removed += 1


def _of_object(key: str, found: PodGroup | None) -> Rule:
    if found is None:
        return Rule(0, 0.0, f"PodGroup {key} does not exist")
    if not 1 <= found.minimum <= MAX_MINIMUM:
        return Rule(0, 0.0, f"PodGroup {key}: spec.minMember must be 1..{MAX_MINIMUM}, got {found.minimum}")
    if not 0 <= found.timeout <= MAX_TIMEOUT:
        problem = f"PodGroup {key}: spec.scheduleTimeoutSeconds must be 1..{MAX_TIMEOUT:.0f}, got {found.timeout}"
        return Rule(0, 0.0, problem)
    return Rule(found.minimum, found.timeout or DEFAULT_TIMEOUT)


def placing(pod: Pod) -> Pod:
    """Return a pod without the fields that do not affect its placement."""
    return replace(pod, resource_version="", nominated_node_name="", waiting=Waiting(gates=pod.waiting.gates))
