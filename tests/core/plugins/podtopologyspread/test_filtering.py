"""Verdicts over a small cluster, each rule a row: what exists, who comes, and which nodes refuse it for what."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.framework.interface import SUCCESS, Status
from core.mirror.cluster import ClusterMirror
from core.objects.labels import NOTHING
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE, Pod
from core.plugins.podtopologyspread.constraints import own_constraints
from core.plugins.podtopologyspread.plugin import CONSTRAINTS_NOT_MATCHED, LABEL_MISSING, PreFilterState
from tests.core.plugins.podtopologyspread.spreading import (
    BARE,
    HOST,
    NAMES,
    ZONE,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    tell,
)


def missing(*names: str) -> dict[str, Status]:
    return dict.fromkeys(names, LABEL_MISSING)


def skewed(*names: str) -> dict[str, Status]:
    return dict.fromkeys(names, CONSTRAINTS_NOT_MATCHED)


def refusals(
    mirror: ClusterMirror, pod: Pod, names: Sequence[str] = NAMES, strangers: Sequence[Node] = ()
) -> dict[str, Status]:
    """Filter and give the statuses of the nodes that do not pass."""
    state = PreFilterState(mirror, pod, own_constraints(pod, DO_NOT_SCHEDULE))
    asked = [*names, *(node.name for node in strangers)]
    verdicts = state.judge(mirror.batch(asked, {len(names) + at: node for at, node in enumerate(strangers)}))
    statuses = {name: verdicts.status(position) for position, name in enumerate(asked)}
    return {name: status for name, status in statuses.items() if status != SUCCESS}


def test_the_empty_selector_selects_the_pod_itself() -> None:
    # countPodsMatchSelector passes over the empty selector, Filter's self-match does not.
    pod = incoming(must(ZONE, 0, selecting()))
    assert refusals(mirror_of(), pod, ["a1", "b1"]) == skewed("a1", "b1")
    assert refusals(mirror_of(), incoming(must(ZONE, 0, NOTHING)), ["a1", "b1"]) == {}


@pytest.mark.parametrize(
    ("stranger", "expected"),
    [
        pytest.param(Node("s", {ZONE: "a"}), skewed("s"), id="in-a-crowded-domain"),
        pytest.param(Node("s", {ZONE: "b"}), {}, id="in-one-that-is-not"),
        pytest.param(Node("s", {ZONE: "c"}), {}, id="in-one-that-nobody-else-is-in"),
        pytest.param(Node("s", {HOST: "s"}), missing("s"), id="in-none"),
    ],
)
def test_a_node_that_the_mirror_does_not_know_is_judged_by_its_labels(
    stranger: Node, expected: dict[str, Status]
) -> None:
    mirror = mirror_of(*placed(a1="web web", b1="web"))
    expected = {**skewed("a1", "a2"), **expected}
    assert expected == refusals(mirror, incoming(must(ZONE)), ["a1", "a2", "b1"], [stranger])


def test_a_node_that_nobody_knows_makes_no_difference_to_others() -> None:
    found = refusals(mirror_of(*placed(a1="web")), incoming(must(ZONE)), ["nobody", "a1", "b1"])
    assert {name: status for name, status in found.items() if name != "nobody"} == skewed("a1")


def test_the_versions_are_those_of_the_counters() -> None:
    mirror = mirror_of()
    pod = incoming(must(ZONE), must(HOST, 1, selecting(app="db")))

    def versions() -> tuple[object, ...]:
        return PreFilterState(mirror, pod, own_constraints(pod, DO_NOT_SCHEDULE)).versions()

    before = versions()
    tell(mirror, "Add", *placed(a1="other"), replace(BARE, labels={ZONE: "a"}))
    assert versions() == before
    tell(mirror, "Add", *placed(a2="web"))
    assert (versions()[0] == before[0], versions()[1] == before[1]) == (False, True)
    tell(mirror, "Add", *placed(b1="db"))
    assert versions()[1] != before[1]
