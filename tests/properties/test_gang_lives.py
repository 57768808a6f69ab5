"""The laws of gangs in random lives: none starts in part, no place is held for ever, and a gang that has room runs."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hypothesis import given, note
from hypothesis import strategies as st

from core.events import Action, ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.gangs.unit import SchedulingStatus
from core.mirror.node_info import NodeBatch
from core.objects.groups import GroupKey, PodGroup
from core.objects.pod import Pod
from core.profile import full_profile
from core.scheduling_cycle import filter_nodes
from tests.builders import PodBuilder, make_pod
from tests.core.decoded import pod_of, tell
from tests.core.gangs.gang_setting import GangSetting, node
from tests.core.mirror.audit import audit

PROFILE: Final = full_profile()
NODES: Final = ("x", "y", "z")
GROUPS: Final = (("default", "g"), ("default", "h"), ("other", "g"))
OBJECT: Final = ("default", "pg")
TIMEOUT: Final = 5
T = TypeVar("T")


class Life:
    """A cluster in which gangs come and go, in an order that hypothesis chooses."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self.setting = GangSetting(*(node(name, cpu=3) for name in NODES), tick=self._one_of(0.0, 0.0, 0.002, 0.02))
        self._live: dict[str, PodBuilder] = {}  # full name -> pod
        self._finished: Counter[GroupKey] = Counter()  # members that have ended since nobody of the group had a node
        self._others: list[PodBuilder] = []
        self._cordoned: set[str] = set()
        self._number = 0

    def step(self) -> None:
        """Let one thing happen."""
        often = (self.come, self.ask, self.ask, self.wait)
        of_bindings = (self.bind, self.fail, self.expire, self.finish, self.bind_elsewhere)
        of_members = (self.go, self.come_again, self.terminate, self.move, self.ungate, self.change_group, self.lose)
        of_others = (self.change_nodes, self.cordon, self.take, self.leave, self.restart, self.ask_unseen)
        self._one_of(*often, *often, *often, *of_bindings, *of_members, *of_others)()
        self.setting.gangs.begin(self.setting.now)
        self.check()

    # What happens.

    def come(self) -> None:
        """Let members come, of a group that is there or not. Some have a gate, or another scheduler."""
        minimum = self._one_of(1, 2, 3, 4)
        group, cpu = self._one_of(*GROUPS, OBJECT), self._one_of(1, 2)
        for _ in range(self._one_of(1, minimum)):
            self._show(self._made(group, minimum, cpu))

    def _made(self, group: tuple[str, str], minimum: int, cpu: int) -> PodBuilder:
        self._number += 1
        (namespace, name), kind = group, self._one_of(*(["plain"] * 8), "gated", "of-another-scheduler")
        pod = make_pod(f"p{self._number}").in_namespace(namespace).requests(cpu=cpu).uid(f"u{self._number}")
        if kind == "of-another-scheduler":
            self.setting.excluded.add(pod.name)
        pod = pod.gated("a/b") if kind == "gated" else pod
        if group == OBJECT:
            return pod.label("scheduling.x-k8s.io/pod-group", name)
        return pod.of_group(name, minimum, TIMEOUT)

    def ask(self) -> None:
        """Ask about a member that has no node by the watch, mostly about all nodes."""
        if pending := self._eligible():
            pod, names = self._one_of(*pending), self._one_of(None, None, None, NODES[:1], NODES[1:])
            nodes = None if names is None else [name for name in names if name in self.setting.mirror.nodes.slots]
            self.request(pod, nodes)

    def ask_unseen(self) -> None:
        """Ask about a member that the watch shows later, or never."""
        pod = self._made(self._one_of(*GROUPS), self._one_of(1, 2, 3), 1)
        if not pod.spec and pod.name not in self.setting.excluded:
            self.request(pod)
            if self._one_of("shown", "gone") == "shown":
                self._show(pod)

    def request(self, pod: PodBuilder, names: Collection[str] | None = None) -> str:
        """Ask about a member. If it starts its gang, all others that are needed must have places that fit."""
        value, mirror = pod_of(pod), self.setting.mirror
        had = {uid for uid in self._counted(value) if uid != value.uid}
        reserved = {uid for uid in had if self.setting.gangs.has_reserved(uid)}
        nodes = None if names is None else mirror.batch([*names])
        response = self.setting.ask(pod, nodes)
        note(f"{self.setting.now:.1f} {pod.namespace}/{pod.name}: {response}")
        if response == "ordinary":
            response = self._placed_alone(value, nodes)
        elif response.startswith("on "):
            assert names is None or response[3:] in names
            counted = self._counted(value)
            if not had - reserved:
                assert self._is_whole(value, counted), "it starts in part"
                if not self.setting.tick:
                    assert all(self._fits_still(uid) for uid in counted if self.setting.gangs.has_reserved(uid))
        self.check()
        return response

    def _placed_alone(self, pod: Pod, nodes: NodeBatch | None) -> str:
        mirror = self.setting.mirror
        fitting = self._fitting(pod, mirror.all_nodes() if nodes is None else nodes)
        if not fitting:
            return ""
        mirror.assume(pod, fitting[0], self.setting.now)
        mirror.finish_binding(pod.uid, self.setting.now)
        return f"on {fitting[0]}"

    def bind(self) -> None:
        """Let the watch confirm a pod that was decided for."""
        if decided := self._decided():
            self._bind(self._one_of(*decided))

    def _bind(self, uid: str) -> None:
        stored = self.setting.mirror.assumed[uid].pod
        pod = self._live.get(stored.full_name)
        if pod is not None and pod_of(pod).uid == uid:
            self._show(pod.on(stored.node_name))

    def fail(self) -> None:
        """Let the binding of a pod fail."""
        if decided := self._decided():
            self.setting.mirror.forget(self._one_of(*decided))

    def expire(self) -> None:
        """Let so much time go by without a sign of a binding that its assumption ends."""
        self.setting.now += self._one_of(1.0, 40.0)
        self.setting.mirror.expire(self.setting.now)

    def finish(self) -> None:
        """Let a member that runs end by itself."""
        if running := [pod for pod in self._live.values() if pod.node]:
            pod = self._one_of(*running)
            self._finished[self._key(pod)] += 1
            self.setting.see(pod.phase(self._one_of("Succeeded", "Failed")))
            del self._live[self._name(pod)]

    def go(self) -> None:
        """Let a member be deleted."""
        if self._live:
            self.setting.delete(self._live.pop(self._one_of(*sorted(self._live))))

    def come_again(self) -> None:
        """Let a member be deleted, and another one of its name be created."""
        if self._live:
            pod = self._live[self._one_of(*sorted(self._live))]
            self.setting.delete(pod)
            self._number += 1
            new = self._made(self._group(pod), self._one_of(1, 2, 3), 1)
            self._show(replace(new, name=pod.name))

    def terminate(self) -> None:
        """Let a member begin to terminate."""
        self._change(lambda pod: pod.terminating())

    def bind_elsewhere(self) -> None:
        """Let somebody else bind a member that has no node by the watch."""
        name = self._one_of(*NODES)
        self._change(lambda pod: pod if pod.node or pod.spec else pod.on(name))

    def move(self) -> None:
        """Let a member change its group, or the minimum that it states."""
        name, minimum = self._one_of("g", "h"), self._one_of(1, 2, 3, 4)
        self._change(lambda pod: pod if self._group(pod) == OBJECT else pod.of_group(name, minimum, TIMEOUT))

    def ungate(self) -> None:
        """Let the gates of a member be removed."""
        gated = [pod for pod in self._live.values() if pod.spec]
        if gated:
            self._show(self._one_of(*gated).gated())

    def change_group(self) -> None:
        """Let a PodGroup be created, changed or deleted."""
        actions: tuple[Action, ...] = ("Add", "Update", "Delete")
        action, minimum = self._one_of(*actions), self._one_of(1, 2, 3, 4)
        value = PodGroup(namespace=OBJECT[0], name=OBJECT[1], minimum=minimum, timeout=TIMEOUT)
        self.setting.mirror.apply(ClusterEvent(action, value))

    def lose(self) -> None:
        """Let a more important pod take a reserved place."""
        reserved = [uid for uid in self.setting.mirror.assumed if self.setting.gangs.has_reserved(uid)]
        if reserved:
            self.setting.gangs.leave(self._one_of(*reserved))

    def change_nodes(self) -> None:
        """Let a node go, or come again."""
        name = self._one_of(*NODES[1:])
        if name in self.setting.mirror.nodes.slots:
            self.setting.lose_node(name)
        else:
            self._cordoned.discard(name)
            self.setting.see_node(name, cpu=3)

    def cordon(self) -> None:
        """Let a node be cordoned, or not any more."""
        name = self._one_of(*NODES)
        if name in self.setting.mirror.nodes.slots:
            self._cordoned ^= {name}
            made = node(name, cpu=3)
            tell(self.setting.mirror, "Update", made.unschedulable() if name in self._cordoned else made)

    def take(self) -> None:
        """Let a pod of another scheduler run."""
        self._number += 1
        self._others.append(make_pod(f"o{self._number}").requests(cpu=self._one_of(1, 2)).on(self._one_of(*NODES)))
        self.setting.see(self._others[-1])

    def leave(self) -> None:
        """Let a pod of another scheduler go."""
        if self._others:
            self.setting.delete(self._others.pop())

    def restart(self) -> None:
        """Let another process lead. It knows of no reservation."""
        self.setting.gangs.end()
        assert all(each.deadline is not None for each in self.setting.mirror.assumed.values())
        self.setting.gangs = self.setting.fresh()

    def wait(self) -> None:
        """Let time go by, in which gangs are gone on with."""
        self.setting.work(self._one_of(0.2, 1.0, 6.0))

    # The laws.

    def check(self) -> None:
        """Check that places are held for whole gangs alone, on nodes that are there."""
        mirror, stored = self.setting.mirror, 0
        for status in self.setting.gangs.unit_statuses(self.setting.now):
            stored += status.reserved
            of_some = status.status in {SchedulingStatus.RESERVED, SchedulingStatus.SCHEDULED}
            assert not status.reserved or of_some, status
        unfinished = [uid for uid, each in mirror.assumed.items() if each.deadline is None]
        assert stored == len(unfinished)
        for group in mirror.groups:
            if not any(mirror.is_mirrored(uid) for uid in group.members):
                self._finished.pop(GroupKey(group.key, group.by_object), None)

    def check_places(self) -> None:
        """Check after a review that no part of a gang of which nobody runs holds places, or holds them on no node."""
        mirror, gangs = self.setting.mirror, self.setting.gangs
        for group in mirror.groups:
            reserved = {uid for uid in group.members if gangs.has_reserved(uid)}
            counted = self._counted(next(iter(group.members.values())))
            assert not reserved or counted - reserved or self._is_whole(next(iter(group.members.values())), counted)
        places = {each.pod.node_name for uid, each in mirror.assumed.items() if gangs.has_reserved(uid)}
        assert places <= {*mirror.nodes.slots}
        assert audit(mirror) == []

    def _is_whole(self, member: Pod, counted: Collection[str]) -> bool:
        assert member.group_key is not None
        minimum = self._minimum(member.group_key)
        return minimum is None or len(counted) + self._finished[member.group_key] >= minimum

    def _minimum(self, key: GroupKey) -> int | None:
        group = self.setting.mirror.groups.get(key)
        if key.by_object:
            found = self.setting.mirror.objects(PodGroup).get(key.name)
            return None if found is None else found.minimum
        stated = [] if group is None else [pod.group.minimum for pod in group.members.values() if pod.group is not None]
        return max(stated, default=None)

    def _counted(self, member: Pod) -> set[str]:
        """Return the members of a pod's group that count on a node, and do not terminate."""
        mirror, key = self.setting.mirror, member.group_key
        group = None if key is None else mirror.groups.get(key)
        members = {} if group is None else group.members
        return {uid for uid, pod in members.items() if mirror.is_mirrored(uid) and not pod.terminating}

    def _fits_still(self, uid: str) -> bool:
        mirror = self.setting.mirror
        stored = mirror.assumed[uid].pod
        group = mirror.groups.of(uid)
        assert group is not None
        with mirror.fork() as fork:
            fork.remove(stored)
            return bool(self._fitting(group.members[uid], mirror.batch([stored.node_name])))

    def _fitting(self, pod: Pod, batch: NodeBatch) -> list[str]:
        verdicts = filter_nodes(PROFILE, FreshEvaluation(self.setting.mirror, pod), batch)
        return [batch.names[position] for position in (verdicts.codes == 0).nonzero()[0].tolist()]

    # The end.

    def be_silent(self) -> None:
        """Let time go by without a request. No place is held then."""
        self.setting.work(60.0)
        assert not [uid for uid in self.setting.mirror.assumed if self.setting.gangs.has_reserved(uid)]

    def thrive(self) -> None:
        """Let there be room. All gangs that can be whole are placed then, and all members of those that have begun."""
        for pod in [pod for pod in self._live.values() if pod.deletion]:
            self.setting.delete(self._live.pop(self._name(pod)))
        self.setting.tick = 0.0
        for number in range(10):
            self.setting.see_node(f"large-{number}", cpu=99)
        for _ in range(60):
            if not any(self._can_run(pod) for pod in self._eligible()):
                return
            for pod in self._eligible():
                self.request(pod)
            for uid in self._decided():
                self._bind(uid)
            self.setting.work(2.0)
        raise AssertionError(f"not placed: {[self._name(pod) for pod in self._eligible() if self._can_run(pod)]}")

    def _can_run(self, pod: PodBuilder) -> bool:
        of_group = [each for each in self._live.values() if self._key(each) == self._key(pod)]
        running, minimum = any(each.node for each in of_group), self._minimum(self._key(pod))
        able = [each for each in self._eligible() if self._key(each) == self._key(pod)]
        return minimum is not None and (running or len(able) >= minimum)

    def end(self) -> None:
        """Let all members be deleted. Nothing is left of them."""
        self.setting.delete(*self._live.values())
        self.setting.gangs.begin(self.setting.now)
        self.setting.now += 100.0
        self.setting.mirror.expire(self.setting.now)
        assert not self.setting.mirror.assumed
        assert not [*self.setting.mirror.groups]

    # Pods.

    def _eligible(self) -> Sequence[PodBuilder]:
        """Return the members that kube-scheduler asks about."""
        excluded = self.setting.excluded
        return [
            pod
            for pod in self._live.values()
            if not (pod.node or pod.spec.get("schedulingGates") or pod.name in excluded)
        ]

    def _decided(self) -> Sequence[str]:
        return [uid for uid, each in self.setting.mirror.assumed.items() if each.deadline is not None]

    def _show(self, pod: PodBuilder) -> None:
        self._live[self._name(pod)] = pod
        self.setting.see(pod)

    def _change(self, change: Callable[[PodBuilder], PodBuilder]) -> None:
        if self._live:
            self._show(change(self._live[self._one_of(*sorted(self._live))]))

    def _name(self, pod: PodBuilder) -> str:
        return f"{pod.namespace}/{pod.name}"

    def _group(self, pod: PodBuilder) -> tuple[str, str]:
        return pod.namespace, pod.labels.get("kindred.dev/group") or OBJECT[1]

    def _key(self, pod: PodBuilder) -> GroupKey:
        key = pod_of(pod).group_key
        assert key is not None
        return key

    def _one_of(self, *values: T) -> T:
        return self._data.draw(st.sampled_from(values))


@given(st.data())
def test_gangs_start_whole_hold_nothing_for_ever_and_run_where_there_is_room(data: st.DataObject) -> None:
    life = Life(data)
    for _ in range(data.draw(st.integers(1, 40))):
        life.step()
        life.check_places()
    if data.draw(st.booleans()):
        life.be_silent()
    life.thrive()
    life.be_silent()
    life.end()
