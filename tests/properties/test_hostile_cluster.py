"""The laws of the verbs where it is dangerous (laws.py), in random lives of a hostile cluster (hostile_life.py)."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.depth import tries
from tests.properties.hostile_life import MODES, Step, live, steps_of


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the garbage collector be, and log errors alone."""
    monkeypatch.setattr("app.feeds.objects.BulkLoads.loading", _loading)
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.ERROR)
    yield
    logging.getLogger().setLevel(level)


def _loading(_: object) -> AbstractContextManager[None]:
    return nullcontext()


@pytest.mark.parametrize("mode", MODES)
def test_no_law_is_broken_in_a_hostile_cluster(mode: str) -> None:
    counts = Counter[str]()
    for seed in range(tries(default=4, full=40)):
        steps = steps_of(seed)
        life = live(mode, seed, steps)
        counts += Counter(life.counts)
        assert not life.problem, f"{mode}, seed {seed}: {shortened(mode, seed, steps)}"
    assert counts["beside others"] >= 20, "too little was placed to tell anything"


def shortened(mode: str, seed: int, steps: list[Step]) -> str:
    """Leave out steps while a law is still broken; return what is left, and the law."""
    size = len(steps) // 2
    while size:
        for begin in range(0, len(steps), size):
            fewer = steps[:begin] + steps[begin + size :]
            if live(mode, seed, fewer).problem:
                steps = fewer
                break
        else:
            size //= 2
    return "\n".join([*map(repr, steps), live(mode, seed, steps).problem])
