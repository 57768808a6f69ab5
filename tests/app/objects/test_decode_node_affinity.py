"""nodeSelector and node affinity of pods to the core's value: terms, their order, the memo, and what is broken."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.affinity import (
    NO_NODE_AFFINITY,
    NodeAffinity,
    NodeSelector,
    PreferredTerm,
    parse_node_selector,
    selector_from_set,
)
from tests.builders import PREFERRED, REQUIRED, Object, PodBuilder, expressed, make_pod, named, term

IN_A = expressed("zone", "In", "a")
IN_B = expressed("zone", "In", "b")
BROKEN = expressed("zone", "Near", "a")


def affinity_of(pod: PodBuilder) -> NodeAffinity:
    return decode_pod(pod.json()).node_affinity


def decoded(spec: Object) -> NodeAffinity:
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode()).node_affinity


def selector(*zones: str) -> NodeSelector:
    return parse_node_selector([([("zone", "In", [zone])], ()) for zone in zones])


def preferred(weight: int, zone: str) -> PreferredTerm:
    return PreferredTerm(weight, selector(zone).terms[0])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p"), NO_NODE_AFFINITY, id="nothing"),
        pytest.param(
            make_pod("p").node_selector({"disk": "ssd"}),
            NodeAffinity(selector_from_set({"disk": "ssd"})),
            id="node-selector",
        ),
        pytest.param(
            make_pod("p").node_selector({"disk": "ssd"}).required_affinity(term("zone")),
            NodeAffinity(selector_from_set({"disk": "ssd"})),
            id="node-selector-beside-affinity-to-pods",
        ),
        pytest.param(make_pod("p").required_affinity(term("zone")), NO_NODE_AFFINITY, id="only-affinity-to-pods"),
        pytest.param(
            make_pod("p").required_node_affinity(IN_A, IN_B), NodeAffinity(required=selector("a", "b")), id="required"
        ),
        pytest.param(
            make_pod("p").required_node_affinity(),
            NodeAffinity(required=NodeSelector()),
            id="required-without-terms",
        ),
        pytest.param(
            make_pod("p").required_node_affinity({}, IN_A),
            NodeAffinity(required=selector("a")),
            id="empty-term-is-left-out",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(5, IN_A).preferred_node_affinity(-2, IN_B),
            NodeAffinity(preferred=(preferred(-2, "b"), preferred(5, "a"))),
            id="preferred",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(0, IN_A).preferred_node_affinity(1, {}),
            NodeAffinity(empty_preferences=True),
            id="preferred-of-no-weight-and-empty",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(0, BROKEN),
            NodeAffinity(empty_preferences=True),
            id="broken-preferred-of-no-weight",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(1, IN_A).preferred_node_affinity(1, IN_A),
            NodeAffinity(preferred=(preferred(1, "a"), preferred(1, "a"))),
            id="preferred-twice-counts-twice",
        ),
    ],
)
def test_what_a_pod_asks_of_its_node_is_read(pod: PodBuilder, expected: NodeAffinity) -> None:
    assert expected == affinity_of(pod)


@pytest.mark.parametrize(
    "term", [pytest.param({}, id="empty"), pytest.param({"weight": 1, "preference": None}, id="null")]
)
def test_preferences_that_are_all_empty_are_no_preferences_and_yet_there(term: Object) -> None:
    assert decoded({"affinity": {"nodeAffinity": {PREFERRED: [term]}}}) == NodeAffinity(empty_preferences=True)


def test_null_terms_are_a_selector_without_terms() -> None:
    spec = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": None}}}}
    assert decoded(spec) == NodeAffinity(required=NodeSelector())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            make_pod("p").node_selector({"a": "1"}).node_selector({"b": "2"}),
            make_pod("p").node_selector({"b": "2", "a": "1"}),
            id="labels",
        ),
        pytest.param(
            make_pod("p").required_node_affinity(IN_A, IN_B),
            make_pod("p").required_node_affinity(IN_B, IN_A, IN_B),
            id="required-terms",
        ),
        pytest.param(
            make_pod("p").required_node_affinity(expressed("zone", "In", "a", "b")),
            make_pod("p").required_node_affinity(expressed("zone", "In", "b", "a")),
            id="values",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(1, IN_A).preferred_node_affinity(1, IN_B),
            make_pod("p").preferred_node_affinity(1, IN_B).preferred_node_affinity(1, IN_A),
            id="preferred-terms",
        ),
    ],
)
def test_the_order_is_irrelevant(one: PodBuilder, other: PodBuilder) -> None:
    assert affinity_of(one) == affinity_of(other)
    assert hash(affinity_of(one)) == hash(affinity_of(other))


def test_what_is_too_long_to_be_remembered_is_read() -> None:
    long = {f"key-{number}": "v" * 60 for number in range(150)}
    assert affinity_of(make_pod("p").node_selector(long)) == NodeAffinity(selector_from_set(long))


# Names of nodes.


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([IN_A], None, id="no-names"),
        pytest.param([named("In", "n1")], {"n1"}, id="one"),
        pytest.param([named("In", "n1"), named("In", "n2")], {"n1", "n2"}, id="alternatives"),
        pytest.param([named("In", "n1"), IN_A], None, id="a-term-without-names"),
        pytest.param([named("NotIn", "n1")], None, id="not-in"),
        pytest.param([named("In", "n1", "n2")], {"n1", "n2"}, id="broken-term-of-two-names"),
        pytest.param(
            [{"matchFields": named("In", "n1")["matchFields"] + named("In", "n2")["matchFields"]}],
            set(),
            id="contradiction",
        ),
        pytest.param(
            [{"matchFields": named("In", "n1")["matchFields"] + named("NotIn", "n2")["matchFields"]}],
            {"n1"},
            id="in-and-not-in",
        ),
        pytest.param([{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n"]}]}], None, id="other-field"),
        pytest.param([{}, named("In", "n1")], None, id="empty-term"),
        pytest.param([], None, id="no-terms"),
    ],
)
def test_the_names_that_required_terms_allow_are_found(terms: list[Object], expected: set[str] | None) -> None:
    assert expected == affinity_of(make_pod("p").required_node_affinity(*terms)).node_names


# What is broken.


def test_a_broken_required_term_matches_nothing_and_the_others_stand() -> None:
    affinity = affinity_of(make_pod("p").required_node_affinity(BROKEN, IN_A))
    assert affinity.matches({"zone": "a"}, "n")
    assert not affinity.matches({"zone": "b"}, "n")


def test_broken_preferred_terms_keep_their_errors_in_their_order_by_their_index() -> None:
    pod = (
        make_pod("p")
        .preferred_node_affinity(0, BROKEN)
        .preferred_node_affinity(9, BROKEN)
        .preferred_node_affinity(5, IN_A)
        .preferred_node_affinity(1, named("In"))
    )
    operators = '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    expected = (
        f'[[1].matchExpressions[0].operator: Unsupported value: "Near": supported values: {operators}, '
        "[3].matchFields[0].values: Invalid value: null: must have one element]"
    )
    affinity = affinity_of(pod)
    assert expected == affinity.preferred_error
    assert [each.weight for each in affinity.preferred] == [9, 5, 1]
