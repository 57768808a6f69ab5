"""The naive reference against the golden data, and against the rules that the golden data does not reach."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Object, PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.reference.answer import Response
from tests.reference.naive import (
    AFFINITY_FAILED,
    ANTI_AFFINITY_FAILED,
    EXISTING_ANTI_AFFINITY_FAILED,
    SUCCESS,
    NaiveCluster,
)

CASES = Path(__file__).parents[1] / "conformance" / "data" / "cases.jsonl.gz"

NODES = [make_node(name).label("host", name).label("zone", zone).obj() for name, zone in (("n1", "a"), ("n2", "b"))]
NAMESPACES = [make_namespace("red").label("team", "red").obj(), make_namespace("bare").obj()]
WEB = make_pod("web").label("app", "web")
HATES_WEB = make_pod("hates-web").required_anti_affinity(term("zone", labelled(app="web")))
JOINS_WEB = make_pod("joins-web").required_affinity(term("zone", labelled(app="web")))


def response(pod: Object, pods: Iterable[Object] = (), **args: Any) -> Response:  # noqa: ANN401 - passed on as it is
    return NaiveCluster(NAMESPACES, NODES, pods).response(pod, **args)


def test_every_golden_case_is_answered_as_the_in_tree_plugin_does() -> None:
    wrong = []
    with gzip.open(CASES) as file:
        cases = [json.loads(line) for line in file]
    for case in cases:
        args = case["args"]
        got = NaiveCluster(case["namespaces"], case["nodes"], case["pods"]).response(
            case["pod"],
            args.get("hardPodAffinityWeight", 1),
            ignore_preferred_terms_of_existing_pods=args.get("ignorePreferredTermsOfExistingPods", False),
        )
        if got != Response.from_golden(case["expected"]):
            wrong.append(case["name"])
    assert len(cases) == 600
    assert wrong == []


def test_a_decision_is_the_answer_over_the_fitting_nodes_alone() -> None:
    web = term("zone", labelled(app="web"))
    existing = [WEB.on("n1").obj(), HATES_WEB.on("n1").obj(), JOINS_WEB.on("n2").obj()]
    incoming = [
        make_pod("no-terms"),
        WEB,
        HATES_WEB.preferred_affinity(5, web),
        make_pod("in").preferred_affinity(5, web),
        JOINS_WEB.required_anti_affinity(web),
        WEB.required_affinity(term("zone", expressed("app", "In"))),
    ]
    decided = [NaiveCluster(NAMESPACES, NODES, existing).decision(pod.obj()) for pod in incoming]
    assert decided == [{"n1": 0, "n2": 0}, {"n2": 0}, {"n2": 0}, {"n1": 100, "n2": 0}, {}, {}]
    for pod, decision in zip(incoming, decided, strict=True):
        response_to_it = response(pod.obj(), existing)
        assert decision.items() >= response_to_it.normalized_feasible.items()
        assert decision.keys() == {name for name, verdict in response_to_it.filter.items() if verdict == SUCCESS}


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        pytest.param(WEB.on("n1"), ANTI_AFFINITY_FAILED, id="running"),
        pytest.param(WEB.on("n1").terminating(), ANTI_AFFINITY_FAILED, id="terminating"),
        pytest.param(WEB.on("n1").phase("Succeeded"), SUCCESS, id="succeeded"),
        pytest.param(WEB.on("n1").phase("Failed"), SUCCESS, id="failed"),
        pytest.param(WEB, SUCCESS, id="not-bound"),
        pytest.param(WEB.on("gone"), SUCCESS, id="on-an-unknown-node"),
    ],
)
def test_only_bound_pods_that_have_not_ended_on_known_nodes_count(existing: PodBuilder, expected: object) -> None:
    got = response(HATES_WEB.obj(), [existing.obj()])
    assert got.filter == {"n1": expected, "n2": SUCCESS}


def test_a_pod_on_a_node_without_the_topology_key_leaves_the_first_pod_exception_open() -> None:
    keyless = make_node("n3").label("host", "n3").obj()
    cluster = NaiveCluster(NAMESPACES, [*NODES, keyless], [WEB.on("n3").obj()])
    got = cluster.response(WEB.required_affinity(term("zone", labelled(app="web"))).obj())
    assert got.filter == {"n1": SUCCESS, "n2": SUCCESS, "n3": AFFINITY_FAILED}


def test_a_pod_that_does_not_match_its_own_terms_is_no_first_pod() -> None:
    assert response(JOINS_WEB.obj()).filter == {"n1": AFFINITY_FAILED, "n2": AFFINITY_FAILED}


def test_a_broken_term_empties_only_its_own_list_of_an_existing_pod() -> None:
    existing = (
        HATES_WEB.required_anti_affinity(term("host", expressed("app", "In"))).preferred_affinity(
            9, term("zone", labelled(app="web"))
        )
    ).on("n1")
    got = response(WEB.obj(), [existing.obj()])
    assert (got.prefilter, got.raw_scores_all) == ("Skip", {"n1": 9, "n2": 0})


def test_broken_terms_of_an_incoming_pod_are_told_together() -> None:
    broken = WEB.required_affinity(term("zone", expressed("app", "Near"))).required_anti_affinity(
        term("zone", expressed("app", "Exists", "x"))
    )
    reason = (
        'parsing pod: [requiredAffinityTerms: "Near" is not a valid label selector operator, '
        'requiredAntiAffinityTerms: values: Invalid value: ["x"]: '
        "values set must be empty for exists and does not exist]"
    )
    got = response(broken.obj())
    assert (got.prefilter, got.prefilter_reasons) == ("UnschedulableAndUnresolvable", (reason,))


@pytest.mark.parametrize(
    ("namespace", "selector", "expected"),
    [
        pytest.param("red", labelled(team="red"), ANTI_AFFINITY_FAILED, id="selected"),
        pytest.param("bare", labelled(team="red"), SUCCESS, id="not-selected"),
        pytest.param("bare", expressed("team", "DoesNotExist"), ANTI_AFFINITY_FAILED, id="selected-by-absence"),
        pytest.param("unlisted", expressed("team", "DoesNotExist"), SUCCESS, id="unlisted"),
        pytest.param("unlisted", labelled(), ANTI_AFFINITY_FAILED, id="unlisted-and-selector-of-everything"),
    ],
)
def test_an_incoming_namespace_selector_selects_listed_namespaces_unless_it_selects_everything(
    namespace: str, selector: Object, expected: object
) -> None:
    hates_all = make_pod("in").required_anti_affinity(term("zone", labelled(), namespace_selector=selector))
    assert response(hates_all.obj(), [WEB.in_namespace(namespace).on("n1").obj()]).filter["n1"] == expected


def test_an_existing_namespace_selector_sees_no_labels_on_an_unlisted_namespace() -> None:
    selector = expressed("team", "DoesNotExist")
    existing = make_pod("p").on("n1").required_anti_affinity(term("zone", labelled(), namespace_selector=selector))
    got = response(WEB.in_namespace("unlisted").obj(), [existing.obj()])
    assert got.filter == {"n1": EXISTING_ANTI_AFFINITY_FAILED, "n2": SUCCESS}


def test_a_sum_that_cancels_to_zero_has_been_counted_all_the_same() -> None:
    web = term("zone", labelled(app="web"))
    undecided = make_pod("in").preferred_affinity(5, web).preferred_anti_affinity(5, web)
    got = response(undecided.obj(), [WEB.on("n1").obj()])
    assert (got.prescore_all, got.raw_scores_all) == ("Success", {"n1": 0, "n2": 0})


def test_a_hard_weight_of_zero_counts_nothing() -> None:
    existing = [JOINS_WEB.on("n1").obj()]
    assert response(WEB.obj(), existing, hard_pod_affinity_weight=0).prescore_all == "Skip"
    assert response(WEB.obj(), existing, hard_pod_affinity_weight=7).raw_scores_all == {"n1": 7, "n2": 0}


def test_preferences_of_existing_pods_are_ignored_only_for_a_pod_without_its_own() -> None:
    existing = [make_pod("p").on("n1").preferred_affinity(3, term("zone", labelled(app="web"))).obj()]
    picky = WEB.preferred_affinity(1, term("zone", labelled(app="none")))
    ignoring = {"ignore_preferred_terms_of_existing_pods": True}
    assert response(WEB.obj(), existing, **ignoring).prescore_all == "Skip"
    assert response(picky.obj(), existing, **ignoring).raw_scores_all == {"n1": 3, "n2": 0}


def test_a_stranger_is_judged_from_its_labels_with_no_pods_on_it() -> None:
    foreign = make_node("new").label("host", "new").label("zone", "a").obj()
    cluster = NaiveCluster(NAMESPACES, NODES, [WEB.on("n1").obj(), WEB.on("new").label("app", "db").obj()])
    got = cluster.response(HATES_WEB.obj(), unmirrored=[foreign])
    assert got.filter == {"n1": ANTI_AFFINITY_FAILED, "n2": SUCCESS, "new": ANTI_AFFINITY_FAILED}
