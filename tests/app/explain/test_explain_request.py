"""The forms of a question, and what is none."""

import json
from typing import Any

import pytest

from app.explain.explain_request import MAX_CHANGES, ExplainRequest, Placing, WhatIf, decode_explain_request
from app.objects.decode import DecodeError
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from tests.builders import make_node, make_pod

POD: dict[str, Any] = make_pod("web").in_namespace("shop").label("app", "web").obj()
NEAR_NOBODY = {"key": "app", "operator": "Near"}


def decoded(body: object, mirror: ClusterMirror | None = None) -> ExplainRequest:
    return decode_explain_request(json.dumps(body).encode(), mirror or ClusterMirror())


def pod_of(question: ExplainRequest) -> Pod:
    assert isinstance(question.pod, Pod)
    return question.pod


@pytest.mark.parametrize("name", ["Pod", "pod", "POD"])
def test_extender_args_ask_about_their_nodes(name: str) -> None:
    question = decoded({name: POD, "NodeNames": ["n2", "n1"]})
    assert pod_of(question).full_name == "shop/web"
    assert question.batch is not None
    assert list(question.batch.names) == ["n2", "n1"]


def test_whole_nodes_stand_where_the_mirror_has_none() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1", {})))
    nodes = {"items": [make_node("n1").obj(), make_node("n2").label("zone", "a").obj()]}
    question = decoded({"Pod": POD, "Nodes": nodes}, mirror)
    assert question.batch is not None
    assert list(question.batch.names) == ["n1", "n2"]
    assert {place: node and node.labels["zone"] for place, node in question.batch.unmirrored.items()} == {1: "a"}


@pytest.mark.parametrize("body", [POD, {"kind": "Pod", **POD}, {"pod": POD}, {"pod": {"kind": "Pod", **POD}}][1:])
def test_a_manifest_asks_about_all_nodes(body: object) -> None:
    question = decoded(body)
    assert pod_of(question).full_name == "shop/web"
    assert question == ExplainRequest(question.pod)


def template(**spec: object) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def test_of_what_has_a_template_it_is_the_first_pod() -> None:
    replication = {"kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "shop"}}
    pod = pod_of(decoded({**replication, "spec": {"template": template()}}))
    assert (pod.full_name, pod.labels) == ("shop/web-0", {"app": "web"})


def test_a_pod_is_asked_about_by_name_with_what_is_to_be_supposed() -> None:
    question = decoded({
        "pod": "shop/web",
        "node_names": ["n1"],
        "add_nodes": [make_node("n9").label("zone", "a").obj()],
        "remove": ["shop/old", "uid-7"],
        "assume": [{"pod": "shop/next", "node": "n1"}, {"pod": POD, "node": "n9"}],
    })  # fmt: skip
    (added,) = question.what_if.add_nodes
    (first, second) = question.what_if.assume
    assert isinstance(added, Node)
    assert added.labels["zone"] == "a"
    assert first == Placing("shop/next", "n1")
    assert isinstance(second.pod, Pod)
    assert question == ExplainRequest(
        "shop/web", ["n1"], WhatIf((added,), ("shop/old", "uid-7"), (first, Placing(second.pod, "n9")))
    )


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        pytest.param([], "", "expected object, got array", id="no-object"),
        pytest.param({}, "pod", "required: a pod's name, a uid, or a manifest", id="nothing"),
        pytest.param({"pod": None}, "pod", "required", id="null"),
        pytest.param({"pod": 7}, "pod", "expected object, got int", id="number"),
        pytest.param({"pod": {"metadata": {}}}, "pod.metadata.name", "required", id="no-name"),
        pytest.param({"pod": "a/b", "removed": []}, "", "unknown field removed", id="unknown-field"),
        pytest.param({"pod": "a/b", "node_names": []}, "node_names", "empty; omit it", id="no-nodes"),
        pytest.param({"pod": "a/b", "node_names": ["n", "m", "n"]}, "node_names[2]", "n is at position 0", id="twice"),
        pytest.param({"pod": "a/b", "remove": [1]}, "remove[0]", "expected str, got int", id="remove-number"),
        pytest.param({"pod": "a/b", "assume": [{"pod": "a/c"}]}, "assume[0].node", "required", id="no-place"),
        pytest.param({"pod": "a/b", "assume": [{"node": "n"}]}, "assume[0].pod", "required", id="nobody"),
        pytest.param({"pod": "a/b", "add_nodes": [{}]}, "add_nodes[0].metadata.name", "required", id="nameless-node"),
        pytest.param(
            {"pod": "a/b", "add_nodes": [{"kind": "ResourceSlice", "spec": {"driver": 7}}]},
            "add_nodes[0].spec.driver",
            "expected str | null, got int",
            id="slice",
        ),
        pytest.param(
            {"pod": "a/b", "remove": ["a"] * (MAX_CHANGES + 1)}, "remove", "at most 1000, got 1001", id="many"
        ),
        pytest.param({"kind": "Service", "metadata": {"name": "x"}}, "kind", "this Service has none", id="kind"),
        pytest.param(
            {"kind": "Deployment", "spec": {"template": template(affinity=3)}},
            "spec.template.spec.affinity",
            "expected object",
            id="template",
        ),
        pytest.param({"Pod": POD, "NodeNames": ["n", "n"]}, "NodeNames[1]", "n is at position 0", id="args"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(body: object, field: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoded(body)
    assert caught.value.field == field
    assert message in caught.value.message
