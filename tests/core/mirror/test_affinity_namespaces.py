"""Term counters by namespace: which pods a term reaches, and which counters the event of a Namespace recounts."""

from collections.abc import Mapping, Sequence

import pytest

from core.events import Action
from tests.builders import Object, labelled, make_namespace, make_pod, term
from tests.core.decoded import Builder, mirror_of, tell
from tests.core.mirror.affinity_terms import (
    EVERYWHERE,
    NODES,
    NOT_BLUE,
    NOT_WEB,
    RED,
    RED_OR_NAMED,
    UNRELATED,
    WEB,
    WEB_FRONT,
    WEB_POD,
    X,
    match_counter,
    owners,
)


@pytest.mark.parametrize(
    ("listed", "action", "told", "recounted"),
    [
        pytest.param([], "Add", X, {"not-blue"}, id="namespace-appears-without-labels"),
        pytest.param([], "Add", X.label("team", "red"), {"red", "not-blue"}, id="namespace-appears-selected"),
        pytest.param([], "Add", X.label("team", "blue"), set(), id="namespace-appears-not-selected"),
        pytest.param([X], "Update", X.label("team", "red"), {"red"}, id="namespace-becomes-selected"),
        pytest.param([X], "Update", X.label("team", "blue"), {"not-blue"}, id="namespace-is-no-longer-selected"),
        pytest.param([X], "Update", X.label("env", "prod"), set(), id="other-label"),
        pytest.param([X], "Update", X, set(), id="nothing-changed"),
        pytest.param([X.label("team", "red")], "Delete", X, {"red", "not-blue"}, id="namespace-goes"),
        pytest.param([X.label("team", "blue")], "Delete", X, set(), id="namespace-goes-that-none-selected"),
        pytest.param([], "Delete", X, set(), id="unknown-namespace-goes"),
    ],
)
def test_a_namespace_event_recounts_only_what_reaches_it_or_did(
    listed: Sequence[Builder], action: Action, told: Builder, recounted: set[str]
) -> None:
    mirror = mirror_of(*NODES, *listed, WEB_POD.in_namespace("x").on("na"))
    terms = {"unrelated": UNRELATED, "red": RED, "not-blue": NOT_BLUE, "all": EVERYWHERE, "red-or-x": RED_OR_NAMED}
    counters = {name: match_counter(mirror, v1_term) for name, v1_term in terms.items()}
    counts = {name: counter.counts for name, counter in counters.items()}
    tell(mirror, action, told)
    assert recounted == {name for name, counter in counters.items() if counter.counts is not counts[name]}
    assert mirror.affinity.audit() == []


def test_a_namespace_event_that_one_of_several_terms_sees_recounts_them_together() -> None:
    mirror = mirror_of(*NODES, X, WEB_POD.in_namespace("x").on("na"))
    counter = match_counter(mirror, RED, EVERYWHERE)
    before = counter.version
    assert counter.by_value() == {}
    tell(mirror, "Update", X.label("team", "red"))
    assert counter.by_value() == {"a": 1}
    assert counter.version != before


@pytest.mark.parametrize(
    ("v1_term", "namespace", "labels", "expected"),
    [
        pytest.param(WEB, "default", {"app": "web"}, True, id="own-namespace"),
        pytest.param(WEB, "other", {"app": "web"}, False, id="other-namespace"),
        pytest.param(WEB, "default", {"app": "db"}, False, id="other-label"),
        pytest.param(WEB_FRONT, "default", {"app": "web"}, False, id="first-of-two-labels"),
        pytest.param(WEB_FRONT, "default", {"tier": "front"}, False, id="second-of-two-labels"),
        pytest.param(WEB_FRONT, "default", {"tier": "front", "app": "web"}, True, id="both-labels"),
        pytest.param(NOT_WEB, "default", {"app": "web"}, False, id="value-that-is-excluded"),
        pytest.param(NOT_WEB, "default", {}, True, id="no-value-where-one-is-excluded"),
        pytest.param(UNRELATED, "other", {"app": "web"}, True, id="named-namespace"),
        pytest.param(UNRELATED, "default", {"app": "web"}, False, id="own-namespace-not-named"),
        pytest.param(term("zone"), "default", {"app": "web"}, False, id="null-selector"),
        pytest.param(term("zone", labelled()), "default", {}, True, id="empty-selector"),
        pytest.param(RED, "reds", {"app": "web"}, True, id="selected-namespace"),
        pytest.param(RED, "default", {"app": "web"}, False, id="own-namespace-not-selected"),
        pytest.param(NOT_BLUE, "reds", {"app": "web"}, True, id="namespace-selected-by-another-value"),
        pytest.param(NOT_BLUE, "unlisted", {"app": "web"}, True, id="unlisted-namespace-has-no-labels"),
        pytest.param(RED, "unlisted", {"app": "web"}, False, id="unlisted-namespace-has-no-team"),
        pytest.param(EVERYWHERE, "unlisted", {"app": "web"}, True, id="unlisted-namespace-and-everything"),
        pytest.param(RED_OR_NAMED, "x", {"app": "web"}, True, id="named-or-selected-in-the-named-one"),
        pytest.param(RED_OR_NAMED, "reds", {"app": "web"}, True, id="named-or-selected-in-a-selected-one"),
    ],
)
def test_the_owners_that_a_pod_meets_are_those_whose_terms_select_it(
    v1_term: Object,
    namespace: str,
    labels: Mapping[str, str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    reds = make_namespace("reds").label("team", "red")
    mirror = mirror_of(*NODES, reds, make_pod("p").required_affinity(v1_term).on("na"))
    assert [{"a": 1}] * expected == [counter.by_value() for counter in owners(mirror, namespace, **labels)]


def test_the_labels_of_the_namespace_are_read_when_the_owners_are_asked_for() -> None:
    mirror = mirror_of(*NODES, make_pod("p").required_anti_affinity(RED).on("na"))
    assert owners(mirror, "x", app="web") == []
    tell(mirror, "Add", X.label("team", "red"))
    assert len(owners(mirror, "x", app="web")) == 1
    tell(mirror, "Update", X.label("team", "blue"))
    assert owners(mirror, "x", app="web") == []


def test_an_unlisted_namespace_is_met_by_a_negative_selector_of_an_existing_pod_only() -> None:
    mirror = mirror_of(
        *NODES, WEB_POD.in_namespace("unlisted").on("na"), make_pod("p").required_anti_affinity(NOT_BLUE).on("na")
    )
    assert [counter.by_value() for counter in owners(mirror, "unlisted", app="web")] == [{"a": 1}]
    assert match_counter(mirror, NOT_BLUE).by_value() == {}
