"""Requests in the form of kube-scheduler."""

import json
import statistics

from app.objects.decode_node import decode_node
from tests.bench import cluster
from tests.bench.questions import Form, Questions
from tests.bench.whole_nodes import whole_node

NODES = 100
NAMES = [cluster.node_name(index) for index in range(NODES)]


def test_names_begin_elsewhere_in_each_question_and_are_complete() -> None:
    asked = list(Questions(NODES, 3_000).of(Form("all", NODES), NODES))
    assert len({each.names[0] for each in asked}) == NODES
    assert all(sorted(each.names) == NAMES for each in asked)


def test_kinds_of_pods_take_turns_and_all_pods_have_controllers() -> None:
    asked = list(Questions(NODES, 3_000).of(Form("few", 10), 4))
    pods = [json.loads(each.pod) for each in asked]
    assert [len(each.names) for each in asked] == [10] * 4
    assert ["affinity" in pod["spec"] for pod in pods] == [False, True, True, True]
    assert len({pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods}) == 4


def test_what_filter_has_refused_is_not_asked_about_again() -> None:
    asked = next(Questions(NODES, 3_000).of(Form("few", 4), 1))
    answer = {"FailedNodes": {NAMES[0]: "reason"}, "FailedAndUnresolvableNodes": {NAMES[2]: "reason"}}
    assert [NAMES[1], NAMES[3]] == asked.fitting(json.dumps(answer).encode()).names


def test_whole_nodes_are_the_nodes_of_the_bench_cluster_in_the_order_of_the_names() -> None:
    questions, form = Questions(NODES, 3_000), Form("whole", NODES, whole=True)
    asked = list(questions.of(form, 2))[1]
    body = json.loads(questions.body(asked, form))
    assert asked.names == [item["metadata"]["name"] for item in body["Nodes"]["items"]]
    assert body["NodeNames"] is None


def test_whole_nodes_are_as_large_as_real_ones_and_decode_to_those_of_the_mirror() -> None:
    sizes = [len(whole_node(index)) for index in range(5_000)]
    assert 6_300 < statistics.mean(sizes) < 6_600
    node, bare = decode_node(whole_node(7)), decode_node(json.dumps(cluster.node(7)).encode())
    assert (node.name, node.labels) == (bare.name, bare.labels)
