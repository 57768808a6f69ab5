"""Affinity terms to the core's values: selectors, namespaces, the memo, and terms that are broken."""

import json

import pytest

from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from core.objects.affinity import AffinityTerm, PodAffinity, PodMatcher, TermError, WeightedAffinityTerm
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from tests.builders import PREFERRED, REQUIRED, Object, PodBuilder, expressed, labelled, make_pod, term

A = labelled(app="a")
SELECTS_A = Selector((Requirement("app", Operator.IN, ("a",)),))
NEAR = expressed("app", "Near")
NEAR_MESSAGE = '"Near" is not a valid label selector operator'
NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"


def affinity_of(terms: Object) -> PodAffinity:
    return decode_pod(
        json.dumps({**make_pod("p").in_namespace("shop").obj(), "spec": {"affinity": terms}}).encode()
    ).affinity


def matcher_of(made: Object) -> PodMatcher:
    affinity = affinity_of({"podAffinity": {REQUIRED: [made]}})
    assert affinity.errors == ()
    (only,) = affinity.required_affinity
    return only.matcher


def errors_of(made: Object) -> tuple[TermError, ...]:
    return affinity_of({"podAffinity": {REQUIRED: [made]}}).errors


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
        pytest.param({"matchLabels": {}, "matchExpressions": []}, EVERYTHING, id="empty-members"),
        pytest.param(A, SELECTS_A, id="match-labels"),
        pytest.param(
            expressed("k", "In", "b", "a", "b"),
            Selector((Requirement("k", Operator.IN, ("a", "b")),)),
            id="in",
        ),
        pytest.param(expressed("k", "NotIn", "a"), Selector((Requirement("k", Operator.NOT_IN, ("a",)),)), id="not-in"),
        pytest.param(expressed("k", "Exists"), Selector((Requirement("k", Operator.EXISTS),)), id="exists"),
        pytest.param(
            {"matchExpressions": [{"key": "k", "operator": "DoesNotExist", "values": None}]},
            Selector((Requirement("k", Operator.DOES_NOT_EXIST),)),
            id="does-not-exist",
        ),
        pytest.param(
            {"matchLabels": {"z": "", "b": "1"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]},
            Selector(
                (
                    Requirement("a", Operator.EXISTS),
                    Requirement("b", Operator.IN, ("1",)),
                    Requirement("z", Operator.IN, ("",)),
                )
            ),
            id="labels-and-expressions",
        ),
    ],
)
def test_a_label_selector_is_read_with_every_operator(selector: Object | None, expected: Selector) -> None:
    made = {"topologyKey": "zone", "labelSelector": selector, "namespaceSelector": selector}
    assert expected == matcher_of(made).selector
    assert expected == matcher_of(made).namespace_selector


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


def test_a_term_of_a_pod_without_a_namespace_speaks_of_the_default_one() -> None:
    pod = make_pod("p").required_affinity(term("zone", A)).obj()
    del pod["metadata"]["namespace"]
    (only,) = decode_pod(json.dumps(pod).encode()).affinity.required_affinity
    assert only.matcher.namespaces == {"default"}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({}, 0, id="absent"),
        pytest.param({"weight": None}, 0, id="null"),
        pytest.param({"weight": 2**31 - 1}, 2**31 - 1, id="largest"),
        pytest.param({"weight": -(2**31)}, -(2**31), id="smallest"),
    ],
)
def test_the_weight_is_an_int32_and_zero_when_it_is_not_there(members: Object, expected: int) -> None:
    affinity = affinity_of({"podAffinity": {PREFERRED: [{"podAffinityTerm": term("zone", A), **members}]}})
    assert [expected] == [each.weight for each in affinity.preferred_affinity]


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


def test_an_affinity_too_long_for_the_memo_is_read_all_the_same() -> None:
    names = [f"namespace-{number}" for number in range(2000)]
    pod = make_pod("p").required_affinity(term("zone", A, namespaces=names))
    affinity = decode_pod(pod.json()).affinity
    assert affinity == decode_pod(pod.json()).affinity
    assert affinity.required_affinity[0].matcher.namespaces == set(names)


def test_differently_written_but_equal_terms_are_equal() -> None:
    written = affinity_of({"podAffinity": {REQUIRED: [term("zone", A)]}})
    spelled_out = affinity_of({"podAffinity": {REQUIRED: [{**term("zone", expressed("app", "In", "a")), "x": 1}]}})
    assert written == spelled_out
    assert hash(written) == hash(spelled_out)


# Broken terms.


@pytest.mark.parametrize(
    ("selector", "path", "message"),
    [
        pytest.param(NEAR, "matchExpressions[0].operator", NEAR_MESSAGE, id="unknown-operator"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "in", "values": ["a"]}]},
            "matchExpressions[0].operator",
            '"in" is not a valid label selector operator',
            id="operator-in-small-letters",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "app"}]},
            "matchExpressions[0].operator",
            '"" is not a valid label selector operator',
            id="no-operator",
        ),
        pytest.param(expressed("app", "In"), "matchExpressions[0]", NO_VALUES, id="in-nothing"),
        pytest.param(
            {"matchExpressions": [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "NotIn"}]},
            "matchExpressions[1]",
            NO_VALUES,
            id="second-expression",
        ),
        pytest.param(
            expressed("app", "Exists", "a"),
            "matchExpressions[0]",
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
            id="exists-with-values",
        ),
        pytest.param(
            {"matchLabels": {"app": "-"}},
            "matchLabels[app]",
            'values[0][app]: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            id="label-value",
        ),
        pytest.param(
            {"matchLabels": {"a" * 64: "x"}},
            f"matchLabels[{'a' * 64}]",
            f'key: Invalid value: "{"a" * 64}": name part must be no more than 63 characters',
            id="label-key",
        ),
    ],
)
def test_a_broken_selector_is_named_by_its_path_with_upstreams_words(selector: Object, path: str, message: str) -> None:
    for member in ("labelSelector", "namespaceSelector"):
        field = f"podAffinity.{REQUIRED}[0].{member}.{path}"
        expected = TermError("requiredAffinityTerms", field, message)
        assert (expected,) == errors_of({"topologyKey": "zone", member: selector})


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
    expected = PodAffinity(
        required_anti_affinity=(good,),
        preferred_affinity=(WeightedAffinityTerm(good, 1),),
        errors=(
            TermError(
                "requiredAffinityTerms",
                f"podAffinity.{REQUIRED}[1].labelSelector.matchExpressions[0].operator",
                NEAR_MESSAGE,
            ),
            TermError(
                "preferredAntiAffinityTerms",
                f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.namespaceSelector.matchExpressions[0].operator",
                NEAR_MESSAGE,
            ),
        ),
    )
    assert expected == affinity
    assert affinity.parse_error == (
        f"[requiredAffinityTerms: {NEAR_MESSAGE}, preferredAntiAffinityTerms: {NEAR_MESSAGE}]"
    )


@pytest.mark.parametrize(
    ("group", "pod"),
    [
        ("requiredAffinityTerms", make_pod("p").required_affinity(term("zone", NEAR))),
        ("requiredAntiAffinityTerms", make_pod("p").required_anti_affinity(term("zone", NEAR))),
        ("preferredAffinityTerms", make_pod("p").preferred_affinity(1, term("zone", NEAR))),
        ("preferredAntiAffinityTerms", make_pod("p").preferred_anti_affinity(1, term("zone", NEAR))),
    ],
    ids=["required-affinity", "required-anti-affinity", "preferred-affinity", "preferred-anti-affinity"],
)
def test_a_broken_list_goes_by_upstreams_name(group: str, pod: PodBuilder) -> None:
    affinity = decode_pod(pod.json()).affinity
    assert affinity.parse_error == f"{group}: {NEAR_MESSAGE}"


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(
            {PREFERRED: [{"weight": 1}, {"weight": 2**31}]},
            f"{PREFERRED}[1].weight: expected int <= 2147483647",
            id="weight-too-large",
        ),
        pytest.param(
            {PREFERRED: [{"weight": -(2**31) - 1}]},
            f"{PREFERRED}[0].weight: expected int >= -2147483648",
            id="weight-too-small",
        ),
        pytest.param(
            {PREFERRED: [{"weight": 1.5}]}, f"{PREFERRED}[0].weight: expected int | null, got float", id="weight-float"
        ),
        pytest.param(
            {PREFERRED: [{"weight": "1"}]}, f"{PREFERRED}[0].weight: expected int | null, got str", id="weight-string"
        ),
        pytest.param(
            {REQUIRED: [{"topologyKey": 1}]}, f"{REQUIRED}[0].topologyKey: expected str | null, got int", id="key"
        ),
        pytest.param(
            {REQUIRED: [{"namespaces": "x"}]}, f"{REQUIRED}[0].namespaces: expected array | null, got str", id="names"
        ),
        pytest.param(
            {REQUIRED: [{"labelSelector": {"matchExpressions": [{"values": [1]}]}}]},
            f"{REQUIRED}[0].labelSelector.matchExpressions[0].values[0]: expected str, got int",
            id="values",
        ),
        pytest.param({REQUIRED: ["near"]}, f"{REQUIRED}[0]: expected object, got str", id="term"),
    ],
)
def test_a_term_of_the_wrong_type_breaks_the_whole_pod(terms: Object, expected: str) -> None:
    for member in ("podAffinity", "podAntiAffinity"):
        with pytest.raises(DecodeError) as caught:
            affinity_of({member: terms})
        assert f"spec.affinity.{member}.{expected}" == str(caught.value)
