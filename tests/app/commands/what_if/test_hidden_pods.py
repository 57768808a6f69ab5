"""A caller who may see some namespaces reads no wrong number, and nothing wrong of the pods that are seen."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.commands.output import Line
from app.commands.what_if.capacity import capacity_text
from app.commands.what_if.drain import drain_text
from app.commands.what_if.loss import loss_text
from app.simulation.hidden_names import seen_part
from app.simulation.questions import CapacityQuestion, DrainQuestion, LossQuestion
from tests.app.commands.what_if.asking import budget, deployment, node, replica
from tests.app.simulation.test_hidden_names import OURS, full, theirs, whole_response
from tests.builders import make_pod

NODES = [node("n1"), node("n2", "b")]


def seen_text(
    tmp_path: Path,
    question: Any,  # noqa: ANN401  # any of them
    text: Callable[..., Iterator[Line]],
    *objects: Any,  # noqa: ANN401  # builders
) -> list[str]:
    """Return the lines for a caller who may see namespace shop, with the spaces between words as one."""
    response, _ = whole_response(tmp_path, question, *objects)
    lines = text(seen_part(response, OURS), wide=False)
    return [" ".join((each if isinstance(each, str) else each.text).split()) for each in lines]


def test_pending_pods_that_find_no_place_count_where_they_are_not_named(tmp_path: Path) -> None:
    lines = seen_text(tmp_path, CapacityQuestion(of=["shop/deploy/web"], orders=1), capacity_text, *full())
    assert "Before them, 0 of 2 pending pods find a place." in lines


def test_a_loss_counts_pods_that_are_not_named_and_puts_no_other_in_their_place(tmp_path: Path) -> None:
    web, secret = replica("web-1a-x", "n1"), theirs("secret-1a-x", "n1", cpu="3")
    objects = [*NODES, web, secret, theirs("secret-1a-y", "n2", cpu="2"), deployment()]
    lines = seen_text(tmp_path, LossQuestion(orders=1), loss_text, *objects)
    assert "a 1 2 1 1 of 1 of Deployment shop/web" in lines
    assert "b 1 1 1 -" in lines
    assert not [each for each in lines if "web-1a-x" in each]  # the one that has a place


def test_a_drain_with_pods_that_are_not_named_is_not_said_to_end(tmp_path: Path) -> None:
    """One of them is never evicted, and kubectl refuses another one."""
    daemon = (
        make_pod("secret-ds").in_namespace("bank").owned_by("DaemonSet", "secret-ds", "d").phase("Running").on("n1")
    )
    limit = {**budget("secret", 0, of="secret"), "metadata": {"name": "secret", "namespace": "bank"}}
    objects = [*NODES, replica("web-1a-x", "n1"), theirs("secret-1a-x", "n1"), daemon, limit, deployment()]
    lines = seen_text(tmp_path, DrainQuestion(nodes=["n1"], orders=1), drain_text, *objects)
    begin = "The drain of n1, of whose pods you see some; 1 of 1 pod finds a place, but kubectl refuses it without more"
    assert " ".join(lines).startswith(begin)
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)" in lines
