"""The law of scheduling groups: whatever comes late, fails or restarts, no node gets more pods than it has room for.

A model of kube-scheduler (k8s.io/kubernetes pkg/scheduler/schedule_one_podgroup.go) schedules gangs beside single pods.
Its filters judge the members of a gang, and Kindred alone judges the single pods.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.objects.decode_pod import decode_pod
from app.verbs.effects import LONGEST_WAIT
from app.verbs.request import Request
from core.events import Action, ClusterEvent
from core.objects.groups import SchedulingGroup
from core.objects.pod import Pod
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.app.questions import mirror_of
from tests.app.verbs.deciding.deciding_setting import DecidingSetting, written
from tests.builders import make_node, make_pod
from tests.core.mirror.audit import audit

NODES: Final = ("n0", "n1", "n2")
ROOM: Final = 2
SINGLES: Final = 7
GANGS: Final = {"g": (3, 3), "h": (4, 2), "i": (5, 5)}
"""Group -> members, minimum. There is no room for all."""


class Cluster:
    """An API server, a kube-scheduler with its cache, and Kindred, which sees events late."""

    def __init__(self, ruined: Callable[[DecidingSetting], None] = lambda _: None, singles: int = SINGLES) -> None:
        self.ruined = ruined
        self.now = 0.0
        self.pods = {name: _manifest(name, group) for name, group in _names(singles)}
        self.cache: dict[str, str] = {}  # kube-scheduler's: name -> node, assumed or bound
        self.binding: dict[str, str] = {}
        self.late: deque[tuple[Action, dict[str, Any]]] = deque()  # for Kindred's watch
        self.gone: deque[str] = deque()  # deletions that kube-scheduler has not seen
        self.turn = 0
        self.start_kindred()

    def start_kindred(self) -> None:
        """Start a Kindred that lists the pods, after the bindings that do not wait have ended."""
        self.end_plain_bindings()
        self.late.clear()
        mirror = mirror_of(*(make_node(name).allocatable(cpu=ROOM, pods=10) for name in NODES))
        mirror.change_rules(rules_of(Release(1, 37), {"GenericWorkload": True}))
        for name, (_, minimum) in GANGS.items():
            group = SchedulingGroup(namespace="default", name=name, minimum=minimum)
            mirror.apply(ClusterEvent("Add", group))
        self.kindred = DecidingSetting(mirror, groups_scheduler="groups", cached=False)
        self.ruined(self.kindred)
        self.kindred.now = self.now
        for pod in self.pods.values():
            mirror.apply(ClusterEvent("Add", _decoded(pod)))
        self.kindred.effects.take_over(self.now)

    def end_plain_bindings(self) -> None:
        """End the bindings that wait for nothing."""
        for name in [name for name in self.binding if not _waits(name)]:
            self.bind(name)

    def changed(self, name: str, action: Action = "Update") -> None:
        """Send the present state of a pod, which Kindred sees later."""
        self.late.append((action, json.loads(json.dumps(self.pods[name]))))

    def deliver(self) -> None:
        """Show Kindred the next event."""
        if self.late:
            action, pod = self.late.popleft()
            self.kindred.mirror.apply(ClusterEvent(action, _decoded(pod)))

    def show_all(self) -> None:
        """Show Kindred and kube-scheduler all events."""
        while self.late:
            self.deliver()
        while self.gone:
            del self.cache[self.gone.popleft()]

    def ask(self, name: str, nodes: Sequence[str]) -> str:
        """Call `filter`. Return the node of the response, or an empty text."""
        self.kindred.now = self.now
        pod = self.pods[name]
        self.kindred.pods.live = {f"default/{each}": _decoded(pod) for each, pod in self.pods.items()}
        body = json.dumps({"Pod": pod, "NodeNames": list(nodes)}).encode()
        response = self.kindred.extender.filter(Request(body), self.kindred.effects)
        if response.unknown_pod is not None:
            assert asyncio.run(self.kindred.effects.lookup.ask(response.unknown_pod)) == ""
            response = self.kindred.extender.filter(Request(body), self.kindred.effects)
        result = json.loads(response.body)
        assert not result["Error"], result
        return next(iter(result["NodeNames"] or ()), "")

    # kube-scheduler.

    def schedule(self, dies_after: int = 99) -> None:
        """Schedule the next single pod or gang. Kindred ends after some requests of the cycle, and starts again."""
        waiting = [name for name in self.pods if name not in self.cache]
        units = [*dict.fromkeys(_group(name) or name for name in waiting)]
        if not units:
            return
        self.turn += 1
        unit = units[self.turn % len(units)]
        if unit in GANGS:
            self._schedule_gang(unit, [name for name in waiting if _group(name) == unit], dies_after)
        elif node := self.ask(unit, NODES):
            self.assume({unit: node})

    def _schedule_gang(self, group: str, members: Sequence[str], dies_after: int) -> None:
        minimum, placed = GANGS[group][1], {name: node for name, node in self.cache.items() if _group(name) == group}
        assumed: dict[str, str] = {}
        for left, name in zip(range(len(members), 0, -1), members, strict=True):
            if len(placed) + len(assumed) + left < minimum:
                return
            used = Counter([*self.cache.values(), *assumed.values()])
            fitting = [node for node in NODES if used[node] < ROOM]
            if fitting:
                if len(assumed) == dies_after:
                    self.start_kindred()
                    return  # the call failed, and so does the cycle
                assumed[name] = self.ask(name, fitting)
        if len(placed) + len(assumed) >= minimum:
            self.assume(assumed)

    def assume(self, placed: dict[str, str]) -> None:
        """Take places, and begin to bind. A binding that waits shows its node as nominated."""
        self.cache |= placed
        self.binding |= placed
        for name, node in placed.items():
            if _waits(name):
                self.pods[name]["status"] = {"nominatedNodeName": node}
                self.changed(name)

    def bind(self, name: str) -> None:
        """End a binding. The API server has the node then."""
        self.pods[name]["spec"]["nodeName"] = self.binding.pop(name)
        self.changed(name)
        bound = Counter(pod["spec"]["nodeName"] for pod in self.pods.values() if pod["spec"].get("nodeName"))
        assert max(bound.values()) <= ROOM, bound

    def fail(self, name: str) -> None:
        """Let a binding fail. kube-scheduler ends the nomination, and tries the pod again."""
        del self.binding[name], self.cache[name]
        if self.pods[name].pop("status", None):
            self.changed(name)

    def delete(self, name: str) -> None:
        """Delete a pod that runs."""
        self.changed(name, "Delete")
        del self.pods[name]
        self.gone.append(name)

    def step(self, action: int) -> None:
        """Do one of the things that can happen."""
        binding, running = [*self.binding], [name for name, pod in self.pods.items() if pod["spec"].get("nodeName")]
        match action % 10:
            case 0 | 1:
                self.schedule()
            case 2 if binding:
                self.bind(binding[action % len(binding)])
            case 3 if action < 20:
                self.start_kindred()
            case 3 if binding and action > 40:
                self.fail(binding[action % len(binding)])
            case 4 | 5:
                self.deliver()
            case 6 if running:
                self.delete(running[action % len(running)])
            case 7 if self.gone:
                del self.cache[self.gone.popleft()]
            case 8:  # a binding, and an event, takes less than five seconds
                self.end_plain_bindings()
                self.show_all()
                self.pass_time(5.0)
            case 9:
                self.schedule(dies_after=action // 10)
            case _:
                pass

    def settle(self) -> None:
        """End all bindings, show all events, and let time pass."""
        self.end_bindings()
        self.pass_time(LONGEST_WAIT + 1.0)

    def end_bindings(self) -> None:
        """End all bindings, and show all events."""
        for name in [*self.binding]:
            self.bind(name)
        self.show_all()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with the work that Kindred does by it."""
        self.now += seconds
        self.kindred.now = self.now
        self.kindred.effects.review_cycles()
        asyncio.run(self.kindred.effects.release_unproved(self.relist))
        self.kindred.mirror.expire(self.now)

    async def relist(self) -> None:
        """Show Kindred all pods."""
        while self.late:
            self.deliver()


def _names(singles: int) -> Sequence[tuple[str, str]]:
    members = [(f"{group}-{n}", group) for group, (size, _) in GANGS.items() for n in range(size)]
    return [*members, *((f"s-{number}", "") for number in range(singles))]


def _group(name: str) -> str:
    group = name.partition("-")[0]
    return group if group in GANGS else ""


def _waits(name: str) -> bool:
    """Return whether a pod has a binding that waits for a volume."""
    return name in {"g-1", "i-0"}


def _manifest(name: str, group: str) -> dict[str, Any]:
    # Nominated members count for the pods of no greater priority alone.
    pod = written(make_pod(name).requests(cpu="1").priority(0 if group else int(name[-1]) % 2))
    if group:
        pod["spec"] |= {"schedulerName": "groups", "schedulingGroup": {"podGroupName": group}}
    return pod


def _decoded(pod: dict[str, Any]) -> Pod:
    return decode_pod(json.dumps(pod).encode())


ACTIONS: Final = st.lists(st.integers(0, 99), min_size=5, max_size=120)


@given(ACTIONS)
def test_no_node_has_more_pods_than_room(actions: list[int]) -> None:
    cluster = Cluster()
    for action in actions:
        cluster.step(action)
    cluster.settle()
    assert cluster.kindred.assumed() == {}
    assert audit(cluster.kindred.mirror) == []


@given(ACTIONS, st.integers(0, 2))
def test_a_place_to_which_nothing_is_bound_ends_soon_after_a_start(actions: list[int], singles: int) -> None:
    """Single pods would take the places else, so there are few."""
    cluster = Cluster(singles=singles)
    for action in actions:
        if action % 10 != 6 and not (action % 10 == 3 and action > 40):  # no pod is deleted, and no binding fails
            cluster.step(action)
    cluster.end_bindings()
    cluster.pass_time(31.0)  # the last cycle ends
    cluster.pass_time(31.0)
    assert cluster.kindred.assumed() == {}
    assert audit(cluster.kindred.mirror) == []


def forgets_members(kindred: DecidingSetting) -> None:
    """As if a member that is answered did not count."""
    assume = kindred.effects.assume

    def not_assumed(pod: Pod, node: str) -> None:
        if not pod.in_scheduling_group:
            assume(pod, node)

    kindred.effects.assume = not_assumed  # type: ignore[method-assign]  # a planted fault


def drops_siblings(kindred: DecidingSetting) -> None:
    """As if a request for a member showed that the cycle before it has failed."""
    requested = kindred.effects.requested

    def requested_and_dropped(pod: Pod) -> None:
        requested(pod)
        for uid, each in [*kindred.mirror.assumed.items()]:
            if each.pod.scheduling_group and each.pod.scheduling_group == pod.scheduling_group:
                kindred.mirror.forget(uid)

    kindred.effects.requested = requested_and_dropped  # type: ignore[method-assign]  # a planted fault


def forgets_nominated(kindred: DecidingSetting) -> None:
    """As if a nominated pod did not count after a start."""
    kindred.effects.take_over = lambda since: None  # type: ignore[method-assign]  # noqa: ARG005  # a planted fault


def releases_always(kindred: DecidingSetting) -> None:
    """As if no cycle had bound anything."""
    kindred.mirror.scheduling_groups.smallest_minimum = lambda key: len(key) + 99  # type: ignore[method-assign]  # a planted fault


@pytest.mark.parametrize("fault", [forgets_members, drops_siblings, forgets_nominated, releases_always])
def test_a_planted_fault_breaks_the_law(fault: Callable[[DecidingSetting], None]) -> None:
    with pytest.raises(AssertionError, match="Counter"):
        run_many(fault)


def run_many(fault: Callable[[DecidingSetting], None]) -> None:
    source = Random(5)  # noqa: S311  # the same actions each time
    for _ in range(300):
        cluster = Cluster(fault)
        for _ in range(100):
            cluster.step(source.randrange(100))
        cluster.settle()
