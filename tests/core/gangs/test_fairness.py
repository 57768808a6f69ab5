"""Gangs of one namespace that cannot be placed keep those of another one waiting for a bounded time only."""

from collections.abc import Callable, Sequence

import pytest

from core.gangs.attempts import Shortfall
from core.gangs.placing import Placer
from tests.builders import PodBuilder, make_pod
from tests.core.gangs.gang_setting import GangSetting, member, node

CHANGED = make_pod("changed").on("n00")


def gang(name: str, namespace: str, *cpus: int, created: str = "2026-01-01") -> list[PodBuilder]:
    made = (member(f"{name}-{at}", len(cpus), name, cpu).in_namespace(namespace) for at, cpu in enumerate(cpus))
    return [each.created(f"{created}T00:00:00Z") for each in made]


class Crowd:
    """A full cluster with a gang of one namespace, and many of another one, of which requests come all the time."""

    def __init__(self, *fair: int, step: float = 0.0) -> None:
        names = [f"n{at:02}" for at in range(20)]
        self.fills = [make_pod(f"on-{name}").requests(cpu=1).on(name) for name in names]
        self.setting = GangSetting(*(node(name, cpu=1) for name in names), *self.fills, step=step)
        self._many = [gang(f"g{at}", "many", 9, 9) for at in range(30)]
        self._fair = gang("fair", "fair", *fair, created="2026-05-05")
        self.setting.see(*(pod for each in self._many for pod in each), *self._fair)

    def go_on(self, seconds: int, change: Callable[[Sequence[PodBuilder]], None], every: int = 5) -> bool:
        """Let `change` happen before each request. Return whether the one gang has places before the time is over.

        `every`: seconds between two requests for that gang.
        """
        for tick in range(seconds * 5):
            self.setting.now += 0.2
            for each in self._many[::5]:
                change(each)
                self.setting.ask(each[0])
            self._many.append(self._many.pop(0))
            if tick % (5 * every) == 5 * every - 1:
                self.setting.ask(self._fair[0])
            self.setting.gangs.begin(self.setting.now)
            self.setting.gangs.work(self.setting.now)
            if self.setting.mirror.assumed:
                return True
        return False

    def one_on_its_node(self, _: Sequence[PodBuilder]) -> None:
        """Let a node change that helps nobody."""
        self.setting.see(CHANGED)
        self.setting.delete(CHANGED)

    def its_labels(self, requested: Sequence[PodBuilder]) -> None:
        """Let the members change, so that their gang is hopeful again."""
        self.setting.see(*(pod.label("at", f"{self.setting.now:.1f}") for pod in requested))


def test_looks_at_changed_nodes_are_shared_among_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(1, 1)
    original = Placer.may_fit_now

    def dear(placer: Placer, shortfall: Shortfall, generation: int) -> bool:
        crowd.setting.spent += 0.02
        return original(placer, shortfall, generation)

    monkeypatch.setattr(Placer, "may_fit_now", dear)
    assert not crowd.go_on(12, crowd.one_on_its_node)
    crowd.setting.delete(*crowd.fills[3:5])
    assert crowd.go_on(15, crowd.one_on_its_node, every=60)


def test_first_parts_of_attempts_are_shared_among_namespaces() -> None:
    crowd = Crowd(1, 1, step=0.07)
    assert not crowd.go_on(12, crowd.its_labels)
    crowd.setting.delete(*crowd.fills[3:5])
    assert crowd.go_on(15, crowd.its_labels)
    assert crowd.setting.spent < 0.1 * (crowd.setting.now + 10)


def test_attempts_without_hope_do_not_wait_for_what_other_namespaces_use() -> None:
    """The large member fits on no node that has changed, but on the node that the small one leaves."""
    crowd = Crowd(1, 2, step=0.02)
    crowd.setting.see_node("n03", cpu=3)
    assert not crowd.go_on(12, crowd.its_labels)
    crowd.setting.delete(crowd.fills[4])
    assert crowd.go_on(15, crowd.its_labels)


def overtaken(*namespaces: str, timeout: int = 3600) -> GangSetting:
    """Return a cluster with gangs that have started, so that they come before any priority, and cannot be placed.

    As many others were placed as may overtake them.
    """
    setting = GangSetting(node("n0"))
    for namespace in namespaces:
        first, *others = gang("large", namespace, 0, 2, 1)
        setting.see(*(pod.annotated("kindred.dev/group-timeout", str(timeout)) for pod in (first.on("n0"), *others)))
        assert "1 of 2 members fit" in setting.ask(others[0])
    assert not why_waiting(setting, 20)
    return setting


def why_waiting(setting: GangSetting, number: int = 1, namespace: str = "theirs") -> str:
    """Place small gangs of a high priority one after the other. Return why one waits."""
    for at in range(number):
        pods = [pod.priority(9) for pod in gang(f"s{at}", namespace, 1, 1, created="2026-05-05")]
        setting.see(*pods)
        responses = [setting.ask(pod) for pod in pods]
        setting.delete(*pods)
        if responses != ["on n0", "on n0"]:
            return responses[0]
    return ""


OF_ANOTHER = "waits behind a group of another namespace, which was overtaken too often"


def test_a_gang_makes_those_of_other_namespaces_wait_for_a_minute_and_those_of_its_own_for_its_timeout() -> None:
    setting = overtaken("many")
    for setting.now in (0.0, 59.0):
        assert OF_ANOTHER in why_waiting(setting)
    setting.now = 60.0
    assert not why_waiting(setting)
    assert "waits behind group many/large" in why_waiting(setting, namespace="many")
    setting.now = 3600.0
    assert not why_waiting(setting, namespace="many")


def test_a_gang_with_a_short_timeout_makes_others_wait_no_longer_than_that() -> None:
    setting = overtaken("many", timeout=7)
    setting.now = 6.0
    assert OF_ANOTHER in why_waiting(setting)
    setting.now = 7.0
    assert not why_waiting(setting)


def test_gangs_make_those_of_other_namespaces_wait_for_a_tenth_of_the_time_and_no_namespace_takes_all_of_it() -> None:
    setting = overtaken("many")
    for setting.now in range(60, 1200, 60):
        assert not why_waiting(setting, 20)
    first, *others = gang("large", "fair", 0, 2, 1)
    setting.see(first.on("n0"), *others)
    setting.ask(others[0])
    assert OF_ANOTHER in why_waiting(setting, 21)
    setting.now = 1200.0
    assert not why_waiting(setting, 100)
    setting.now = 1201.0 + 60.0
    assert OF_ANOTHER in why_waiting(setting, 21)


def test_gangs_of_a_namespace_that_come_first_take_no_turn_of_those_of_others() -> None:
    """Else nobody would ever wait for a gang of another namespace, and smaller ones would pass it for ever."""
    setting = GangSetting(node("n0"))
    for at in range(9):
        first, *_ = pods = [pod.priority(99) for pod in gang(f"many{at}", "many", 2, 1)]
        setting.see(*pods)
        assert "1 of 2 members fit" in setting.ask(first)
    assert not why_waiting(setting, 20)
    assert OF_ANOTHER in why_waiting(setting)  # which takes all that a namespace may keep others waiting
    setting.now = 61.0
    assert not why_waiting(setting)
    first, *_ = pods = [pod.priority(50) for pod in gang("fair", "fair", 2, 1)]
    setting.see(*pods)
    assert "1 of 2 members fit" in setting.ask(first)
    assert OF_ANOTHER in why_waiting(setting, 21)
