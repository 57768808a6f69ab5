"""Verdicts over a small cluster, each rule a row: what exists, who comes, and which nodes refuse it for what."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.framework.status import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.labels import NOTHING
from core.objects.node import Node
from core.objects.node_affinity import NodeAffinity
from core.objects.pod import Pod
from core.objects.toleration import Taint
from core.objects.topology_spread import DO_NOT_SCHEDULE, HONOR, IGNORE
from core.plugins.podtopologyspread.constraints import own_constraints
from core.plugins.podtopologyspread.filtering import CONSTRAINTS_NOT_MATCHED, LABEL_MISSING, PreFilterState
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    A2,
    B1,
    BARE,
    HOST,
    NAMES,
    NODES,
    ZONE,
    ZONELESS,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    tell,
)

IN_B: Final = NodeAffinity(selecting(zone="b"))
TAINTED_B1: Final = replace(B1, taints=(Taint("dedicated", "", "NoSchedule"),))


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


def test_the_statuses_are_those_of_upstream() -> None:
    text = "node(s) didn't match pod topology spread constraints"
    assert Status(Code.UNSCHEDULABLE, (text,)) == CONSTRAINTS_NOT_MATCHED
    missing_label = f"{text} (missing required label)"
    assert Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (missing_label,)) == LABEL_MISSING


@pytest.mark.parametrize(
    ("pods", "pod", "expected"),
    [
        # Filter of filtering.go: matching pods + 1 if it selects itself - the fewest of any domain > maxSkew
        pytest.param(placed(), incoming(must(ZONE)), {}, id="no-pods"),
        pytest.param(placed(a1="web"), incoming(must(ZONE)), skewed("a1", "a2"), id="one-too-many"),
        pytest.param(placed(a1="web", a2="web"), incoming(must(ZONE, 2)), skewed("a1", "a2"), id="domains-sum-nodes"),
        pytest.param(placed(a1="web"), incoming(must(ZONE, 2)), {}, id="within-the-skew"),
        pytest.param(placed(a1="web", b1="web"), incoming(must(ZONE)), {}, id="above-the-fewest"),
        pytest.param(placed(a1="db", bare="web"), incoming(must(ZONE)), {}, id="other-pods-do-not-count"),
        pytest.param(placed(a1="web"), incoming(must(ZONE), app="db"), {}, id="a-pod-that-does-not-select-itself"),
        pytest.param(
            placed(a1="web web"), incoming(must(ZONE), app="db"), skewed("a1", "a2"), id="nor-adds-to-what-is-too-many"
        ),
        pytest.param(placed(zoneless="web web web"), incoming(must(ZONE)), {}, id="pods-on-nodes-without-the-label"),
        pytest.param(
            placed(a1="web web web", b1="db"),
            incoming(must(ZONE, 1, selecting())),
            {},
            id="the-empty-selector-counts-none",
        ),
        pytest.param(placed(a1="web"), incoming(must(ZONE, 1, NOTHING)), {}, id="the-null-selector-counts-none"),
    ],
)
def test_the_skew(pods: Sequence[Pod], pod: Pod, expected: dict[str, Status]) -> None:
    assert {**expected, **missing("zoneless", "bare")} == refusals(mirror_of(*pods), pod)


def test_the_empty_selector_selects_the_pod_itself() -> None:
    # countPodsMatchSelector passes over the empty selector, Filter's self-match does not.
    pod = incoming(must(ZONE, 0, selecting()))
    assert refusals(mirror_of(), pod, ["a1", "b1"]) == skewed("a1", "b1")
    assert refusals(mirror_of(), incoming(must(ZONE, 0, NOTHING)), ["a1", "b1"]) == {}


@pytest.mark.parametrize(
    ("pods", "constraint", "expected"),
    [
        # minMatchNum of filtering.go
        pytest.param(placed(a1="web", b1="web"), must(ZONE, min_domains=2), {}, id="as-many"),
        pytest.param(placed(a1="web", b1="web"), must(ZONE, min_domains=3), skewed("a1", "a2", "b1"), id="fewer"),
        pytest.param(placed(), must(ZONE, min_domains=3), {}, id="fewer-without-pods"),
        pytest.param(placed(a1="web", b1="web"), must(ZONE, 2, min_domains=3), {}, id="fewer-within-the-skew"),
    ],
)
def test_with_fewer_domains_than_min_domains_the_fewest_is_taken_for_none(
    pods: Sequence[Pod], constraint: object, expected: dict[str, Status]
) -> None:
    pod = replace(incoming(), spread=(constraint,))
    assert expected == refusals(mirror_of(*pods), pod, ["a1", "a2", "b1"])


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param((must(ZONE), must(HOST)), {**skewed("a1", "a2"), **missing("zoneless", "bare")}, id="any-refuses"),
        pytest.param((must(HOST), must(ZONE)), {**skewed("a1", "a2"), **missing("zoneless", "bare")}, id="any-order"),
        pytest.param((must(HOST),), {**skewed("a1"), **missing("bare")}, id="one"),
        pytest.param((must(HOST, 9), must("rack")), missing(*NAMES), id="a-label-of-no-node"),
        pytest.param((must(HOST), must("rack")), missing(*NAMES), id="which-leaves-no-domain-to-count"),
    ],
)
def test_constraints_are_judged_in_order_and_the_first_failure_is_the_verdict(
    constraints: tuple[object, ...], expected: dict[str, Status]
) -> None:
    pod = replace(incoming(), spread=constraints)
    assert expected == refusals(mirror_of(*placed(a1="web")), pod)


def test_a_skew_that_comes_before_a_missing_label_is_the_verdict() -> None:
    crowded = replace(ZONELESS, labels={**ZONELESS.labels, "rack": "1"})
    pod = incoming(must("rack", 0), must(ZONE))
    assert refusals(mirror_of(nodes=(A1, B1, crowded)), pod, ["a1", "zoneless"]) == {
        **missing("a1"),
        **skewed("zoneless"),
    }


@pytest.mark.parametrize(
    ("constraint", "asked", "nodes", "expected"),
    [
        pytest.param(must(ZONE), IN_B, NODES, {}, id="zone-a-does-not-count-as-affinity-is-honored"),
        pytest.param(
            must(ZONE, node_affinity_policy=IGNORE), IN_B, NODES, skewed("b1"), id="unless-affinity-is-ignored"
        ),
        pytest.param(must(ZONE), NodeAffinity(), (A1, A2, TAINTED_B1), skewed("b1"), id="taints-are-ignored"),
        pytest.param(
            must(ZONE, node_taints_policy=HONOR), NodeAffinity(), (A1, A2, TAINTED_B1), {}, id="unless-they-are-honored"
        ),
        pytest.param(
            must(ZONE, node_affinity_policy="Odd", node_taints_policy="Odd"),
            IN_B,
            (A1, A2, TAINTED_B1),
            skewed("b1"),
            id="an-unknown-policy-is-none",
        ),
    ],
)
def test_which_domains_there_are_follows_from_the_policies(
    constraint: object, asked: NodeAffinity, nodes: Sequence[Node], expected: dict[str, Status]
) -> None:
    # Pods are on b1 alone: with zone a it has too many, without it there is nothing to compare with.
    pod = replace(incoming(node_affinity=asked), spread=(constraint,))
    assert expected == refusals(mirror_of(*placed(b1="web"), nodes=nodes), pod, ["b1"])


def test_a_node_that_is_not_counted_is_judged_by_the_pods_of_its_domain_that_are() -> None:
    # Filter of filtering.go reads the labels of the node alone.
    pod = incoming(must(ZONE), node_affinity=NodeAffinity(selecting(**{HOST: "a1"})))
    assert refusals(mirror_of(*placed(a2="web web")), pod, ["a1", "a2", "b1"]) == {}
    assert refusals(mirror_of(*placed(a1="web")), pod, ["a1", "a2", "b1"]) == {}
    both = incoming(must(ZONE), node_affinity=NodeAffinity(selecting(pool="x")))
    pools = [replace(node, labels={**node.labels, "pool": "x"}) for node in (A1, B1)]
    found = refusals(mirror_of(*placed(a1="web", a2="web web"), nodes=(*pools, A2)), both, ["a1", "a2", "b1"])
    assert found == skewed("a1", "a2")


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
