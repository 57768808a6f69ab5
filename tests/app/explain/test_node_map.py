"""The columns of the page: what filter and prioritize answer, node by node, with the domains that the labels say."""

import asyncio
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pytest

import app.demo as demo_files
from app.explain.explain_request import decode_explain_request
from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.explain.node_map import NodeMap, guessed_rack_key, node_map
from app.settings.settings import Settings
from app.verbs.filter import Extender
from app.verbs.request import RecentPods, Request
from app.watch.freshness import OF_A_DUMP
from app.watch.release import AnsweredRelease
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import served_alone
from core.mirror.cluster import ClusterMirror
from core.profile import Profile, parse_profile
from tests.builders import make_node
from tests.conformance.combined_cases import combined_profile
from tests.conformance.engine import decoded_pod, load
from tests.conformance.golden_files import Members, read
from tests.core.diagnosis.test_golden_cases import CASES

DEMO = Path(demo_files.__file__).parent
ZONE = "topology.kubernetes.io/zone"
EVERY = 17  # of so many golden cases one is looked at: tests/core/diagnosis has them all


def sample() -> Iterator[Members]:
    yield from islice((line.content for line in read(CASES)), 0, None, EVERY)


def test_golden_cases_are_drawn_as_filter_and_prioritize_answer_them() -> None:
    looked_at = failing = 0
    for case in sample():
        mirror, profile = (
            load(case["namespaces"], case["nodes"], case["pods"]),
            combined_profile(case.get("args") or {}),
        )
        drawn = drawn_of(mirror, profile, case["pod"], [node["metadata"]["name"] for node in case["nodes"]])
        assert_as_answered(drawn, Extender(profile, mirror, None), case["pod"])
        looked_at += 1
        failing += any(drawn.verdict)
    assert looked_at > 20
    assert failing > 5


def demo() -> ClusterMirror:
    items = json.loads((DEMO / "cluster.json").read_bytes())["items"]
    of_kind = [[each for each in items if each["kind"] == kind] for kind in ("Namespace", "Node", "Pod")]
    return load(*of_kind)


@pytest.mark.parametrize("file", sorted(DEMO.glob("requests/*.json")), ids=lambda file: file.stem)
def test_the_demo_is_drawn_as_filter_and_prioritize_answer_it(file: Path) -> None:
    mirror, profile = demo(), parse_profile("full")
    pod = json.loads(file.read_bytes())["Pod"]
    drawn = drawn_of(mirror, profile, pod, [*mirror.nodes.slots])
    assert_as_answered(drawn, Extender(profile, mirror, None), pod)


def drawn_of(mirror: ClusterMirror, profile: Profile, pod: Members, names: list[str]) -> NodeMap:
    return node_map(Diagnosis(profile, mirror, decoded_pod(pod), mirror.batch(names)))


def assert_as_answered(drawn: NodeMap, extender: Extender, pod: Members) -> None:
    args = {"Pod": pod, "NodeNames": list(drawn.names)}
    answer = json.loads(extender.filter(Request(json.dumps(args).encode())).body)
    assert {name: drawn.reasons[number].reason for name, number in zip(drawn.names, drawn.verdict, strict=True)} == {
        **dict.fromkeys(answer["NodeNames"], ""),
        **(answer["FailedNodes"] or {}),
        **(answer["FailedAndUnresolvableNodes"] or {}),
    }
    assert [each.nodes for each in drawn.reasons] == [
        list(drawn.verdict).count(number) for number in range(len(drawn.reasons))
    ]
    scored = {name: score for name, score in zip(drawn.names, drawn.score, strict=True) if score is not None}
    assert set(scored) == set(answer["NodeNames"])
    if scored:
        priorities = extender.prioritize(Request(json.dumps({**args, "NodeNames": answer["NodeNames"]}).encode()))
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


def test_a_supposed_node_is_drawn() -> None:
    mirror = demo()
    explainer = Explainer(
        served_alone(parse_profile("affinity")),
        KnownPods(mirror, RecentPods()),
        None,
        OF_A_DUMP,
        release=AnsweredRelease(Settings(), mirror),
    )
    added = make_node("more").label(ZONE, "eu-west-1d").obj()
    body = {"pod": {"metadata": {"name": "p", "namespace": "default"}}, "add_nodes": [added]}
    drawn = asyncio.run(explainer.look(decode_explain_request(json.dumps(body).encode(), mirror), node_map))
    assert drawn.zones[drawn.zone[list(drawn.names).index("more")]] == "eu-west-1d"
    assert "more" not in mirror.nodes.slots


def test_five_thousand_nodes_are_less_than_a_megabyte() -> None:
    nodes = [
        make_node(f"node-with-a-long-name-{number:05}.example.com").label(ZONE, f"eu-west-1{number % 3}").obj()
        for number in range(5000)
    ]
    mirror = load([], nodes, [])
    drawn = drawn_of(mirror, parse_profile("affinity"), {"metadata": {"name": "p"}}, [*mirror.nodes.slots])
    assert len(msgspec.json.encode(drawn)) < 1_000_000
