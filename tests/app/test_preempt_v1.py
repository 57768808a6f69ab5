"""ExtenderPreemptionArgs in both forms, and the answer in Go's spelling."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from app.preempt_v1 import Preempter
from core.profile import affinity_profile
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of

HOST: Final = "kubernetes.io/hostname"
POD: Final = make_pod("p").priority(10).required_anti_affinity(term(HOST, labelled(app="web")))
WEB: Final = make_pod("web").uid("u-web").on("n1").label("app", "web")
OTHER: Final = make_pod("other").uid("u-other").on("n1").priority(3)
NOBODY: Final = {"n1": {"Pods": [], "NumPDBViolations": 0}}


def meta(*uids: str, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


def whole(*pods: PodBuilder, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [pod.obj() for pod in pods], "NumPDBViolations": violations}


def answered(body: bytes) -> bytes:
    nodes = [make_node(name).label(HOST, name) for name in ("n1", "n2")]
    return Preempter(affinity_profile(), mirror_of(*nodes, WEB, OTHER)).preempt(body).body


def asked(**fields: object) -> Mapping[str, Any]:
    args = {"Pod": POD.obj(), "NodeNameToVictims": None, "NodeNameToMetaVictims": None, **fields}
    answer: Mapping[str, Any] = json.loads(answered(json.dumps(args).encode()))
    return answer


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"NodeNameToMetaVictims": {"n1": meta("u-other", violations=2)}}, id="uids"),
        pytest.param({"NodeNameToVictims": {"n1": whole(OTHER, violations=2)}}, id="whole-pods"),
        pytest.param(
            {
                "NodeNameToVictims": None,
                "nodenametometavictims": {"n1": {"pods": [{"uid": "u-other"}], "numPdbViolations": 2}},
            },
            id="keys-in-any-case",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {**meta("u-other", violations=2), "Later": [1]}}}, id="unknown-member"
        ),
    ],
)
def test_both_forms_are_answered_with_uids(fields: Mapping[str, object]) -> None:
    args = {"Pod": POD.obj(), **fields}
    expected = b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u-other"},{"UID":"u-web"}],"NumPDBViolations":2}}}'
    assert answered(json.dumps(args).encode()) == expected


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(meta(), id="empty-list"),
        pytest.param({"Pods": None, "NumPDBViolations": None}, id="null-list"),
        pytest.param({}, id="absent"),
        pytest.param(None, id="null"),
    ],
)
def test_a_node_that_only_we_rejected_comes_without_victims_and_goes_with_them(victims: object) -> None:
    for form in ("NodeNameToMetaVictims", "NodeNameToVictims"):
        assert asked(**{form: {"n1": victims}}) == {"NodeNameToMetaVictims": {"n1": meta("u-web")}}


def test_nodes_where_nothing_helps_are_left_out() -> None:
    offers = {"n1": meta("u-web"), "n2": meta(), "unknown": meta("u-x")}
    assert asked(NodeNameToMetaVictims=offers) == {"NodeNameToMetaVictims": {"n1": meta("u-web")}}
    assert answered(json.dumps({"Pod": POD.obj(), "NodeNameToMetaVictims": {}}).encode()) == (
        b'{"NodeNameToMetaVictims":{}}'
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"Pod": None, "NodeNameToMetaVictims": NOBODY}, "Pod: required", id="no-pod"),
        pytest.param(
            {"Pod": {"metadata": {}}, "NodeNameToMetaVictims": NOBODY}, "Pod.metadata.name: required", id="pod"
        ),
        pytest.param(
            {},
            "NodeNameToVictims, NodeNameToMetaVictims: one of them required; kube-scheduler sends it by "
            "nodeCacheCapable",
            id="neither-form",
        ),
        pytest.param(
            {"NodeNameToVictims": NOBODY, "NodeNameToMetaVictims": NOBODY},
            "NodeNameToVictims, NodeNameToMetaVictims: one of them required; kube-scheduler sends it by "
            "nodeCacheCapable",
            id="both-forms",
        ),
        pytest.param(
            {"Victims": {}},
            "Victims: unknown field; ExtenderPreemptionArgs has Pod, NodeNameToVictims, NodeNameToMetaVictims",
            id="unknown-field",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": []}, "NodeNameToMetaVictims: expected object, got array", id="no-mapping"
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {"Pods": {}}}},
            "NodeNameToMetaVictims[n1].Pods: expected array | null, got object",
            id="no-list",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}, {"Name": "x"}]}}},
            "NodeNameToMetaVictims[n1].Pods[1].UID: required",
            id="no-uid",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 7}]}}},
            "NodeNameToMetaVictims[n1].Pods[0].UID: expected str | null, got int",
            id="uid-number",
        ),
        pytest.param(
            {"NodeNameToVictims": {"n1": {"Pods": [{"metadata": {"name": "x"}}]}}},
            "NodeNameToVictims[n1].Pods[0].metadata.uid: required",
            id="whole-pod-without-uid",
        ),
        pytest.param(
            {"NodeNameToVictims": {"n1": {"Pods": [{}]}}},
            "NodeNameToVictims[n1].Pods[0].metadata.uid: required",
            id="whole-pod-without-metadata",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {"NumPDBViolations": "many"}}},
            "NodeNameToMetaVictims[n1].NumPDBViolations: expected int | null, got str",
            id="violations",
        ),
    ],
)
def test_a_bad_request_lets_nobody_be_preempted_and_says_why(fields: Mapping[str, object], error: str) -> None:
    assert asked(**fields) == {"NodeNameToMetaVictims": {}, "Error": error}


def test_a_body_that_is_not_json_lets_nobody_be_preempted() -> None:
    answer = json.loads(answered(b'{"Pod":'))
    assert answer["NodeNameToMetaVictims"] == {}
    assert answer["Error"].startswith("body: malformed JSON")


def test_too_many_nodes_or_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.preempt_v1.MAX_NODES", 1)
    assert asked(NodeNameToMetaVictims={"n1": meta(), "n2": meta()})["Error"] == (
        "NodeNameToMetaVictims: more than 1 nodes"
    )
    monkeypatch.setattr("app.preempt_v1._MAX_ELEMENTS", 3)
    assert asked(NodeNameToMetaVictims=NOBODY)["Error"] == "body: more than 3 elements"


def test_an_error_is_cut_to_a_length_that_a_log_line_can_take() -> None:
    answer = asked(**{"x" * 20_000: None})
    assert len(answer["Error"]) == 8192
