"""Term counters by namespace: which pods a term reaches, and which counters the event of a Namespace recounts."""

from collections.abc import Sequence

import pytest

from core.events import Action
from tests.builders import make_pod
from tests.core.decoded import Builder, mirror_of, tell
from tests.core.mirror.affinity_terms import (
    EVERYWHERE,
    NODES,
    NOT_BLUE,
    RED,
    RED_OR_NAMED,
    UNRELATED,
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


def test_an_unlisted_namespace_is_met_by_a_negative_selector_of_an_existing_pod_only() -> None:
    mirror = mirror_of(
        *NODES, WEB_POD.in_namespace("unlisted").on("na"), make_pod("p").required_anti_affinity(NOT_BLUE).on("na")
    )
    assert [counter.by_value() for counter in owners(mirror, "unlisted", app="web")] == [{"a": 1}]
    assert match_counter(mirror, NOT_BLUE).by_value() == {}
