"""A question that is interrupted undoes what it supposed, and ends as any command does."""

from collections.abc import Iterator

import pytest

from app.commands.what_if.response import result_of
from app.settings.settings import Settings
from app.simulation.comes_again import ClusterFacts
from app.simulation.questions import LossQuestion, QuestionCluster, Running
from app.simulation.raw_objects import RawObjects
from app.wiring.engine import for_simulations, simulated_schedulers
from core.simulation.placing import Steps
from tests.app.commands.what_if.asking import ask, node, replica
from tests.app.questions import mirror_of


def steps(undone: list[str], *, interrupted: bool) -> Steps[int]:
    try:
        yield
        if interrupted:
            raise KeyboardInterrupt
        yield
    finally:
        undone.append("undone")
    return 7


def test_the_result_is_returned_after_all_steps() -> None:
    undone: list[str] = []
    assert result_of(Running(steps(undone, interrupted=False), 1), "Placing") == 7
    assert undone == ["undone"]


@pytest.mark.parametrize("both", [True, False])
def test_the_bar_of_a_loss_is_not_full_before_the_end(*, both: bool) -> None:
    """Where rules tell the two states of the nodes apart, each domain is lost twice."""
    nodes = [node(f"n{at}", f"z{at % 2}") for at in range(4)]
    nodes = [each.image(1, "a:1") if both else each for each in nodes]
    pods = [replica(f"web-1a-{at}", f"n{at % 4}") for at in range(8)]
    question, mirror = LossQuestion(), mirror_of(*nodes, *pods)
    raw = RawObjects()
    schedulers = simulated_schedulers(for_simulations(Settings()), mirror)
    cluster = QuestionCluster(mirror, ClusterFacts(mirror, raw), raw, schedulers, "", [])
    running, taken = question.ask(cluster), 0
    for _ in running.steps:
        taken += 1
    assert taken <= running.length


def test_an_interrupt_ends_the_steps() -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        result_of(Running(steps(undone, interrupted=True), 9), "Placing")
    assert undone == ["undone"]


def test_an_interrupted_command_says_so_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr("app.simulation.questions.lose_each", interrupted)
    result = ask("loss", "--demo")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, "Aborted!")
