"""A case that is taken from the mirror is one that the runner of golden cases takes, and passes."""

import json
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from app.dump.snapshot_file import load_items, read_items
from app.explain.conformance_case.case import CaseArgs, ConformanceCase, conformance_case, encoded_pod
from app.explain.conformance_case.encode import NotExpressibleError
from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.summary import summary
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import full_profile
from tests.app.explain.conformance_case.encoded import GOLDEN_MEMBERS, decoded
from tests.app.questions import ZONE, mirror_of, shop, state
from tests.builders import Object, labelled, make_namespace, make_node, make_pod, term
from tests.conformance import plugin_cases, volume_cases
from tests.conformance.__main__ import main
from tests.conformance.engine import load
from tests.conformance.golden_files import Line, Members, read
from tests.conformance.results import Results

DATA: Final = Path("tests/conformance/data")
SHARE: Final = 10
"""One in so many golden cases is run for every plugin, as all their objects come back equal (test_encode.py)."""


def taken(mirror: ClusterMirror, pod: object, args: CaseArgs = CaseArgs(), name: str = "bug") -> ConformanceCase:  # noqa: B008 - frozen
    return conformance_case(name, mirror, json.dumps(pod).encode(), args)


def written(case: ConformanceCase) -> dict[str, Any]:
    """Return the case that a reader of the line finds."""
    line = b"".join(case.pieces())
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    found: dict[str, Any] = json.loads(line)
    return found


def case_of(golden: Members) -> dict[str, Any]:
    mirror = load(golden["namespaces"], golden["nodes"], golden["pods"])
    for member, kind in GOLDEN_MEMBERS.items():
        if member not in ("nodes", "pods"):
            for each in golden.get(member, ()):
                mirror.apply(ClusterEvent("Add", decoded(kind, each)))
    given = golden.get("args") or {}
    args = CaseArgs(given.get("hardPodAffinityWeight", 1), given.get("ignorePreferredTermsOfExistingPods", False))
    return written(taken(mirror, golden["pod"], args, golden["name"]))


def test_an_exported_golden_case_expects_what_it_expected_and_passes() -> None:
    results = Results()
    for number, line in enumerate(read(DATA / "cases.jsonl.gz")):
        exported, golden = case_of(line.content), line.content["expected"]
        affinity = {name: golden[name] for name in golden if name not in ("plugins", "combined")}
        assert exported["expected"] == affinity, line.content["name"]
        expected = golden if number % SHARE == 0 else affinity
        plugin_cases.run([Line(line.kind, {**exported, "expected": expected}, line.place)], results)
    assert results.failures == []
    assert results.passed.pop("InterPodAffinity") == 600
    assert list(results.passed.values()) == [600 // SHARE] * 10


def test_an_exported_volume_case_passes_for_every_plugin() -> None:
    results = Results()
    for line in islice(read(DATA / "volumes.jsonl.gz"), 0, None, SHARE):
        exported = {**case_of(line.content), "expected": line.content["expected"]}
        volume_cases.run([Line(line.kind, exported, line.place)], results)
    assert results.failures == []
    assert list(results.passed.values()) == [400 // SHARE] * 5


def test_a_case_is_a_file_that_the_runner_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = make_pod("in").label("app", "intruder").preferred_affinity(5, term(ZONE, labelled(app="web")))
    file = tmp_path / "case.jsonl"
    file.write_bytes(b"".join(taken(shop(), pod.obj()).pieces()))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.endswith("InterPodAffinity: 1 passed, 0 failed\n")
    case = json.loads(file.read_bytes())
    del case["pods"][4]  # the hermit, which keeps intruders out
    file.write_text(json.dumps(case))
    assert main([str(file)]) == 1
    assert "filter[b1]\n    expected ('Unschedulable', " in capsys.readouterr().out


def test_pods_on_unknown_nodes_have_no_place_in_a_case() -> None:
    mirror = mirror_of(make_node("n1"), make_pod("here").on("n1"), make_pod("elsewhere").on("gone"))
    case = written(taken(mirror, make_pod("in").obj()))
    assert [pod["metadata"]["name"] for pod in case["pods"]] == ["here"]
    assert [node["metadata"]["name"] for node in case["nodes"]] == list(case["expected"]["filter"]) == ["n1"]


def test_a_case_holds_the_nominated_pods_and_is_explained_as_the_mirror_is() -> None:
    profile = full_profile()
    for line in islice(read(DATA / "v1.37/nominated.jsonl.gz"), 0, None, SHARE):
        mirror, pod = ClusterMirror(), decode_pod(json.dumps(line.content["pod"]).encode())
        load_items(read_items(json.dumps(line.content).encode()), mirror, skip_invalid=False)
        read_again = ClusterMirror()
        pieces = taken(mirror, line.content["pod"]).pieces()
        load_items(read_items(b"".join(pieces)), read_again, skip_invalid=False)
        told = [
            summary(Diagnosis(profile, each, pod, each.batch(list(mirror.nodes.slots))), 5)
            for each in (mirror, read_again)
        ]
        assert replace(told[0], generation=0) == replace(told[1], generation=0), line.content["name"]


def test_the_pod_of_a_case_and_pods_that_are_assumed_are_not_among_its_nominated_ones() -> None:
    pod, other = make_pod("in").uid("u").nominated("n1"), make_pod("a").uid("a").nominated("n1")
    mirror = mirror_of(make_node("n1"), pod, other, make_pod("b").uid("b").nominated("gone"))
    mirror.assume(decode_pod(other.json()), "n1", 0)
    case = written(taken(mirror, pod.obj()))
    assert [each["metadata"]["name"] for each in case["nominated"]] == ["b"]
    assert [each["metadata"]["name"] for each in case["pods"]] == ["a"]


def test_a_case_has_the_namespaces_with_their_labels() -> None:
    red = make_namespace("a").label("team", "red")
    case = written(taken(mirror_of(make_node("n1"), red, make_namespace("b")), make_pod("in").obj()))
    assert case["namespaces"] == [red.obj(), {"metadata": {"name": "b"}}]


def test_a_broken_term_of_a_pod_that_exists_is_no_obstacle_to_a_case() -> None:
    broken = term(ZONE, {"matchExpressions": [{"key": "app", "operator": "Near"}]})
    mirror = mirror_of(make_node("n1"), make_pod("odd").on("n1").required_anti_affinity(broken))
    assert "affinity" not in written(taken(mirror, make_pod("in").obj()))["pods"][0]["spec"]


def test_the_pod_itself_is_gone_where_it_was_bound_meanwhile_and_the_mirror_stays_as_it_was() -> None:
    pod = make_pod("in").uid("u").label("app", "in").required_anti_affinity(term(ZONE, labelled(app="in")))
    mirror = mirror_of(make_node("n1").label(ZONE, "a"), make_node("n2").label(ZONE, "b"), pod.on("n1"))
    before = state(mirror)
    case = written(taken(mirror, pod.obj()))
    assert case["pods"] == []
    assert case["expected"]["filter"] == {"n1": {"code": "Success"}, "n2": {"code": "Success"}}
    assert state(mirror) == before
    other = written(taken(mirror, pod.uid("other").obj()))
    assert [each["metadata"]["name"] for each in other["pods"]] == ["in"]
    assert other["expected"]["filter"]["n1"]["code"] == "Unschedulable"


def test_a_pod_waiting_for_an_unknown_node_is_no_obstacle_to_a_case_of_itself() -> None:
    pod = make_pod("in").uid("u")
    case = written(taken(mirror_of(make_node("n1"), pod.on("gone")), pod.obj()))
    assert (case["pods"], list(case["expected"]["filter"])) == ([], ["n1"])


def test_a_case_stays_as_it_was_taken() -> None:
    mirror = mirror_of(make_node("n1"), make_pod("web").on("n1"), make_namespace("default").label("team", "red"))
    case = taken(mirror, make_pod("in").obj())
    before = written(case)
    mirror.apply(ClusterEvent("Delete", decode_pod(make_pod("web").on("n1").json())))
    mirror.apply(ClusterEvent("Add", decode_pod(make_pod("api").on("n1").json())))
    assert written(case) == before
    assert written(taken(mirror, make_pod("in").obj())) != before


def test_the_arguments_are_those_that_were_asked_with() -> None:
    near = term(ZONE, labelled(app="in"))
    nodes = [make_node(name).label(ZONE, name) for name in ("a", "b")]
    mirror = mirror_of(*nodes, make_pod("old").on("a").preferred_affinity(5, near).required_affinity(near))
    incoming: Object = make_pod("in").label("app", "in").obj()
    loud = written(taken(mirror, incoming, CaseArgs(hard_pod_affinity_weight=100)))
    assert loud["args"] == {"hardPodAffinityWeight": 100, "ignorePreferredTermsOfExistingPods": False}
    assert loud["expected"]["raw_scores_all"] == {"a": 105, "b": 0}
    deaf = written(taken(mirror, incoming, CaseArgs(ignore_preferred_terms_of_existing_pods=True)))
    assert deaf["args"]["ignorePreferredTermsOfExistingPods"] is True
    assert deaf["expected"]["prescore_all"] == "Skip"


def test_the_pod_stays_as_it_was_sent_but_in_one_line() -> None:
    pod = {"metadata": {"name": "in", "annotations": {"a": "line 1\nline 2"}}, "spec": {"unknown": 1.0}}
    case = conformance_case("bug", shop(), json.dumps(pod, indent=2).encode(), CaseArgs())
    assert written(case)["pod"] == pod


def test_a_pod_of_the_mirror_is_written_as_a_scheduler_would_send_it() -> None:
    pod = decode_pod(make_pod("web").label("app", "web").on("n1").json())
    assert decode_pod(encoded_pod(pod)) == decode_pod(make_pod("web").label("app", "web").uid(pod.uid).json())


def test_what_cannot_be_written_is_named() -> None:
    mirror = mirror_of(make_node("a1"))
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "odd", node_name="a1", requests={"cpu": 3})))
    with pytest.raises(NotExpressibleError, match=r"^pod shop/odd: found no 0 containers"):
        written(taken(mirror, make_pod("in").obj()))


def test_a_pod_that_is_none_is_an_error() -> None:
    with pytest.raises(DecodeError, match=r"metadata\.name: required"):
        taken(shop(), {})
