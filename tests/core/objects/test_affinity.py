"""Affinity terms as values: which of them are the same, and what is told of those that could not be parsed."""

import pytest

from core.objects.affinity import NO_AFFINITY, AffinityTerm, PodAffinity, TermError, WeightedAffinityTerm
from tests.builders import Object, PodBuilder, expressed, labelled, make_pod, term
from tests.core.decoded import matcher_of, pod_of

POD = make_pod("p")
WEB = term("zone", labelled(app="web"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(WEB, term("zone", expressed("app", "In", "web")), id="label-or-expression"),
        pytest.param(
            term("zone", labelled(), namespaces=["a", "b"]),
            term("zone", labelled(), namespaces=["b", "a", "b"]),
            id="order-and-repetition-of-namespaces",
        ),
        pytest.param(WEB, term("zone", labelled(app="web"), namespaces=["default"]), id="the-own-namespace-named"),
    ],
)
def test_terms_that_ask_the_same_are_one_value(one: Object, other: Object) -> None:
    expected, got = matcher_of(one), matcher_of(other)
    assert (expected, hash(expected)) == (got, hash(got))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(term("zone", labelled(app="db")), id="selector"),
        pytest.param(term("zone"), id="null-selector"),
        pytest.param(term("zone", labelled()), id="empty-selector"),
        pytest.param(term("zone", labelled(app="web"), namespaces=["other"]), id="namespaces"),
        pytest.param(term("zone", labelled(app="web"), namespace_selector=labelled()), id="namespace-selector"),
        pytest.param(
            term("zone", labelled(app="web"), namespaces=["default"], namespace_selector=labelled()),
            id="namespaces-and-namespace-selector",
        ),
    ],
)
def test_terms_that_speak_of_other_pods_are_other_values(other: Object) -> None:
    assert matcher_of(WEB) != matcher_of(other)


def test_a_term_without_namespaces_speaks_of_those_of_the_pod_that_carries_it() -> None:
    assert matcher_of(WEB, "a") != matcher_of(WEB, "b")
    assert matcher_of(WEB, "a").namespaces == {"a"}


def test_an_empty_namespace_selector_keeps_the_own_namespace_out_of_the_names() -> None:
    assert matcher_of(term("zone", labelled(), namespace_selector=labelled())).namespaces == frozenset()


def test_a_term_differs_by_its_key_and_a_preference_by_its_weight() -> None:
    matcher = matcher_of(WEB)
    zone, host = AffinityTerm(matcher, "zone"), AffinityTerm(matcher, "host")
    assert zone != host
    assert WeightedAffinityTerm(zone, 1) != WeightedAffinityTerm(zone, 2)
    assert len({WeightedAffinityTerm(zone, 1), WeightedAffinityTerm(AffinityTerm(matcher, "zone"), 1)}) == 1


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(POD.required_affinity(WEB), id="required-affinity"),
        pytest.param(POD.required_anti_affinity(WEB), id="required-anti-affinity"),
        pytest.param(POD.preferred_affinity(1, WEB), id="preferred-affinity"),
        pytest.param(POD.preferred_anti_affinity(1, WEB), id="preferred-anti-affinity"),
    ],
)
def test_the_list_in_which_a_term_stands_is_part_of_the_value(one: PodBuilder) -> None:
    others = [
        POD,
        POD.required_affinity(WEB),
        POD.required_anti_affinity(WEB),
        POD.preferred_affinity(1, WEB),
        POD.preferred_anti_affinity(1, WEB),
    ]
    assert [pod_of(one).affinity == pod_of(other).affinity for other in others].count(True) == 1


def test_no_affinity_has_no_error_to_tell() -> None:
    assert NO_AFFINITY.parse_error == ""
    assert PodAffinity() == NO_AFFINITY


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param(
            [TermError("requiredAffinityTerms", "podAffinity[0]", "broken")],
            "requiredAffinityTerms: broken",
            id="one-stands-bare",
        ),
        pytest.param(
            [
                TermError("requiredAffinityTerms", "podAffinity[0]", "broken"),
                TermError("preferredAntiAffinityTerms", "podAntiAffinity[0]", "broken"),
            ],
            "[requiredAffinityTerms: broken, preferredAntiAffinityTerms: broken]",
            id="the-same-in-two-lists-is-told-twice",
        ),
        pytest.param(
            [TermError("requiredAffinityTerms", "", "[one, two]")],
            "requiredAffinityTerms: [one, two]",
            id="an-aggregate-inside-keeps-its-brackets",
        ),
    ],
)
def test_the_parse_error_names_each_broken_list(errors: list[TermError], expected: str) -> None:
    assert expected == PodAffinity(errors=tuple(errors)).parse_error
