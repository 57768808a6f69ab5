"""Raw scores over a small cluster, each rule a row, and their normalisation."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.plugins.interpodaffinity.scoring import normalized, preferences
from tests.builders import PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, mirror_of, node_of, pod_of

A1: Final = make_node("a1").label("host", "a1").label("zone", "a")
A2: Final = make_node("a2").label("host", "a2").label("zone", "a")
B1: Final = make_node("b1").label("host", "b1").label("zone", "b")
BARE: Final = make_node("bare")
CLUSTER: Final[Sequence[Builder]] = [A1, A2, B1, BARE, make_namespace("reds").label("team", "red")]
NAMES: Final = ["a1", "a2", "b1", "bare"]

WEB: Final = make_pod("web").label("app", "web")
DB: Final = make_pod("db").label("app", "db")
PICKY: Final = make_pod("picky")
BY_ZONE: Final = term("zone", labelled(app="web"))
BY_HOST: Final = term("host", labelled(app="web"))
RED_WEB: Final = term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
NOT_RED_WEB: Final = term("zone", labelled(app="web"), namespace_selector=expressed("team", "NotIn", "red"))


def raw_scores(
    pods: Sequence[PodBuilder], incoming: PodBuilder, hard_pod_affinity_weight: int = 1
) -> dict[str, int] | None:
    """Score the nodes. None if nothing was counted."""
    mirror = mirror_of(*CLUSTER, *pods)
    state = preferences(mirror, pod_of(incoming), hard_pod_affinity_weight)
    scores = dict(zip(NAMES, state.per_node(mirror.batch(NAMES)).tolist(), strict=True))
    return None if state.empty else scores


def scores_of(a1: int, a2: int, b1: int) -> Mapping[str, int]:
    return {"a1": a1, "a2": a2, "b1": b1, "bare": 0}


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param([WEB.on("a1")], PICKY.preferred_affinity(5, BY_ZONE), scores_of(5, 5, 0), id="affinity"),
        pytest.param(
            [WEB.on("a1")], PICKY.preferred_anti_affinity(5, BY_ZONE), scores_of(-5, -5, 0), id="anti-affinity"
        ),
        pytest.param(
            [WEB.on("a1"), WEB.uid("2").on("a2"), WEB.uid("3").on("b1")],
            PICKY.preferred_affinity(5, BY_ZONE),
            scores_of(10, 10, 5),
            id="every-pod-of-the-domain",
        ),
        pytest.param(
            [WEB.on("a1"), DB.on("a2")],
            PICKY.preferred_affinity(5, BY_ZONE)
            .preferred_affinity(3, BY_HOST)
            .preferred_anti_affinity(7, term("host", labelled(app="db"))),
            scores_of(8, -2, 0),
            id="keys-and-signs-add-up",
        ),
        pytest.param(
            [WEB.label("tier", "front").on("a1")],
            PICKY.preferred_affinity(5, BY_ZONE).preferred_affinity(7, term("zone", labelled(tier="front"))),
            scores_of(12, 12, 0),
            id="terms-of-one-key-add-up",
        ),
        pytest.param(
            [WEB.on("a1")],
            PICKY.preferred_affinity(5, BY_ZONE).preferred_affinity(5, BY_ZONE),
            scores_of(10, 10, 0),
            id="a-repeated-term-weighs-twice",
        ),
        pytest.param(
            [WEB.on("a1")],
            PICKY.preferred_affinity(5, BY_ZONE).preferred_anti_affinity(5, BY_ZONE),
            scores_of(0, 0, 0),
            id="weights-that-cancel-were-counted",
        ),
        pytest.param(
            [WEB.on("a1")], PICKY.preferred_affinity(0, BY_ZONE), scores_of(0, 0, 0), id="weight-zero-was-counted"
        ),
        pytest.param([DB.on("a1")], PICKY.preferred_affinity(5, BY_ZONE), None, id="no-pod-matches"),
        pytest.param([WEB.on("bare")], PICKY.preferred_affinity(5, BY_ZONE), None, id="the-pod-is-in-no-domain"),
        pytest.param([WEB.on("unknown")], PICKY.preferred_affinity(5, BY_ZONE), None, id="the-pod-is-nowhere-yet"),
        pytest.param([WEB.on("a1")], PICKY.preferred_affinity(5, term("zone")), None, id="null-selector"),
        pytest.param([WEB.on("a1")], PICKY.required_affinity(BY_ZONE), None, id="own-required-terms-do-not-score"),
        pytest.param(
            [WEB.in_namespace("reds").on("a1"), WEB.on("b1")],
            PICKY.preferred_affinity(5, RED_WEB),
            scores_of(5, 5, 0),
            id="selected-namespaces",
        ),
        pytest.param(
            [WEB.in_namespace("unlisted").on("a1")],
            PICKY.preferred_affinity(5, NOT_RED_WEB),
            None,
            id="a-negative-selector-does-not-reach-unlisted-namespaces",
        ),
    ],
)
def test_preferences_of_the_incoming_pod_score_the_domains_of_pods_that_match(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: Mapping[str, int] | None
) -> None:
    assert expected == raw_scores(pods, incoming)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param([PICKY.preferred_affinity(5, BY_ZONE).on("a1")], WEB, scores_of(5, 5, 0), id="affinity"),
        pytest.param(
            [PICKY.preferred_anti_affinity(5, BY_ZONE).on("a1")], WEB, scores_of(-5, -5, 0), id="anti-affinity"
        ),
        pytest.param([PICKY.required_affinity(BY_ZONE).on("a1")], WEB, scores_of(1, 1, 0), id="required-affinity"),
        pytest.param([PICKY.required_anti_affinity(BY_ZONE).on("a1")], WEB, None, id="not-required-anti-affinity"),
        pytest.param(
            [PICKY.required_affinity(BY_ZONE, BY_ZONE, term("zone", labelled(app="db"))).on("a1")],
            WEB,
            scores_of(2, 2, 0),
            id="each-required-term-singly",
        ),
        pytest.param(
            [
                PICKY.preferred_affinity(5, BY_HOST).uid("1").on("a1"),
                PICKY.preferred_affinity(5, BY_HOST).uid("2").on("a1"),
                PICKY.preferred_affinity(6, BY_HOST).uid("3").on("b1"),
            ],
            WEB,
            scores_of(10, 0, 6),
            id="each-pod-with-the-weight-of-its-own",
        ),
        pytest.param([PICKY.preferred_affinity(5, BY_ZONE).on("a1")], DB, None, id="not-pods-that-do-not-match"),
        pytest.param([PICKY.preferred_affinity(5, BY_ZONE).on("bare")], WEB, None, id="not-from-a-node-without-labels"),
        pytest.param(
            [PICKY.preferred_affinity(0, BY_ZONE).on("a1")], WEB, scores_of(0, 0, 0), id="weight-zero-was-counted"
        ),
        pytest.param(
            [PICKY.preferred_affinity(5, RED_WEB).on("a1")],
            WEB.in_namespace("reds"),
            scores_of(5, 5, 0),
            id="selected-namespace",
        ),
        pytest.param(
            [PICKY.preferred_affinity(5, NOT_RED_WEB).on("a1")],
            WEB.in_namespace("unlisted"),
            scores_of(5, 5, 0),
            id="a-negative-selector-reaches-unlisted-namespaces",
        ),
        pytest.param(
            [PICKY.preferred_affinity(5, BY_ZONE).on("a1")],
            WEB.on("b1"),
            scores_of(5, 5, 0),
            id="a-bound-pod-asks-alike",
        ),
    ],
)
def test_preferences_of_existing_pods_score_their_own_domains_for_pods_that_match(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: Mapping[str, int] | None
) -> None:
    assert expected == raw_scores(pods, incoming)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        pytest.param(0, None, id="zero-counts-nothing"),
        pytest.param(1, scores_of(1, 1, 0), id="one"),
        pytest.param(100, scores_of(100, 100, 0), id="the-highest"),
    ],
)
def test_required_affinity_of_existing_pods_scores_by_the_hard_weight(
    weight: int, expected: Mapping[str, int] | None
) -> None:
    assert expected == raw_scores([PICKY.required_affinity(BY_ZONE).on("a1")], WEB, weight)


def test_a_hard_weight_of_zero_leaves_preferences_alone() -> None:
    existing = PICKY.required_affinity(BY_ZONE).preferred_affinity(5, BY_HOST)
    assert raw_scores([existing.on("a1")], WEB, 0) == scores_of(5, 0, 0)


def test_own_preferences_and_those_of_existing_pods_add_up() -> None:
    existing = WEB.preferred_anti_affinity(50, BY_ZONE).required_affinity(BY_HOST).uid("1")
    incoming = WEB.preferred_affinity(7, BY_ZONE)
    assert raw_scores([existing.on("a1"), WEB.uid("2").on("b1")], incoming, 3) == scores_of(7 - 50 + 3, 7 - 50, 7)


def test_strangers_score_by_their_labels() -> None:
    mirror = mirror_of(*CLUSTER, WEB.on("a1"), PICKY.preferred_anti_affinity(2, term("host", labelled())).on("b1"))
    strangers = [make_node("s").label("zone", "a"), make_node("t").label("zone", "new").label("host", "b1")]
    names = ["s", "b1", "t", "unknown"]
    batch = mirror.batch(names, {0: node_of(strangers[0]), 2: node_of(strangers[1])})
    state = preferences(mirror, pod_of(DB.preferred_affinity(5, BY_ZONE)), 1)
    assert state.per_node(batch).tolist() == [5, -2, -2, 0]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([], [], id="no-nodes"),
        pytest.param([7], [0], id="one-node"),
        pytest.param([7, 7], [0, 0], id="all-equal"),
        pytest.param([-3, -3], [0, 0], id="all-equal-and-negative"),
        pytest.param([0, 1], [0, 100], id="lowest-and-highest"),
        pytest.param([-5, 0, 5], [0, 50, 100], id="negative"),
        pytest.param([-10, -4], [0, 100], id="only-negative"),
        pytest.param([0, 1, 2, 3], [0, 33, 66, 100], id="cut-off-and-not-rounded"),
        pytest.param([0, 199, 200], [0, 99, 100], id="cut-off-below-the-highest"),
        # 100.0 * (29 / 100) is 28.999999999999996 in Go as here: dividing last, or in integers, would give 29.
        pytest.param([0, 29, 57, 58, 100], [0, 28, 56, 57, 100], id="in-the-order-of-upstream-s-floats"),
        pytest.param([0, 3 * 10**9, 6 * 10**9], [0, 50, 100], id="more-than-32-bits"),
    ],
)
def test_raw_scores_are_spread_over_0_to_100(raw: list[int], expected: list[int]) -> None:
    assert expected == normalized(np.array(raw, np.int64)).tolist()


@settings(deadline=None)
@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_normalisation_is_what_go_computes(raw: list[int]) -> None:
    lowest, highest = min(raw), max(raw)
    expected = [int(100.0 * ((score - lowest) / (highest - lowest))) if highest > lowest else 0 for score in raw]
    assert expected == normalized(np.array(raw, np.int64)).tolist()


def test_normalisation_leaves_the_raw_scores_as_they_were() -> None:
    raw = np.array([1, 2, 3], np.int64)
    normalized(raw)
    assert raw.tolist() == [1, 2, 3]
