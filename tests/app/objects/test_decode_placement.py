"""Where a pod wants to be, to the core's values: affinity to pods and nodes, tolerations, spread constraints."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.affinity import (
    NO_NODE_AFFINITY,
    AffinityTerm,
    NodeAffinity,
    NodeSelector,
    PodAffinity,
    PodMatcher,
    PreferredTerm,
    TermError,
    WeightedAffinityTerm,
    parse_node_selector,
    selector_from_set,
)
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector, parse_selector
from core.objects.pod import HONOR, IGNORE, SCHEDULE_ANYWAY, Pod, SpreadConstraint, Toleration
from tests.builders import PREFERRED, REQUIRED, Object, PodBuilder, expressed, labelled, make_pod, named, term

A = labelled(app="a")
SELECTS_A = Selector((Requirement("app", Operator.IN, ("a",)),))
NEAR = expressed("app", "Near")
NEAR_MESSAGE = '"Near" is not a valid label selector operator'


def pod_with(**spec: object) -> Pod:
    return decode_pod(json.dumps({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec}).encode())


def affinity_of(terms: Object) -> PodAffinity:
    return pod_with(affinity=terms).affinity


def node_affinity_of(pod: PodBuilder) -> NodeAffinity:
    return decode_pod(pod.json()).node_affinity


# Affinity to pods.


def matcher_of(made: Object) -> PodMatcher:
    affinity = affinity_of({"podAffinity": {REQUIRED: [made]}})
    assert affinity.errors == ()
    (only,) = affinity.required_affinity
    return only.matcher


def test_the_four_lists_of_terms_are_read_in_their_order() -> None:
    pod = (
        make_pod("p")
        .in_namespace("shop")
        .required_affinity(term("zone", A), term("host", A))
        .required_anti_affinity(term("rack", A))
        .preferred_affinity(7, term("zone", A))
        .preferred_affinity(-3, term("zone", A))
        .preferred_anti_affinity(100, term("row", A))
    )
    matcher = PodMatcher(frozenset({"shop"}), NOTHING, SELECTS_A)
    expected = PodAffinity(
        required_affinity=(AffinityTerm(matcher, "zone"), AffinityTerm(matcher, "host")),
        required_anti_affinity=(AffinityTerm(matcher, "rack"),),
        preferred_affinity=tuple(WeightedAffinityTerm(AffinityTerm(matcher, "zone"), weight) for weight in (7, -3)),
        preferred_anti_affinity=(WeightedAffinityTerm(AffinityTerm(matcher, "row"), 100),),
    )
    assert expected == decode_pod(pod.json()).affinity


# Selectors.


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, NOTHING, id="null-matches-nothing"),
        pytest.param({}, EVERYTHING, id="empty-matches-everything"),
        pytest.param({"matchLabels": None, "matchExpressions": None}, EVERYTHING, id="null-members"),
        pytest.param(
            {"matchLabels": {"z": "", "b": "1"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
            parse_selector({"z": "", "b": "1"}, [("a", "Exists", [])]),
            id="labels-and-expressions",
        ),
    ],
)
def test_a_label_selector_is_read(selector: Object | None, expected: Selector) -> None:
    made = {"topologyKey": "zone", "labelSelector": selector, "namespaceSelector": selector}
    assert (matcher_of(made).selector, matcher_of(made).namespace_selector) == (expected, expected)


# Namespaces.


@pytest.mark.parametrize(
    ("made", "names", "selector"),
    [
        pytest.param(term("zone", A), {"shop"}, NOTHING, id="neither-is-the-pods-own"),
        pytest.param({**term("zone", A), "namespaces": None}, {"shop"}, NOTHING, id="null-is-neither"),
        pytest.param({**term("zone", A), "namespaces": []}, {"shop"}, NOTHING, id="empty-is-neither"),
        pytest.param(term("zone", A, namespaces=["x", "y", "x"]), {"x", "y"}, NOTHING, id="names"),
        pytest.param(term("zone", A, namespace_selector={}), set(), EVERYTHING, id="every-namespace"),
        pytest.param(term("zone", A, namespace_selector=A), set(), SELECTS_A, id="selector"),
        pytest.param(term("zone", A, namespaces=["x"], namespace_selector=A), {"x"}, SELECTS_A, id="both"),
    ],
)
def test_the_namespaces_of_a_term(made: Object, names: set[str], selector: Selector) -> None:
    assert PodMatcher(frozenset(names), selector, SELECTS_A) == matcher_of(made)


@pytest.mark.parametrize("without", [{}, {"podAffinityTerm": None}], ids=["absent", "null"])
def test_a_preference_without_a_term_matches_no_pod_in_no_topology(without: Object) -> None:
    expected = AffinityTerm(PodMatcher(frozenset({"shop"}), NOTHING, NOTHING), "")
    (only,) = affinity_of({"podAntiAffinity": {PREFERRED: [{"weight": 5, **without}]}}).preferred_anti_affinity
    assert WeightedAffinityTerm(expected, 5) == only


# The memo.


def test_the_same_bytes_in_another_namespace_are_another_affinity() -> None:
    pod = make_pod("p").required_affinity(term("zone", A))
    one, other = decode_pod(pod.in_namespace("x").json()).affinity, decode_pod(pod.in_namespace("y").json()).affinity
    assert one.required_affinity[0].matcher.namespaces == {"x"}
    assert other.required_affinity[0].matcher.namespaces == {"y"}


def test_differently_written_but_equal_terms_are_equal() -> None:
    written = affinity_of({"podAffinity": {REQUIRED: [term("zone", A)]}})
    spelled_out = affinity_of({"podAffinity": {REQUIRED: [{**term("zone", expressed("app", "In", "a")), "x": 1}]}})
    assert written == spelled_out
    assert hash(written) == hash(spelled_out)


# Broken terms.


def test_a_broken_selector_is_named_by_its_path_with_upstreams_words() -> None:
    for member in ("labelSelector", "namespaceSelector"):
        field = f"podAffinity.{REQUIRED}[0].{member}.matchExpressions[0].operator"
        expected = TermError("requiredAffinityTerms", field, NEAR_MESSAGE)
        assert affinity_of({"podAffinity": {REQUIRED: [{"topologyKey": "zone", member: NEAR}]}}).errors == (expected,)


def test_only_the_list_with_a_broken_term_is_lost_and_each_broken_list_is_named_once() -> None:
    pod = (
        make_pod("p")
        .in_namespace("shop")
        .required_affinity(term("zone", A), term("zone", NEAR), term("zone", expressed("app", "In")))
        .required_anti_affinity(term("zone", A))
        .preferred_affinity(1, term("zone", A))
        .preferred_anti_affinity(1, term("zone", A, namespace_selector=NEAR))
    )
    affinity = decode_pod(pod.json()).affinity
    good = AffinityTerm(PodMatcher(frozenset({"shop"}), NOTHING, SELECTS_A), "zone")
    assert affinity.required_anti_affinity == (good,)
    assert affinity.preferred_affinity == (WeightedAffinityTerm(good, 1),)
    assert (affinity.required_affinity, affinity.preferred_anti_affinity) == ((), ())
    assert [each.field.partition("[")[0] for each in affinity.errors] == [
        f"podAffinity.{REQUIRED}",
        f"podAntiAffinity.{PREFERRED}",
    ]
    assert affinity.parse_error == (
        f"[requiredAffinityTerms: {NEAR_MESSAGE}, preferredAntiAffinityTerms: {NEAR_MESSAGE}]"
    )
    others = make_pod("p").required_anti_affinity(term("zone", NEAR)).preferred_affinity(1, term("zone", NEAR))
    assert decode_pod(others.json()).affinity.parse_error == (
        f"[requiredAntiAffinityTerms: {NEAR_MESSAGE}, preferredAffinityTerms: {NEAR_MESSAGE}]"
    )


# Affinity to nodes.


IN_A = expressed("zone", "In", "a")
IN_B = expressed("zone", "In", "b")
NEAR_A = expressed("zone", "Near", "a")


def selector(*zones: str) -> NodeSelector:
    return parse_node_selector([([("zone", "In", [zone])], ()) for zone in zones])


def preferred(weight: int, zone: str) -> PreferredTerm:
    return PreferredTerm(weight, selector(zone).terms[0])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            make_pod("p").node_selector({"disk": "ssd"}).required_affinity(term("zone")),
            NodeAffinity(selector_from_set({"disk": "ssd"})),
            id="node-selector-beside-affinity-to-pods",
        ),
        pytest.param(make_pod("p").required_affinity(term("zone")), NO_NODE_AFFINITY, id="only-affinity-to-pods"),
        pytest.param(
            make_pod("p").required_node_affinity({}, IN_A, IN_B),
            NodeAffinity(required=selector("a", "b")),
            id="required-and-an-empty-term",
        ),
        pytest.param(
            make_pod("p").required_node_affinity(),
            NodeAffinity(required=NodeSelector()),
            id="required-without-terms",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(5, IN_A).preferred_node_affinity(-2, IN_B),
            NodeAffinity(preferred=(preferred(-2, "b"), preferred(5, "a"))),
            id="preferred",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(0, NEAR_A).preferred_node_affinity(1, {}),
            NodeAffinity(empty_preferences=True),
            id="preferred-of-no-weight-and-empty",
        ),
        pytest.param(
            make_pod("p").preferred_node_affinity(1, IN_A).preferred_node_affinity(1, IN_A),
            NodeAffinity(preferred=(preferred(1, "a"), preferred(1, "a"))),
            id="preferred-twice-counts-twice",
        ),
    ],
)
def test_what_a_pod_asks_of_its_node_is_read(pod: PodBuilder, expected: NodeAffinity) -> None:
    assert expected == node_affinity_of(pod)


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
            make_pod("p").preferred_node_affinity(1, IN_A).preferred_node_affinity(1, IN_B),
            make_pod("p").preferred_node_affinity(1, IN_B).preferred_node_affinity(1, IN_A),
            id="preferred-terms",
        ),
    ],
)
def test_the_order_is_irrelevant(one: PodBuilder, other: PodBuilder) -> None:
    assert (node_affinity_of(one), hash(node_affinity_of(one))) == (
        node_affinity_of(other),
        hash(node_affinity_of(other)),
    )


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
    assert expected == node_affinity_of(make_pod("p").required_node_affinity(*terms)).node_names


# What is broken.


def test_a_broken_required_term_matches_nothing_and_the_others_stand() -> None:
    affinity = node_affinity_of(make_pod("p").required_node_affinity(NEAR_A, IN_A))
    assert affinity.matches({"zone": "a"}, "n")
    assert not affinity.matches({"zone": "b"}, "n")


def test_broken_preferred_terms_keep_their_errors_in_their_order_by_their_index() -> None:
    pod = (
        make_pod("p")
        .preferred_node_affinity(0, NEAR_A)
        .preferred_node_affinity(9, NEAR_A)
        .preferred_node_affinity(5, IN_A)
        .preferred_node_affinity(1, named("In"))
    )
    operators = '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    expected = (
        f'[[1].matchExpressions[0].operator: Unsupported value: "Near": supported values: {operators}, '
        "[3].matchFields[0].values: Invalid value: null: must have one element]"
    )
    affinity = node_affinity_of(pod)
    assert expected == affinity.preferred_error
    assert [each.weight for each in affinity.preferred] == [9, 5, 1]


# Tolerations and spread constraints.


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
            Toleration("k", "Equal", "v", "NoSchedule"),
            id="all-members",
        ),
        pytest.param({"operator": "Exists"}, Toleration(operator="Exists"), id="exists"),
        pytest.param({"key": "k", "operator": ""}, Toleration("k", "Equal"), id="no-operator-is-equal"),
        pytest.param({}, Toleration(), id="empty"),
        pytest.param({"key": "k", "tolerationSeconds": 300}, Toleration("k"), id="how-long-is-not-read"),
    ],
)
def test_a_toleration_is_what_the_taint_is_held_against(wire: Object, expected: Toleration) -> None:
    assert pod_with(tolerations=[wire, wire]).tolerations == {expected}


def zone(**members: object) -> Object:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **members}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(zone(), SpreadConstraint(1, "zone"), id="what-is-left-open"),
        pytest.param(
            {
                "maxSkew": 5,
                "topologyKey": "host",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": A,
                "minDomains": 3,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["b", "a", "b"],
            },
            SpreadConstraint(5, "host", SCHEDULE_ANYWAY, SELECTS_A, "", 3, IGNORE, HONOR, match_label_keys=("a", "b")),
            id="all-members",
        ),
        pytest.param(zone(labelSelector={}), SpreadConstraint(1, "zone", selector=EVERYTHING), id="empty-selector"),
        pytest.param({}, SpreadConstraint(0, "", ""), id="nothing-said"),
    ],
)
def test_a_constraint_is_what_the_plugin_makes_of_it(wire: Object, expected: SpreadConstraint) -> None:
    assert pod_with(topologySpreadConstraints=[zone(), wire]).spread == (SpreadConstraint(1, "zone"), expected)


def test_a_broken_selector_selects_nothing_and_says_why() -> None:
    (broken, sound) = pod_with(topologySpreadConstraints=[zone(labelSelector=NEAR), zone(labelSelector=A)]).spread
    assert (broken.selector, broken.selector_error) == (NOTHING, NEAR_MESSAGE)
    assert (sound.selector, sound.selector_error) == (SELECTS_A, "")


# The memos.


@pytest.mark.parametrize(
    ("member", "spec"),
    [
        ("affinity", make_pod("p").required_affinity(term("zone", A, namespaces=["n" * 60] * 200)).obj()["spec"]),
        ("node_affinity", {"nodeSelector": {f"key-{number}": "v" * 60 for number in range(150)}}),
        ("tolerations", {"tolerations": [{"key": f"key-{number}", "value": "v" * 60} for number in range(100)]}),
        ("spread", {"topologySpreadConstraints": [zone(topologyKey="z" * 5000)]}),
    ],
)
def test_what_is_too_long_for_the_memo_is_read_all_the_same(member: str, spec: Object) -> None:
    one, other = (getattr(pod_with(**spec), member) for _ in "12")
    assert one == other
    assert one is not other
