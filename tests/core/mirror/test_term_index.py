"""The term index never leaves out a term that selects a pod, gives none twice, and keeps nothing of removed terms."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from itertools import product
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mirror.term_index import FEW, MAX_BUCKETS, MAX_STORED, TermIndex
from core.objects.affinity import PodMatcher
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from tests.builders import Object, labelled, term
from tests.core.decoded import matcher_of

KEYS = ("app", "tier", "part-of")
VALUES = ("x", "y", "")
NAMESPACES = ("a", "b", "c")

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
demands = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(["In", "In", "NotIn"]),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
)
presences = st.tuples(st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"]), st.just(()))
selectors = st.builds(parse_selector, labels, st.lists(demands | presences, max_size=2)) | st.just(NOTHING)
TEAM_RED = parse_selector({"team": "red"}, [])
matchers = st.builds(
    PodMatcher,
    namespaces=st.frozensets(st.sampled_from(NAMESPACES), max_size=2),
    namespace_selector=st.sampled_from([NOTHING, NOTHING, EVERYTHING, TEAM_RED]),
    selector=selectors,
)


buckets = st.sampled_from([1, 2, MAX_BUCKETS])
"""Limits, of which the small ones make terms too wide for the index."""


def limited_to(most: int) -> AbstractContextManager[object]:
    return patch("core.mirror.term_index.MAX_BUCKETS", most)


def index_of(*matchers: PodMatcher) -> TermIndex[int]:
    """Index matchers by their position."""
    index: TermIndex[int] = TermIndex()
    for entry, matcher in enumerate(matchers):
        index.add(entry, matcher)
    return index


def candidates(index: TermIndex[int], namespace: str, labels: Mapping[str, str]) -> list[int]:
    return sorted(index.candidates(namespace, labels))


def may_select(matcher: PodMatcher, namespace: str, labels: Mapping[str, str]) -> bool:
    # What labels the namespace has is not known here, so any selector but the null one may select it.
    reached = namespace in matcher.namespaces or not matcher.namespace_selector.nothing
    return reached and matcher.selector.matches(labels)


@settings(deadline=None)
@given(st.lists(matchers, max_size=12), st.sampled_from(NAMESPACES), labels, buckets)
def test_every_term_that_may_select_a_pod_is_a_candidate_once(
    entered: list[PodMatcher], namespace: str, labels: dict[str, str], most: int
) -> None:
    with limited_to(most):
        found = candidates(index_of(*entered), namespace, labels)
    expected = [entry for entry, matcher in enumerate(entered) if may_select(matcher, namespace, labels)]
    assert set(expected) <= set(found)
    assert len(found) == len(set(found))


@settings(deadline=None)
@given(st.lists(matchers, min_size=1, max_size=12), st.data(), st.sampled_from(NAMESPACES), labels)
def test_a_removed_term_is_no_candidate_and_the_others_still_are(
    entered: list[PodMatcher], data: st.DataObject, namespace: str, labels: dict[str, str]
) -> None:
    index = index_of(*entered)
    before = candidates(index, namespace, labels)
    removed = data.draw(st.sets(st.integers(0, len(entered) - 1)))
    for entry in removed:
        index.remove(entry)
    assert [entry for entry in before if entry not in removed] == candidates(index, namespace, labels)


@settings(deadline=None)
@given(st.lists(matchers, max_size=12), st.randoms(use_true_random=False), buckets)
def test_nothing_is_left_when_all_terms_are_removed(entered: list[PodMatcher], random: Random, most: int) -> None:
    with limited_to(most):
        index = index_of(*entered)
    order = list(range(len(entered)))
    random.shuffle(order)
    for entry in order:
        index.remove(entry)
    left = {name: value for name, value in vars(index).items() if value}
    assert left == {}


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "team"]), matchers), max_size=12), st.lists(labels))
def test_selected_terms_are_those_of_a_look_at_all_after_each_change(
    changes: list[tuple[str, PodMatcher]], of_pods: list[dict[str, str]]
) -> None:
    index: TermIndex[int] = TermIndex()
    entered: dict[int, PodMatcher] = {}
    team = "red"

    def selects(entry: int, namespace: str, labels: Mapping[str, str]) -> bool:
        matcher = entered[entry]
        reached = namespace in matcher.namespaces or matcher.namespace_selector.matches({"team": team})
        return reached and matcher.selector.matches(labels)

    for number, (change, matcher) in enumerate(changes):
        if change == "team":
            team = {"red": "blue", "blue": "red"}[team]
            index.forget()
        elif change == "remove" and entered:
            entry, _ = entered.popitem()
            index.remove(entry)
        else:
            entered[number] = matcher
            index.add(number, matcher)
        for namespace, labels in product(NAMESPACES, of_pods):
            found = index.selected(namespace, labels, partial(selects, namespace=namespace, labels=labels))
            assert sorted(found) == [entry for entry in entered if selects(entry, namespace, labels)]


def test_terms_are_compared_once_with_pods_that_have_the_same_labels() -> None:
    index, labels = index_of(matcher_of(term("zone", labelled(app="x")))), {"app": "x"}
    compared: list[int] = []

    def selects(entry: int) -> bool:
        compared.append(entry)
        return True

    for each in (labels, labels, {**labels}):
        assert list(index.selected("default", each, selects)) == [0]
    assert compared == [0, 0], "once for the labels, and once for other ones that are equal"
    assert list(index.selected("elsewhere", labels, lambda _: True)) == []


@pytest.mark.parametrize(
    ("pods", "labels", "terms"),
    [
        pytest.param(3 * MAX_STORED, 1, 1, id="of-many-pods"),
        pytest.param(1, FEW + 1, 1, id="for-many-labels"),
        pytest.param(1, 1, FEW + 1, id="of-many-terms"),
    ],
)
def test_no_more_is_kept_than_allowed(pods: int, labels: int, terms: int) -> None:
    index = index_of(*[matcher_of(term("zone", labelled())) for _ in range(terms)])
    of_pods = [{f"{pod}-{label}": "" for label in range(labels)} for pod in range(pods)]
    for each in of_pods:
        assert len(index.selected("default", each, lambda _: True)) == terms
    assert len(index._stored) == (MAX_STORED if pods > 1 else 0)  # noqa: SLF001 - what it takes


NAMES = [f"name-{number}" for number in range(MAX_BUCKETS + 1)]
WIDE = [
    pytest.param(NAMES[:8], NAMES[:8], 64, [], id="under-each-namespace-and-value"),
    pytest.param(NAMES[:8], NAMES[:9], 9, [("elsewhere", "name-0")], id="under-its-values-in-any-namespace"),
    pytest.param(NAMES[:8], NAMES, 8, [("name-0", "other")], id="under-its-namespaces-with-any-labels"),
    pytest.param(NAMES, NAMES, 1, [("name-0", "other"), ("elsewhere", "name-0"), ("elsewhere", "other")], id="apart"),
]


@pytest.mark.parametrize(("namespaces", "values", "buckets", "too_many"), WIDE)
def test_a_wide_term_takes_no_more_buckets_than_allowed_and_is_a_candidate_for_more_pods(
    namespaces: list[str], values: list[str], buckets: int, too_many: list[tuple[str, str]]
) -> None:
    index = index_of(PodMatcher(frozenset(namespaces), NOTHING, parse_selector({}, [("app", "In", values)])))
    assert buckets == sum(len(entries) for of in index._buckets.values() for entries in of.values())  # noqa: SLF001 - what it takes
    pods = [(namespace, app) for namespace in ("name-0", "elsewhere") for app in ("name-0", "other")]
    found = [(namespace, app) for namespace, app in pods if candidates(index, namespace, {"app": app})]
    assert [pod for pod in pods if pod in [("name-0", "name-0"), *too_many]] == found


def test_a_rare_label_keeps_terms_away_from_pods_that_share_only_a_common_one() -> None:
    def demanding(number: int) -> Selector:
        return parse_selector({"part-of": "shop", "app": f"app-{number}"}, [])

    index = index_of(*(PodMatcher(frozenset({"a"}), NOTHING, demanding(number)) for number in range(50)))
    assert len(candidates(index, "a", {"part-of": "shop", "app": "none"})) <= 1
    assert 7 in candidates(index, "a", {"part-of": "shop", "app": "app-7"})


@pytest.mark.parametrize(
    ("v1_term", "namespace", "labels"),
    [
        pytest.param(term("zone", labelled()), "default", {"": ""}, id="label-with-an-empty-key-and-value"),
        pytest.param(term("zone", labelled(), namespaces=["", "a"]), "a", {}, id="term-with-an-empty-namespace"),
    ],
)
def test_names_that_no_api_server_admits_give_no_candidate_twice(
    v1_term: Object, namespace: str, labels: Mapping[str, str]
) -> None:
    assert candidates(index_of(matcher_of(v1_term)), namespace, labels) == [0]
