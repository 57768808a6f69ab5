"""The columns of the page: what filter and prioritize answer, node by node, with the domains that the labels say."""

import json
from collections.abc import Iterator
from itertools import islice

from app.explain.node_map import NodeMap, guessed_rack_key, node_map
from app.verbs.filter import Extender
from app.verbs.request import Request
from core.diagnosis.diagnosis import Diagnosis
from core.mirror.cluster import ClusterMirror
from core.profile import Profile, parse_profile
from tests.builders import make_node
from tests.conformance.combined_cases import combined_profile
from tests.conformance.engine import decoded_pod, load
from tests.conformance.golden_files import Members, read
from tests.core.diagnosis.test_golden_cases import CASES

ZONE = "topology.kubernetes.io/zone"
EVERY = 28  # of so many golden cases one is looked at: tests/core/diagnosis has them all


def sample() -> Iterator[Members]:
    yield from islice((line.content for line in read(CASES)), 0, None, EVERY)


def test_golden_cases_are_drawn_as_filter_and_prioritize_answer_them() -> None:
    looked_at = failing = 0
    for case in sample():
        mirror, profile = (
            load(case["namespaces"], case["nodes"], case["pods"]),
            combined_profile(case),
        )
        drawn = drawn_of(mirror, profile, case["pod"], [node["metadata"]["name"] for node in case["nodes"]])
        assert_as_responded(drawn, Extender(profile, mirror, None), case["pod"])
        looked_at += 1
        failing += any(drawn.verdict)
    assert looked_at > 20
    assert failing > 5


def drawn_of(mirror: ClusterMirror, profile: Profile, pod: Members, names: list[str]) -> NodeMap:
    return node_map(Diagnosis(profile, mirror, decoded_pod(pod), mirror.batch(names)))


def assert_as_responded(drawn: NodeMap, extender: Extender, pod: Members) -> None:
    args = {"Pod": pod, "NodeNames": list(drawn.names)}
    response = json.loads(extender.filter(Request(json.dumps(args).encode())).body)
    assert {name: drawn.reasons[number].reason for name, number in zip(drawn.names, drawn.verdict, strict=True)} == {
        **dict.fromkeys(response["NodeNames"], ""),
        **(response["FailedNodes"] or {}),
        **(response["FailedAndUnresolvableNodes"] or {}),
    }
    assert [each.nodes for each in drawn.reasons] == [
        list(drawn.verdict).count(number) for number in range(len(drawn.reasons))
    ]
    scored = {name: score for name, score in zip(drawn.names, drawn.score, strict=True) if score is not None}
    assert set(scored) == set(response["NodeNames"])
    if scored:
        priorities = extender.prioritize(Request(json.dumps({**args, "NodeNames": response["NodeNames"]}).encode()))
        assert scored == {each["Host"]: each["Score"] for each in json.loads(priorities.body)}


def test_the_domains_are_those_of_the_labels() -> None:
    mirror = load(
        [],
        [
            make_node("n1").label(ZONE, "a").label("x.example/rack", "r1").obj(),
            make_node("n2").label(ZONE, "b").obj(),
            make_node("n3").label("x.example/rack", "r2").obj(),
        ],
        [],
    )
    profile = parse_profile("affinity")
    drawn = drawn_of(mirror, profile, {"metadata": {"name": "p", "namespace": "default"}}, ["n3", "n2", "n1", "n0"])
    assert [drawn.zones[each] for each in drawn.zone] == ["", "b", "a", ""]
    assert [drawn.racks[each] for each in drawn.rack] == ["r2", "", "r1", ""]
    assert (drawn.zone_key, drawn.rack_key) == (ZONE, "x.example/rack")
    assert drawn.reasons[drawn.verdict[3]].plugin == ""  # an unknown node is no plugin's affair
    assert drawn.score == [0, 0, 0, None]


def test_racks_are_by_the_label_that_most_nodes_have_of_those_called_so() -> None:
    nodes = [
        make_node("n1").label("a/rack", "1").label("b/rack", "1").obj(),
        make_node("n2").label("b/rack", "1").label("racks", "1").obj(),
    ]
    assert guessed_rack_key(load([], nodes, [])) == "b/rack"
    assert guessed_rack_key(load([], [make_node("n").label("tracking", "x").obj()], [])) == ""
