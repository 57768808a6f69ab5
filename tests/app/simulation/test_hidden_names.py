"""A caller who may see some namespaces gets their pods and owners by name; the others are counted."""

from pathlib import Path
from typing import Any

import msgspec

from app.commands.dump import Source, load_dump
from app.settings.settings import Settings
from app.simulation.comes_again import ClusterFacts
from app.simulation.hidden_names import Seen, namespaces_in, seen_part
from app.simulation.objects_at_hand import take_items
from app.simulation.packed_moves import response_json
from app.simulation.questions import (
    CapacityQuestion,
    DrainQuestion,
    LossQuestion,
    QuestionCluster,
    RemovalQuestion,
    Response,
)
from app.simulation.raw_objects import RawObjects
from app.simulation.responses import DrainResponse
from app.wiring.engine import for_simulations, simulated_schedulers
from core.explaining.pod_names import HIDDEN
from core.simulation.placing import finished
from tests.app.commands.what_if.asking import budget, deployment, dump, node, replica
from tests.builders import PodBuilder

OURS = Seen(frozenset({"shop"}), "some are hidden")


def theirs(name: str, on: str, **requests: str) -> PodBuilder:
    return replica(name, on, of="secret").in_namespace("bank").uid(f"uid-{name}").requests(**requests)


def whole_response(tmp_path: Path, question: Any, *objects: Any) -> tuple[Response, list[str]]:  # noqa: ANN401  # builders
    """Return the whole answer, and the namespaces to be reviewed."""
    path = dump(tmp_path, *objects)
    loaded = load_dump(Settings(), Source(snapshot=path, demo=False, skip_invalid=False))
    raw = RawObjects()
    take_items(loaded.items, raw)
    schedulers = simulated_schedulers(for_simulations(Settings()), loaded.mirror)
    cluster = QuestionCluster(loaded.mirror, ClusterFacts(loaded.mirror, raw), raw, schedulers, "1.36", [])
    response: Response = finished(question.ask(cluster).steps)
    return response, namespaces_in(response)


def full() -> list[Any]:
    """Return two full nodes, each with a pod of either namespace; nothing has a place elsewhere."""
    pods = [replica("web-1a-x", "n1", "3"), replica("web-1a-y", "n2", "3")]
    hidden = [theirs("secret-1a-x", "n1", cpu="1"), theirs("secret-1a-y", "n2", cpu="1")]
    waiting = [replica("web-1a-z", "", "3"), theirs("secret-1a-z", "", cpu="3")]
    return [node("n1"), node("n2", "b"), *pods, *hidden, *waiting, deployment(cpu="3"), budget("web", 1)]


def parts(tmp_path: Path, question: Any) -> tuple[Any, Any, list[str]]:  # noqa: ANN401  # a question, and decoded JSON
    """Return the whole answer, the part that is seen, and the namespaces to be reviewed."""
    response, namespaces = whole_response(tmp_path, question, *full())
    length, pieces = response_json(seen_part(response, OURS))
    text = b"".join(pieces).decode()
    assert len(text) == length
    seen = msgspec.json.decode(text)
    assert "secret" not in text
    assert "bank" not in text
    assert seen["assumed"]["names_hidden"] == "some are hidden"
    assert seen_part(response, Seen(None)) == response
    return msgspec.to_builtins(response), seen, namespaces


def test_a_drain_has_the_pods_that_are_seen_and_the_number_of_the_others(tmp_path: Path) -> None:
    whole, seen, namespaces = parts(tmp_path, DrainQuestion(nodes=["n1"], orders=1))
    assert namespaces == ["bank", "shop"]
    assert [each["move"]["pod"] for each in seen["pods"]] == ["shop/web-1a-x"]
    assert len(whole["pods"]) == 2
    assert seen["assumed"]["left_out"] == 1
    assert [each["owner"] for each in seen["workloads"]] == ["Deployment shop/web"]
    assert [each["owner"] for each in whole["assumed"]["uncertainties"]] == ["Deployment bank/secret"]
    assert (whole["ok"], seen["ok"], seen["command"]) == (False, False, whole["command"])


def test_a_victim_of_another_namespace_is_not_named(tmp_path: Path) -> None:
    bound = [replica("web-1a-x", "n1", "3").priority(9), theirs("secret-1a-x", "n2", cpu="3").priority(1)]
    found, _ = whole_response(tmp_path, DrainQuestion(nodes=["n1"], orders=1), node("n1"), node("n2"), *bound)
    seen = seen_part(found, OURS)
    assert isinstance(found, DrainResponse)
    assert isinstance(seen, DrainResponse)
    for response, victims in ((found, ["bank/secret-1a-x"]), (seen, [HIDDEN])):
        (rejected,) = (each.move.rejected for each in response.pods)
        assert rejected is not None
        assert rejected.victims == victims


def test_a_loss_counts_all_pods_and_names_those_that_are_seen(tmp_path: Path) -> None:
    whole, seen, _ = parts(tmp_path, LossQuestion(orders=1))
    assert [each["without_place"] for each in seen["domains"]] == [each["without_place"] for each in whole["domains"]]
    moves = [move["pod"] for each in seen["domains"] for move in each["moves"]]
    assert sorted(moves) == ["shop/web-1a-x", "shop/web-1a-y"]
    assert seen["assumed"]["left_out"] == 2


def test_a_removal_has_each_node_and_not_the_hidden_pod_in_the_way(tmp_path: Path) -> None:
    whole, seen, _ = parts(tmp_path, RemovalQuestion())
    hidden = [each for each, part in zip(whole["nodes"], seen["nodes"], strict=True) if each != part]
    assert [each["pod"].partition("/")[0] for each in hidden] == ["bank"] * len(hidden)
    assert [each["node"] for each in seen["nodes"]] == ["n1", "n2"]
    assert seen["assumed"]["left_out"] == len(hidden)


def test_a_capacity_names_the_pending_pods_that_are_seen(tmp_path: Path) -> None:
    whole, seen, _ = parts(tmp_path, CapacityQuestion(of=["shop/deploy/web"], orders=1))
    assert [name for name, _ in seen["capacity"]["pending_unplaced"]] == ["shop/web-1a-z"]
    assert len(whole["capacity"]["pending_unplaced"]) == 2
    assert seen["assumed"]["left_out"] == 1
