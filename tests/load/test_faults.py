"""Faults under load: the fake API server supports each of them, and they are injected one after another."""

from collections import Counter

from tests.bench.live import fake_api
from tests.load.faults import FAULTS, FaultInjector


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def injected(seed: int, seconds: int) -> Counter[str]:
    """Return the injected faults of some time, with a mean of one in two seconds, without a server."""
    clock = Clock()
    injector = FaultInjector(lambda *_: None, seed, mean_gap=2.0, clock=clock)
    for _ in range(seconds):
        clock.now += 1
        injector.step()
    return injector.injected


def test_the_fake_api_server_knows_each_fault() -> None:
    with fake_api(1, 0) as api:
        for fault in FAULTS.values():
            for change in fault.changes:
                if change.verb != "refuse":  # for seconds, this test, too
                    api.change(change.verb, change.given)
        assert api.stats()["faults_pending"] > 0
        api.change("clear", {})
        assert api.stats()["faults_pending"] == 0


def test_faults_come_about_as_often_as_is_wanted_and_all_of_them() -> None:
    found = injected(seed=1, seconds=600)
    assert 120 < found.total() < 240
    assert set(FAULTS) == set(found)


def test_the_same_faults_come_each_time() -> None:
    assert injected(seed=1, seconds=100) == injected(seed=1, seconds=100) != injected(seed=2, seconds=100)
