"""A question that is interrupted undoes what it supposed, and ends as any command does."""

from collections.abc import Iterator

import pytest

from app.commands.what_if.response import result_of
from app.simulation.questions import Running
from core.simulation.placing import Steps
from tests.app.commands.what_if.asking import ask


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
