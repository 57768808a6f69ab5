"""ExtenderPreemptionArgs in both forms, and the answer in Go's spelling."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from app.verbs.effects import RejectedNodes
from app.verbs.filter import NOBODY as NO_BYPASS
from app.verbs.preempt import PreemptVerb, preempt_verb
from app.verbs.request import Request, VerbResponse
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.scheduling_cycle import filter_nodes
from tests.app.verbs.receptions import effects_over
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.profile_parts import affinity_profile

HOST: Final = "kubernetes.io/hostname"
POD: Final = make_pod("p").priority(10).required_anti_affinity(term(HOST, labelled(app="web")))
WEB: Final = make_pod("web").uid("u-web").on("n1").label("app", "web")
OTHER: Final = make_pod("other").uid("u-other").on("n1").priority(3)
NOBODY: Final = {"n1": {"Pods": [], "NumPDBViolations": 0}}


def meta(*uids: str, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


def whole(*pods: PodBuilder, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [pod.obj() for pod in pods], "NumPDBViolations": violations}


class Setting:
    """A preempter over a mirror; the clock stands until it is set."""

    def __init__(self, mirror: ClusterMirror, first: int = 0) -> None:
        self.now = 100.0
        self.rejected_nodes = RejectedNodes(mirror, lambda: self.now)
        self._mirror = mirror
        self.preempter = PreemptVerb(
            affinity_profile(),
            mirror,
            self.rejected_nodes,
            offset=lambda nodes: min(first, nodes - 1),
            bypass=NO_BYPASS,
        )

    def filter(self, pod: PodBuilder, *nodes: str) -> None:
        """Let nodes be refused for a pod, as `filter` does."""
        value, batch = pod_of(pod), self._mirror.batch(nodes)
        verdicts = filter_nodes(affinity_profile(), FreshEvaluation(self._mirror, value), batch)
        self.rejected_nodes.note(value, batch, verdicts)

    def ask(self, pod: PodBuilder, offers: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Return the nodes of the answer."""
        body = json.dumps({"Pod": pod.obj(), "NodeNameToMetaVictims": offers}).encode()
        response = self.preempter.preempt(Request(body), None)
        return json.loads(response.body)["NodeNameToMetaVictims"]


def responded(body: bytes) -> bytes:
    nodes = [make_node(name).label(HOST, name) for name in ("n1", "n2")]
    return Setting(mirror_of(*nodes, WEB, OTHER)).preempter.preempt(Request(body), None).body


def requested(**fields: object) -> Mapping[str, Any]:
    args = {"Pod": POD.obj(), "NodeNameToVictims": None, "NodeNameToMetaVictims": None, **fields}
    response: Mapping[str, Any] = json.loads(responded(json.dumps(args).encode()))
    return response


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
    assert responded(json.dumps(args).encode()) == expected


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(meta(), id="empty-list"),
        pytest.param({"Pods": None, "NumPDBViolations": None}, id="null-list"),
        pytest.param({}, id="absent"),
        pytest.param(None, id="null"),
    ],
)
def test_a_node_that_is_offered_without_victims_is_answered_with_those_that_are_found(victims: object) -> None:
    for form in ("NodeNameToMetaVictims", "NodeNameToVictims"):
        assert requested(**{form: {"n1": victims}}) == {"NodeNameToMetaVictims": {"n1": meta("u-web")}}


def test_nodes_where_nothing_helps_are_left_out() -> None:
    offers = {"n1": meta("u-web"), "n2": meta(), "unknown": meta("u-x")}
    assert requested(NodeNameToMetaVictims=offers) == {"NodeNameToMetaVictims": {"n1": meta("u-web")}}
    assert responded(json.dumps({"Pod": POD.obj(), "NodeNameToMetaVictims": {}}).encode()) == (
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
    assert requested(**fields) == {"NodeNameToMetaVictims": {}, "Error": error}


def test_a_body_that_is_not_json_lets_nobody_be_preempted() -> None:
    response = json.loads(responded(b'{"Pod":'))
    assert response["NodeNameToMetaVictims"] == {}
    assert response["Error"].startswith("body: malformed JSON")


def test_too_many_nodes_or_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.preempt.MAX_NODES", 1)
    assert requested(NodeNameToMetaVictims={"n1": meta(), "n2": meta()})["Error"] == (
        "NodeNameToMetaVictims: more than 1 nodes"
    )
    assert json.loads(responded(b"," * 5_000_001))["Error"] == "body: more than 5000000 elements"


def test_an_error_is_cut_to_a_length_that_a_log_line_can_take() -> None:
    response = requested(**{"x" * 20_000: None})
    assert len(response["Error"]) == 8192


# Nodes that are not offered, as Kindred alone refused them.


def spread(*blockers: tuple[str, int]) -> ClusterMirror:
    """Make a mirror of n0, n1 ... with a web pod of a priority on each."""
    nodes = [make_node(f"n{number}").label(HOST, f"n{number}") for number in range(len(blockers))]
    pods = [
        make_pod(uid).uid(uid).on(f"n{number}").label("app", "web").priority(priority)
        for number, (uid, priority) in enumerate(blockers)
    ]
    return mirror_of(*nodes, *pods)


def test_nodes_that_kindred_alone_refused_a_moment_ago_are_candidates_too() -> None:
    setting = Setting(spread(("w0", 5), ("w1", 1), ("w2", 10)))
    setting.filter(POD, "n1", "n2")
    assert setting.ask(POD, {"n0": meta("w0")}) == {"n0": meta("w0"), "n1": meta("w1")}


def test_an_offer_is_not_replaced_by_what_kindred_refused() -> None:
    setting = Setting(spread(("w0", 5)))
    setting.filter(POD, "n0")
    assert setting.ask(POD, {"n0": meta("unknown", violations=3)}) == {"n0": meta("w0", "unknown", violations=3)}


@pytest.mark.parametrize(("later", "added"), [(1.0, True), (1.01, False)], ids=["same-attempt", "earlier-attempt"])
def test_what_was_refused_in_an_earlier_attempt_is_not_added(later: float, *, added: bool) -> None:
    setting = Setting(spread(("w0", 5), ("w1", 1)))
    setting.filter(POD, "n1")
    setting.now += later
    assert ("n1" in setting.ask(POD, {"n0": meta("w0")})) == added


def test_what_was_refused_for_another_pod_is_not_added() -> None:
    setting = Setting(spread(("w0", 5), ("w1", 1)))
    setting.filter(POD.uid("another"), "n1")
    assert setting.ask(POD, {"n0": meta("w0")}).keys() == {"n0"}


def test_of_many_refused_nodes_as_many_are_looked_at_as_kube_scheduler_wants_candidates_from_any_one_on() -> None:
    mirror = spread(*((f"w{number}", 1) for number in range(150)))
    for first, expected in ((0, range(100)), (120, [*range(120, 150), *range(70)])):
        setting = Setting(mirror, first)
        setting.filter(POD, *mirror.nodes.slots)
        assert sorted(setting.ask(POD, {})) == sorted(f"n{number}" for number in expected)


def test_switched_off_nobody_is_preempted_and_the_answer_says_what_to_set() -> None:
    off = preempt_verb(None, effects_over(ClusterMirror()))
    assert off.bypassed(Request(b"whatever")) is None
    response = off.run(Request(b"whatever"))
    assert isinstance(response, VerbResponse)
    response = json.loads(response.body)
    assert response["NodeNameToMetaVictims"] == {}
    assert "KINDRED_PREEMPT=verb" in response["Error"]


def test_of_pods_that_do_not_pass_and_of_bad_requests_nothing_is_answered_untouched() -> None:
    preempter = Setting(spread(("w0", 5))).preempter
    body = json.dumps({"Pod": POD.obj(), "NodeNameToMetaVictims": {"n0": meta("w0")}}).encode()
    assert preempter.preempt_bypassed(body) is None
    assert preempter.preempt_bypassed(b"{") is None
