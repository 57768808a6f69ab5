"""A golden case as a dump: its cluster is loaded, and the pod that it asks about is no part of it."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from app.dump.snapshot_file import CASE_MEMBERS, SnapshotError, read_items
from app.explain.conformance_case.case import CaseArgs, conformance_case
from app.objects.resources import RESOURCES
from core.events import ClusterEvent
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.app.dump.dumps import as_json, listed, load
from tests.app.explain.conformance_case.encoded import GOLDEN_MEMBERS
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.app.questions import NEAR_WEB, ZONE, mirror_of, shop, state
from tests.builders import expressed, make_namespace, make_node, make_pod, term
from tests.conformance.engine import ask
from tests.conformance.engine import load as golden_mirror
from tests.reference.answer import Answer

DATA: Final = Path("tests/conformance/data")
SHARE: Final = 12
"""One in so many golden cases is asked: that takes a second."""
NODE, POD = make_node("n1").label(ZONE, "a"), make_pod("web").label("app", "web").on("n1")
ASKED = make_pod("next").required_affinity(NEAR_WEB)
CASE = {
    "name": "bug",
    "note": "as seen",
    "tags": ["edge"],
    "args": {"hardPodAffinityWeight": 7},
    "namespaces": [make_namespace("default").obj()],
    "nodes": [NODE.obj()],
    "pods": [POD.obj()],
    "pod": ASKED.obj(),
    "expected": {"prefilter": "Success"},
    "expected_1_34": {},
}


def golden(name: str, share: int = SHARE) -> list[bytes]:
    with gzip.open(DATA / name) as file:
        return list(islice(file, 0, None, share))


def refused(text: bytes) -> str:
    with pytest.raises(SnapshotError) as error:
        load(text)
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(CASE).encode() + b"\n", id="line"),
        pytest.param(as_json(CASE), id="indented"),
        pytest.param(yaml.safe_dump(CASE).encode(), id="yaml"),
        pytest.param(json.dumps({**CASE, "kind": None, "pvs": None}).encode(), id="null-is-absent"),
    ],
)
def test_a_case_is_its_cluster(text: bytes) -> None:
    mirror, summary = load(text)
    assert state(mirror_of(NODE, POD, make_namespace("default"))) == state(mirror)
    assert str(summary) == "1 nodes, 2 pods, 1 namespaces (1 pods pending or ended: not counted)"


def test_golden_cases_are_answered_as_they_expect() -> None:
    asked = 0
    for line in golden("cases.jsonl.gz"):
        case: dict[str, Any] = json.loads(line)
        mirror, _ = load(line)
        assert state(golden_mirror(case["namespaces"], case["nodes"], case["pods"])) == state(mirror), case["name"]
        given = case.get("args", {})
        plugin = InterPodAffinity(
            hard_pod_affinity_weight=given.get("hardPodAffinityWeight", 1),
            ignore_preferred_terms_of_existing_pods=given.get("ignorePreferredTermsOfExistingPods", False),
        )
        names = [node["metadata"]["name"] for node in case["nodes"]]
        assert Answer.from_golden(case["expected"]) == ask(plugin, mirror, case["pod"], names), case["name"]
        asked += 1
    assert asked == 600 / SHARE


@pytest.mark.parametrize("file", ["cases.jsonl.gz", "volumes.jsonl.gz", "preempt.jsonl.gz"])
def test_all_objects_of_golden_cases_are_loaded_but_the_pod(file: str) -> None:
    members = {member: kind for member, kind in CASE_MEMBERS.items() if kind not in (Node, Pod, Namespace)}
    for line in golden(file, 4):
        case: dict[str, Any] = json.loads(line)
        mirror, summary = load(line)
        for member, kind in members.items():
            found = list(mirror.objects(kind).values())
            assert [RESOURCES[kind].decode(json.dumps(each).encode()) for each in case.get(member, ())] == found
        assert (len(mirror.nodes.slots), len(mirror.pods)) == (len(case["nodes"]), len(case["pods"]))
        assert (summary.taken["Pod"], summary.unassigned_pods) == (len(case["pods"]) + 1, 1)


def test_the_nominated_pods_of_a_case_wait_for_their_nodes() -> None:
    for line in golden("v1.37/nominated.jsonl.gz", 4):
        case: dict[str, Any] = json.loads(line)
        mirror, summary = load(line)
        expected = {(pod["metadata"]["uid"], pod["status"]["nominatedNodeName"]) for pod in case["nominated"]}
        assert expected == {(pod.uid, pod.nominated_node_name) for pod in mirror.pending}
        assert summary.nominated_pods == len(expected)


def test_what_a_service_wrote_is_read_whole() -> None:
    mirror, kinds = shop(), [kind for kind in GOLDEN_MEMBERS.values() if kind not in (Node, Pod, Namespace)]
    for kind in kinds:
        mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(json.dumps(FULL_OBJECTS[kind]).encode())))
    read, _ = load(b"".join(conformance_case("bug", mirror, ASKED.json(), CaseArgs()).pieces()))
    assert state(mirror) == state(read)
    for kind in kinds:
        assert len(mirror.objects(kind)) == 1
        assert dict(mirror.objects(kind)) == dict(read.objects(kind))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ASKED.on("n1"), id="on-a-node"),
        pytest.param(make_pod("web"), id="named-as-a-placed-one"),
        pytest.param(make_pod("other").uid("default/web"), id="that-is-placed"),
        pytest.param(make_pod("next").required_affinity(term(ZONE, expressed("app", "Near"))), id="broken-term"),
    ],
)
def test_the_pod_of_a_case_is_not_in_its_cluster_whatever_it_says(asked: Any) -> None:  # noqa: ANN401  # a builder
    mirror, summary = load(as_json({**CASE, "pod": asked.obj()}))
    assert list(mirror.pods.rows) == ["default/web"]
    assert summary.unassigned_pods == 1


def test_a_case_without_a_pod_is_a_dump_all_the_same() -> None:
    mirror, summary = load(as_json({"nodes": [NODE.obj()], "pods": []}))
    assert (list(mirror.nodes.slots), str(summary)) == (["n1"], "1 nodes, 0 pods, 0 namespaces")


LINE = json.dumps(CASE).encode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(as_json({"nodes": []}), "pods: required in a golden case", id="no-pods"),
        pytest.param(as_json({"pods": [], "nodes": None}), "nodes: required in a golden case", id="no-nodes"),
        pytest.param(as_json({"nodes": 3, "pods": []}), "nodes: expected array | null, got int", id="no-array"),
        pytest.param(as_json({**CASE, "pvs": {}}), "pvs: expected array | null, got object", id="no-array-of-volumes"),
        pytest.param(
            as_json({**CASE, "nodes": [NODE.obj(), {"metadata": {"name": 7}}]}),
            "nodes[1] (unreadable): metadata.name: expected str | null, got int",
            id="node",
        ),
        pytest.param(
            as_json({**CASE, "pods": [POD.obj(), POD.obj()]}),
            "pods[1] (Pod default/web): metadata.name: already used by the Pod at pods[0]",
            id="twice",
        ),
        pytest.param(
            as_json({**CASE, "pods": [{"kind": "Node", "metadata": {"name": "n1"}}]}),
            "pods[0] (Pod n1): kind: expected Pod, got Node",
            id="another-kind",
        ),
        pytest.param(
            as_json({**CASE, "pod": {"metadata": {}}}), "pod (Pod ?): metadata.name: required", id="nameless-pod"
        ),
        pytest.param(
            b"\n".join([LINE, b"", LINE, LINE]),
            "3 golden cases, one in each line; a dump is one of them",
            id="several",
        ),
        pytest.param(LINE + b"\n{", "2 golden cases, one in each line; a dump is one of them", id="cut-off"),
        pytest.param(b"{}\n" + LINE, "malformed JSON: trailing characters (byte 4)", id="behind-something-else"),
        pytest.param(LINE[:-1], "malformed JSON: input data was truncated", id="truncated"),
        pytest.param(
            yaml.safe_dump_all([listed(), CASE]).encode(),
            "document 2 is a golden case, which must be alone",
            id="beside-a-list",
        ),
        pytest.param(
            as_json({"kind": "Widget", "nodes": [], "pods": []}),
            "items: required; a dump is what `kubectl get nodes,pods,namespaces -A -o json` prints",
            id="of-some-kind",
        ),
    ],
)
def test_what_is_wrong_with_a_case_is_named(text: bytes, message: str) -> None:
    assert refused(text) == message


def test_a_list_that_has_nodes_beside_its_items_is_a_list() -> None:
    (item,) = read_items(as_json({"items": [{"kind": "Node", **NODE.obj()}], "nodes": [], "pods": []}))
    assert item.place == "items[0]"


def test_a_broken_object_of_a_case_is_counted_where_that_is_asked_for() -> None:
    hermit = make_pod("hermit").on("n1").required_anti_affinity(term(ZONE, expressed("app", "Near")))
    text = as_json({**CASE, "pods": [POD.obj(), hermit.obj(), {"metadata": {}}], "pod": {"metadata": {}}})
    _, summary = load(text, skip_invalid=True)
    assert [problem.partition(" ")[0] for problem in summary.invalid] == ["pods[1]", "pods[2]", "pod"]
