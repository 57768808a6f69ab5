"""How far a question is; one that is interrupted undoes what it supposed, and ends as any command does."""

import asyncio
import io
import re
import sys
from collections.abc import Iterable, Iterator

import pytest
from fastapi import FastAPI, Response

from app.commands.admin_client import Access
from app.commands.what_if.response import response_of_service, result_of
from app.settings.settings import Settings
from app.simulation.comes_again import ClusterFacts
from app.simulation.questions import LossQuestion, QuestionCluster, RemovalQuestion, Running
from app.simulation.raw_objects import RawObjects
from app.wiring.engine import for_simulations, simulated_schedulers
from core.simulation.placing import Steps
from tests.app.commands.invoked import kindred
from tests.app.commands.running import running
from tests.app.commands.what_if.asking import node, replica
from tests.app.questions import mirror_of
from tests.builders import NodeBuilder, PodBuilder


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
    running = LossQuestion().ask(cluster_of(*nodes, *pods))
    assert number_of(running.steps) <= running.length


def test_each_node_of_a_removal_is_a_step_however_many_pods_it_has() -> None:
    nodes = [node(f"n{at}") for at in range(4)]
    pods = [replica(f"web-1a-{at}", f"n{at % 4}") for at in range(12)]
    running = RemovalQuestion(tries=0).ask(cluster_of(*nodes, *pods))
    assert (number_of(running.steps), running.length) == (4, 4)
    assert RemovalQuestion().ask(cluster_of(*nodes, *pods)).length == 8, "and each try of the search"


def cluster_of(*objects: NodeBuilder | PodBuilder) -> QuestionCluster:
    mirror, raw = mirror_of(*objects), RawObjects()
    schedulers = simulated_schedulers(for_simulations(Settings()), mirror)
    return QuestionCluster(mirror, ClusterFacts(mirror, raw), raw, schedulers, "", [])


def number_of(running: Iterable[None]) -> int:
    return sum(1 for _ in running)


def test_an_interrupt_ends_the_steps() -> None:
    undone: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        result_of(Running(steps(undone, interrupted=True), 9), "Placing")
    assert undone == ["undone"]


def test_an_interrupted_command_says_so_and_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    monkeypatch.setattr("app.simulation.questions.lose_each", interrupted)
    result = kindred("loss", "--demo")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (130, "Aborted!")


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def halfway(looks: list[str], *, until: int) -> FastAPI:
    """Return a service whose answer comes after some looks at how far it is, of which the first one fails."""
    app = FastAPI()

    @app.post("/what-if/loss")
    async def respond(key: str) -> str:
        looks.append(f"asked with {key}")
        while len(looks) <= until:  # noqa: ASYNC110  # of the test
            await asyncio.sleep(0.01)
        return "the answer"

    @app.get("/what-if/progress")
    async def progress(key: str) -> Response:
        looks.append(key)
        return Response('{"done":0.25}' if len(looks) > 2 else "later", media_type="application/json")

    return app


def test_a_terminal_shows_how_far_a_service_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with running(halfway(looks, until=4)) as service:
        assert response_of_service(Access(url=service.url), "loss", b"{}", "Losing").text == '"the answer"'
    key = looks[-1].removeprefix("asked with ")
    assert {*looks} == {key, f"asked with {key}"}, "with the key of this question"
    shares = re.findall(r"Losing.*?(\d+)%", terminal.getvalue())
    assert (shares[0], shares[-1]) == ("0", "25")
    assert terminal.getvalue().endswith("\n")


def test_a_service_is_not_asked_how_far_it_is_where_nobody_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(sys, "stderr", output := io.StringIO())
    with running(halfway(looks, until=0)) as service:
        response_of_service(Access(url=service.url), "loss", b"{}", "Losing")
    assert (len(looks), output.getvalue()) == (1, "")


def test_an_error_of_a_service_comes_after_the_line_of_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with running(FastAPI()) as service:
        assert response_of_service(Access(url=service.url), "loss", b"{}", "Losing").status_code == 404
    assert terminal.getvalue().endswith("\n")
