"""Requests of simulated schedulers, in both forms."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import cluster
from tests.load.questions import (
    Form,
    Nodes,
    RequestFileError,
    cluster_questions,
    file_questions,
    incoming_pods,
    questions,
)

NODES = 200
PODS = 20_000
DEMO_REQUEST = Path(__file__).parents[2] / "app" / "demo" / "requests" / "web.json"
POD = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": []}}


def names_of(body: bytes) -> list[str]:
    args: dict[str, Any] = json.loads(body)
    return args["NodeNames"] or [node["metadata"]["name"] for node in args["Nodes"]["items"]]


def test_a_question_about_names_is_written_as_go_writes_it() -> None:
    question = next(cluster_questions("NodeNames", 2, PODS))
    assert b'{"Pod":' + question.pod + b',"Nodes":null,"NodeNames":["node-00000","node-00001"]}' == question.body


def test_a_question_about_objects_is_written_as_go_writes_it() -> None:
    question = next(cluster_questions("Nodes", 1, PODS))
    item = question.nodes.pieces["node-00000"]
    assert (
        b'{"Pod":' + question.pod + b',"Nodes":{"metadata":{},"items":[' + item + b']},"NodeNames":null}'
    ) == question.body


@pytest.mark.parametrize("form", ["NodeNames", "Nodes"])
def test_every_question_is_about_all_nodes(form: Form) -> None:
    expected = sorted(cluster.node_name(index) for index in range(NODES))
    for question in itertools.islice(cluster_questions(form, NODES, PODS), 5):
        assert expected == sorted(names_of(question.body))


def test_each_cycle_begins_with_another_node_and_goes_on_in_the_same_order() -> None:
    names = [cluster.node_name(index) for index in range(NODES)]
    asked = [names_of(each.body) for each in itertools.islice(cluster_questions("NodeNames", NODES, PODS), 4)]
    assert len({each[0] for each in asked}) == 4
    for each in asked:
        start = names.index(each[0])
        assert names[start:] + names[:start] == each


def test_the_second_question_is_about_exactly_the_nodes_that_passed() -> None:
    question = next(cluster_questions("Nodes", 5, PODS))
    names = ["node-00003", "node-00001"]
    expected = b",".join(question.nodes.pieces[name] for name in names)
    assert names == names_of(question.about(names))
    assert b'{"Pod":' + question.pod + b',"Nodes":{"metadata":{},"items":[' + expected in question.about(names)


def test_a_node_that_was_not_asked_about_cannot_be_asked_about_next() -> None:
    with pytest.raises(KeyError, match="node-00009"):
        next(cluster_questions("NodeNames", 5, PODS)).about(["node-00009"])


def test_pods_are_of_all_kinds_in_turns_and_have_names_and_uids_of_their_own() -> None:
    pods = [json.loads(pod)["metadata"] for pod in incoming_pods(cluster.app_count(PODS))]
    assert len(pods) == len({pod["name"] for pod in pods}) == len({pod["uid"] for pod in pods})
    assert len(cluster.KINDS) == len({pod["ownerReferences"][0]["uid"] for pod in pods[: len(cluster.KINDS)]})


def test_a_deployment_is_asked_about_again_with_other_replicas() -> None:
    owners = [
        json.loads(pod)["metadata"]["ownerReferences"][0]["uid"] for pod in incoming_pods(cluster.app_count(PODS))
    ]
    assert owners.count(owners[0]) > 1


def test_pods_and_nodes_take_turns_without_end() -> None:
    nodes = Nodes("NodeNames", {"a": b'"a"', "b": b'"b"'})
    bodies = [each.body for each in itertools.islice(questions(nodes, [b"{}"]), 3)]
    assert [names_of(body) for body in bodies] == [["a", "b"], ["b", "a"], ["a", "b"]]


def test_a_file_of_names_is_asked_as_it_is() -> None:
    form, asked = file_questions(DEMO_REQUEST)
    expected = json.loads(DEMO_REQUEST.read_bytes())
    found = json.loads(next(asked).body)
    assert form == "NodeNames"
    assert (expected["Pod"], expected["NodeNames"]) == (found["Pod"], found["NodeNames"])


def test_a_file_of_objects_is_asked_as_it_is_whatever_the_case_of_its_keys(tmp_path: Path) -> None:
    nodes = [{"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}} for name in ("b", "a")]
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"pod": POD, "nodes": {"items": nodes}, "nodeNames": None}, indent=1))
    form, asked = file_questions(file)
    assert form == "Nodes"
    assert {"Pod": POD, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None} == json.loads(next(asked).body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "truncated", id="no-json"),
        pytest.param('{"NodeNames":["a"]}', "pod", id="no-pod"),
        pytest.param('{"Pod":{},"NodeNames":null}', "neither", id="no-nodes"),
        pytest.param('{"Pod":{},"NodeNames":[]}', "neither", id="no-names"),
        pytest.param('{"Pod":{},"Nodes":{"items":[{}]}}', "metadata", id="a-node-without-a-name"),
    ],
)
def test_a_file_that_asks_nothing_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "request.json"
    file.write_text(text)
    with pytest.raises(RequestFileError, match=rf"request\.json: .*{message}"):
        file_questions(file)
