"""Verdicts over a small cluster, each rule a row: what exists, who comes, and which nodes refuse it for what."""

from collections.abc import Sequence
from typing import Final

import pytest

from core.framework.status import SUCCESS, Status
from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.filtering import (
    AFFINITY_RULES,
    ANTI_AFFINITY_RULES,
    EXISTING_ANTI_AFFINITY_RULES,
    PreFilterState,
)
from tests.builders import PodBuilder, expressed, labelled, make_namespace, make_node, make_pod, term
from tests.core.decoded import Builder, mirror_of, node_of, pod_of, tell

# Two nodes share a zone, one has another, one has none, one has no labels at all.
A1: Final = make_node("a1").label("host", "a1").label("zone", "a").label("rack", "1")
A2: Final = make_node("a2").label("host", "a2").label("zone", "a")
B1: Final = make_node("b1").label("host", "b1").label("zone", "b")
ZONELESS: Final = make_node("zoneless").label("host", "zoneless")
BARE: Final = make_node("bare")
CLUSTER: Final[Sequence[Builder]] = [
    A1,
    A2,
    B1,
    ZONELESS,
    BARE,
    make_namespace("default"),
    make_namespace("reds").label("team", "red"),
    make_namespace("blues").label("team", "blue"),
]
NAMES: Final = ["a1", "a2", "b1", "zoneless", "bare"]

WEB: Final = make_pod("web").label("app", "web")
DB: Final = make_pod("db").label("app", "db")
SEEKER: Final = make_pod("seeker")
BY_ZONE: Final = term("zone", labelled(app="web"))
BY_HOST: Final = term("host", labelled(app="web"))
NOT_RED: Final = expressed("team", "NotIn", "red")


def affinity(*nodes: str) -> dict[str, Status]:
    return dict.fromkeys(nodes, AFFINITY_RULES)


def anti_affinity(*nodes: str) -> dict[str, Status]:
    return dict.fromkeys(nodes, ANTI_AFFINITY_RULES)


def existing(*nodes: str) -> dict[str, Status]:
    return dict.fromkeys(nodes, EXISTING_ANTI_AFFINITY_RULES)


def refusals(mirror: ClusterMirror, incoming: PodBuilder, names: Sequence[str] = NAMES) -> dict[str, Status]:
    """Filter and give the statuses of the nodes that do not pass."""
    verdicts = PreFilterState(mirror, pod_of(incoming)).judge(mirror.batch(names))
    statuses = {name: verdicts.status(position) for position, name in enumerate(names)}
    return {name: status for name, status in statuses.items() if status != SUCCESS}


def check(pods: Sequence[PodBuilder], incoming: PodBuilder, expected: dict[str, Status]) -> None:
    assert expected == refusals(mirror_of(*CLUSTER, *pods), incoming)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param(
            [WEB.on("a1")],
            SEEKER.required_affinity(BY_ZONE),
            affinity("b1", "zoneless", "bare"),
            id="nodes-of-the-domain-pass",
        ),
        pytest.param([DB.on("a1")], SEEKER.required_affinity(BY_ZONE), affinity(*NAMES), id="no-pod-is-sought"),
        pytest.param(
            [WEB.on("a1"), DB.uid("2").on("b1")],
            SEEKER.required_affinity(BY_ZONE, term("host", expressed("app", "Exists"))),
            affinity("a2", "b1", "zoneless", "bare"),
            id="terms-are-met-together-by-one-pod",
        ),
        pytest.param(
            [WEB.on("a1"), make_pod("front").label("tier", "front").on("a1")],
            SEEKER.required_affinity(BY_ZONE, term("zone", labelled(tier="front"))),
            affinity(*NAMES),
            id="two-pods-that-meet-one-term-each-do-not-meet-both",
        ),
        pytest.param(
            [WEB.on("a1"), WEB.uid("2").on("b1")],
            SEEKER.required_affinity(BY_ZONE, term("rack", labelled(app="web"))),
            affinity("a2", "b1", "zoneless", "bare"),
            id="every-key-must-be-on-the-node",
        ),
        pytest.param(
            [WEB.on("a1"), WEB.uid("2").on("b1")],
            SEEKER.required_affinity(BY_ZONE, BY_HOST),
            affinity("a2", "zoneless", "bare"),
            id="every-domain-must-have-a-pod",
        ),
        pytest.param(
            [WEB.on("a1"), WEB.uid("2").on("b1").phase("Succeeded")],
            SEEKER.required_affinity(BY_ZONE),
            affinity("b1", "zoneless", "bare"),
            id="ended-pods-attract-no-longer",
        ),
        pytest.param(
            [WEB.on("b1").terminating()],
            SEEKER.required_affinity(BY_ZONE),
            affinity("a1", "a2", "zoneless", "bare"),
            id="terminating-pods-still-attract",
        ),
        pytest.param(
            [WEB.in_namespace("blues").on("a1")],
            SEEKER.required_affinity(BY_ZONE),
            affinity(*NAMES),
            id="pods-of-other-namespaces-are-not-sought",
        ),
        pytest.param([WEB.on("a1")], SEEKER.required_affinity(term("zone")), affinity(*NAMES), id="null-selector"),
        pytest.param(
            [DB.on("a1")],
            SEEKER.required_affinity(term("zone", labelled())),
            affinity("b1", "zoneless", "bare"),
            id="empty-selector",
        ),
    ],
)
def test_affinity_wants_every_key_and_in_every_domain_a_pod_that_meets_all_terms(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: dict[str, Status]
) -> None:
    check(pods, incoming, expected)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param([], WEB.required_affinity(BY_ZONE), affinity("zoneless", "bare"), id="anywhere-with-the-key"),
        pytest.param(
            [],
            WEB.required_affinity(BY_ZONE, term("rack", labelled(app="web"))),
            affinity("a2", "b1", "zoneless", "bare"),
            id="anywhere-with-all-the-keys",
        ),
        pytest.param(
            [WEB.on("b1")],
            WEB.uid("2").required_affinity(BY_ZONE),
            affinity("a1", "a2", "zoneless", "bare"),
            id="no-exception-once-there-is-one",
        ),
        pytest.param([], DB.required_affinity(BY_ZONE), affinity(*NAMES), id="no-exception-for-others"),
        pytest.param(
            [],
            WEB.required_affinity(BY_ZONE, term("zone", labelled(app="db"))),
            affinity(*NAMES),
            id="no-exception-if-only-one-of-two-terms-matches-itself",
        ),
        pytest.param(
            [WEB.on("zoneless")],
            WEB.uid("2").required_affinity(BY_ZONE),
            affinity("zoneless", "bare"),
            id="the-others-are-on-a-node-without-the-key",
        ),
        pytest.param(
            [WEB.on("zoneless")],
            WEB.uid("2").required_affinity(BY_ZONE, BY_HOST),
            affinity(*NAMES),
            id="the-others-are-on-a-node-with-one-of-two-keys",
        ),
        pytest.param(
            [WEB.on("unknown")],
            WEB.uid("2").required_affinity(BY_ZONE),
            affinity("zoneless", "bare"),
            id="the-others-are-on-an-unknown-node",
        ),
        pytest.param(
            [WEB.on("a1")],
            WEB.uid("2").label("tier", "front").required_affinity(BY_ZONE, term("zone", labelled(tier="front"))),
            affinity("zoneless", "bare"),
            id="the-others-meet-one-of-two-terms",
        ),
        pytest.param(
            [],
            WEB.required_affinity(term("zone", labelled(app="web"), namespaces=["reds"])),
            affinity(*NAMES),
            id="no-exception-if-its-namespace-is-not-named",
        ),
        pytest.param(
            [],
            WEB.in_namespace("reds").required_affinity(
                term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))
            ),
            affinity("zoneless", "bare"),
            id="its-namespace-is-selected",
        ),
        pytest.param(
            [],
            WEB.in_namespace("unlisted").required_affinity(
                term("zone", labelled(app="web"), namespace_selector=NOT_RED)
            ),
            affinity(*NAMES),
            id="no-exception-in-an-unlisted-namespace",
        ),
        pytest.param(
            [],
            WEB.in_namespace("unlisted").required_affinity(
                term("zone", labelled(app="web"), namespace_selector=labelled())
            ),
            affinity("zoneless", "bare"),
            id="its-namespace-is-unlisted-and-all-are-selected",
        ),
        pytest.param([], WEB.required_affinity(term("zone")), affinity(*NAMES), id="no-exception-for-a-null-selector"),
        pytest.param(
            [],
            SEEKER.required_affinity(term("zone", labelled())),
            affinity("zoneless", "bare"),
            id="an-empty-selector-matches-itself",
        ),
    ],
)
def test_the_first_of_pods_that_want_each_other_may_go_anywhere_with_the_keys(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: dict[str, Status]
) -> None:
    check(pods, incoming, expected)


@pytest.mark.parametrize(
    ("pods", "incoming", "expected"),
    [
        pytest.param(
            [WEB.on("a1")], SEEKER.required_anti_affinity(BY_ZONE), anti_affinity("a1", "a2"), id="the-whole-domain"
        ),
        pytest.param(
            [WEB.on("zoneless")], SEEKER.required_anti_affinity(BY_ZONE), {}, id="not-nodes-that-lack-the-key-too"
        ),
        pytest.param(
            [WEB.on("a1"), DB.on("b1")],
            SEEKER.required_anti_affinity(BY_HOST, term("zone", labelled(app="db"))),
            anti_affinity("a1", "b1"),
            id="each-term-singly",
        ),
        pytest.param([WEB.on("a1")], WEB.uid("2").required_anti_affinity(term("zone")), {}, id="null-selector"),
        pytest.param([], WEB.required_anti_affinity(BY_ZONE), {}, id="it-does-not-repel-itself"),
        pytest.param(
            [WEB.in_namespace("reds").on("a1"), WEB.in_namespace("blues").on("b1")],
            SEEKER.required_anti_affinity(term("zone", labelled(app="web"), namespace_selector=labelled(team="red"))),
            anti_affinity("a1", "a2"),
            id="pods-of-selected-namespaces",
        ),
        pytest.param(
            [WEB.on("a1"), WEB.in_namespace("reds").on("b1")],
            SEEKER.required_anti_affinity(
                term("zone", labelled(app="web"), namespaces=["default"], namespace_selector=labelled(team="red"))
            ),
            anti_affinity("a1", "a2", "b1"),
            id="pods-of-named-and-of-selected-namespaces",
        ),
        pytest.param(
            [WEB.in_namespace("blues").on("a1"), WEB.in_namespace("unlisted").on("b1")],
            SEEKER.required_anti_affinity(term("zone", labelled(app="web"), namespace_selector=NOT_RED)),
            anti_affinity("a1", "a2"),
            id="a-negative-selector-does-not-reach-unlisted-namespaces",
        ),
        pytest.param(
            [WEB.in_namespace("unlisted").on("b1")],
            SEEKER.required_anti_affinity(term("zone", labelled(app="web"), namespace_selector=labelled())),
            anti_affinity("b1"),
            id="an-empty-namespace-selector-reaches-unlisted-namespaces",
        ),
    ],
)
def test_anti_affinity_keeps_out_of_the_domains_of_pods_that_match_any_term(
    pods: Sequence[PodBuilder], incoming: PodBuilder, expected: dict[str, Status]
) -> None:
    check(pods, incoming, expected)


@pytest.mark.parametrize(
    ("guard", "incoming", "expected"),
    [
        pytest.param(SEEKER.required_anti_affinity(BY_ZONE).on("a1"), WEB, existing("a1", "a2"), id="whole-domain"),
        pytest.param(SEEKER.required_anti_affinity(BY_ZONE).on("zoneless"), WEB, {}, id="not-where-the-key-is-missing"),
        pytest.param(SEEKER.required_anti_affinity(BY_ZONE).on("unknown"), WEB, {}, id="not-from-an-unknown-node"),
        pytest.param(SEEKER.required_anti_affinity(BY_ZONE).on("a1"), DB, {}, id="not-pods-that-it-does-not-match"),
        pytest.param(SEEKER.required_affinity(BY_ZONE).on("a1"), WEB, {}, id="not-by-affinity"),
        pytest.param(SEEKER.preferred_anti_affinity(100, BY_ZONE).on("a1"), WEB, {}, id="not-by-preference"),
        pytest.param(
            SEEKER.required_anti_affinity(BY_ZONE).on("a1"), WEB.in_namespace("reds"), {}, id="not-other-namespaces"
        ),
        pytest.param(SEEKER.required_anti_affinity(term("zone")).on("a1"), WEB, {}, id="not-by-a-null-selector"),
        pytest.param(
            SEEKER.required_anti_affinity(term("zone", labelled())).on("b1"),
            DB,
            existing("b1"),
            id="all-by-an-empty-selector",
        ),
        pytest.param(
            SEEKER.required_anti_affinity(term("host", labelled(app="db")), BY_HOST).on("b1"),
            WEB,
            existing("b1"),
            id="by-any-of-its-terms",
        ),
        pytest.param(
            SEEKER.required_anti_affinity(term("zone", labelled(), namespace_selector=NOT_RED)).on("b1"),
            WEB.in_namespace("reds"),
            {},
            id="not-a-namespace-that-is-not-selected",
        ),
        pytest.param(
            SEEKER.required_anti_affinity(term("zone", labelled(), namespace_selector=NOT_RED)).on("b1"),
            WEB.in_namespace("unlisted"),
            existing("b1"),
            id="an-unlisted-namespace-by-a-negative-selector",
        ),
    ],
)
def test_anti_affinity_of_existing_pods_keeps_out_those_that_it_matches(
    guard: PodBuilder, incoming: PodBuilder, expected: dict[str, Status]
) -> None:
    check([guard], incoming, expected)


def test_of_several_broken_rules_a_node_tells_affinity_then_anti_affinity_then_those_of_existing_pods() -> None:
    guard = SEEKER.required_anti_affinity(term("host", labelled())).label("app", "web")
    pods = [
        guard.uid("1").on("a1"),
        guard.uid("2").on("b1"),
        guard.uid("3").on("a2").label("app", "other"),
        WEB.on("zoneless"),
    ]
    incoming = DB.required_affinity(term("zone", labelled(app="other"))).required_anti_affinity(BY_HOST)
    expected = anti_affinity("a1") | existing("a2") | affinity("b1", "zoneless", "bare")
    check(pods, incoming, expected)


def test_an_unresolvable_refusal_is_that_of_affinity_alone() -> None:
    statuses = (AFFINITY_RULES, ANTI_AFFINITY_RULES, EXISTING_ANTI_AFFINITY_RULES)
    assert [(status.code.label, status.message) for status in statuses] == [
        ("UnschedulableAndUnresolvable", "node(s) didn't match pod affinity rules"),
        ("Unschedulable", "node(s) didn't match pod anti-affinity rules"),
        ("Unschedulable", "node(s) didn't satisfy existing pods anti-affinity rules"),
    ]


def test_strangers_are_judged_from_their_labels() -> None:
    mirror = mirror_of(*CLUSTER, WEB.on("a1"), SEEKER.required_anti_affinity(term("zone", labelled())).on("b1"))
    strangers = {
        "in-a": make_node("in-a").label("zone", "a"),
        "in-b": make_node("in-b").label("zone", "b"),
        "in-c": make_node("in-c").label("zone", "c"),
        "without": make_node("without").label("host", "a1"),
    }
    names = ["b1", *strangers, "unknown"]
    batch = mirror.batch(names, {names.index(name): node_of(node) for name, node in strangers.items()})

    def statuses(incoming: PodBuilder) -> list[Status]:
        verdicts = PreFilterState(mirror, pod_of(incoming)).judge(batch)
        return [verdicts.status(position) for position in range(len(names))]

    ok, near, away, guarded = SUCCESS, AFFINITY_RULES, ANTI_AFFINITY_RULES, EXISTING_ANTI_AFFINITY_RULES
    assert [near, ok, near, near, near, near] == statuses(DB.required_affinity(BY_ZONE))
    assert [guarded, away, guarded, ok, ok, ok] == statuses(DB.required_anti_affinity(BY_ZONE))
    first = DB.required_affinity(term("zone", labelled(app="db")))
    assert [guarded, ok, guarded, ok, near, near] == statuses(first)


def test_a_mirror_without_nodes_judges_strangers() -> None:
    mirror = mirror_of(WEB.on("new"))
    batch = mirror.batch(["new", "other"], {0: node_of(make_node("new").label("zone", "a"))})
    verdicts = PreFilterState(mirror, pod_of(WEB.uid("2").required_affinity(BY_ZONE))).judge(batch)
    assert [verdicts.status(0), verdicts.status(1)] == [SUCCESS, AFFINITY_RULES]


def test_a_state_made_before_an_event_is_stale_and_a_new_one_is_right() -> None:
    mirror = mirror_of(*CLUSTER)
    incoming = SEEKER.required_anti_affinity(BY_ZONE)
    assert refusals(mirror, incoming) == {}
    tell(mirror, "Add", WEB.on("b1"))
    assert anti_affinity("b1") == refusals(mirror, incoming)
    tell(mirror, "Delete", WEB)
    assert refusals(mirror, incoming) == {}
