"""Domains: the nodes that are counted in them, the pods there, and how they follow the nodes."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import LabelColumn, LabelColumns
from core.objects.affinity import NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.labels import Operator, Requirement, requirement
from core.objects.node import Node
from core.objects.pod import HONOR, IGNORE, Taint, Toleration
from core.plugins.podtopologyspread.constraints import (
    ConstrainedDomains,
    CountedNodes,
    Domains,
    NodeDomains,
    domains_differ,
)
from core.plugins.podtopologyspread.pod_counts import PodCounts
from tests.core.plugins.podtopologyspread.spreading import (
    A1,
    A2,
    B1,
    HOST,
    ZONE,
    incoming,
    mirror_of,
    must,
    placed,
    selecting,
    tell,
)

ALL: Final = CountedNodes((ZONE,), None, None)
EVERYWHERE: Final = placed(a1="web", a2="web web", b1="web", zoneless="web", bare="web")
NO_SCHEDULE: Final = Taint("dedicated", "x", "NoSchedule")


def domains(mirror: ClusterMirror, counted: CountedNodes = ALL, key: str = ZONE) -> dict[str, int]:
    """Return the number of pods of the app web by the value of each domain."""
    found = domains_of(mirror, counted, key)
    sums = found.sums(mirror.derived(PodCounts).of("default", selecting(app="web")))
    return {found.column.values[value_id]: int(sums[value_id]) for value_id in found.ids.tolist()}


def domains_of(mirror: ClusterMirror, counted: CountedNodes, key: str = ZONE) -> Domains:
    """Return the domains of a topology key that some node has."""
    of_nodes = mirror.derived(NodeDomains)
    column = mirror.derived(LabelColumns).of((key,)).get(key) or LabelColumn(key, mirror.nodes.capacity)
    return of_nodes.of(column, of_nodes.counted(counted))


def affinity(*terms: NodeSelectorTerm, **labels: str) -> NodeAffinity:
    return NodeAffinity(selecting(**labels), NodeSelector(terms) if terms else None)


def labelled(*requirements: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(requirements)


def test_nodes_without_the_label_are_in_the_domain_of_the_empty_value_where_there_is_one() -> None:
    # A Go map gives "" for a label that is not there (PreScore of scoring.go).
    mirror = mirror_of(*EVERYWHERE, *placed(void="web"), Node("void", {ZONE: ""}))
    assert domains(mirror, CountedNodes((), None, None)) == {"a": 3, "b": 1, "": 3}
    assert domains(mirror) == {"a": 3, "b": 1, "": 1}


ZONE_A: Final = labelled(requirement(ZONE, Operator.IN, ["a"]))


def test_the_policies_say_what_is_looked_at() -> None:
    # matchNodeInclusionPolicies of common.go
    tolerations = frozenset({Toleration("dedicated", "Exists")})
    pod = incoming(node_affinity=affinity(ZONE_A), tolerations=tolerations)
    policies = [(affinity, taints) for affinity in (HONOR, IGNORE) for taints in (HONOR, IGNORE)]
    assert [
        CountedNodes.of(must(ZONE, node_affinity_policy=one, node_taints_policy=two), pod, (ZONE,))
        for one, two in policies
    ] == [
        CountedNodes((ZONE,), affinity(ZONE_A), tolerations),
        CountedNodes((ZONE,), affinity(ZONE_A), None),
        CountedNodes((ZONE,), None, tolerations),
        CountedNodes((ZONE,), None, None),
    ]
    assert CountedNodes.of(must(ZONE), incoming(), (ZONE,)) == ALL


def test_each_constraint_of_a_pod_counts_the_nodes_of_its_own_policies() -> None:
    mirror = mirror_of(nodes=(A1, replace(B1, taints=(NO_SCHEDULE,))))
    of_pod = ConstrainedDomains(mirror, incoming(node_affinity=affinity(**{HOST: "b1"})), (ZONE,))
    column = mirror.affinity.columns.acquire(ZONE, mirror.nodes)
    found = {
        (one, two): {column.values[value_id] for value_id in of_pod.of(constraint, column).ids.tolist()}
        for one in (HONOR, IGNORE)
        for two in (HONOR, IGNORE)
        for constraint in (must(ZONE, node_affinity_policy=one, node_taints_policy=two),)
    }
    assert found == {
        (HONOR, HONOR): set(),
        (HONOR, IGNORE): {"b"},
        (IGNORE, HONOR): {"a"},
        (IGNORE, IGNORE): {"a", "b"},
    }


def test_domains_follow_the_nodes() -> None:
    mirror = mirror_of(*EVERYWHERE)
    honoring = CountedNodes((ZONE,), affinity(disk="ssd"), frozenset())
    found = [(domains(mirror), domains(mirror, honoring))]
    for node in (
        replace(A1, labels={**A1.labels, "disk": "ssd"}),
        replace(A1, labels={**A1.labels, "disk": "ssd", ZONE: "c"}),
        replace(A1, labels={**A1.labels, "disk": "ssd", ZONE: "c"}, taints=(NO_SCHEDULE,)),
    ):
        tell(mirror, "Update", node)
        found.append((domains(mirror), domains(mirror, honoring)))
    tell(mirror, "Delete", A1, A2)
    tell(mirror, "Add", *(Node(f"more-{number}", {ZONE: f"d{number}"}) for number in range(20)))
    assert found == [
        ({"a": 3, "b": 1}, {}),
        ({"a": 3, "b": 1}, {"a": 1}),
        ({"a": 2, "b": 1, "c": 1}, {"c": 1}),
        ({"a": 2, "b": 1, "c": 1}, {}),
    ]
    assert domains(mirror) == {"b": 1, **{f"d{number}": 0 for number in range(20)}}


def test_domains_are_kept_while_no_label_or_taint_changes() -> None:
    mirror = mirror_of()
    before = domains_of(mirror, ALL)
    tell(mirror, "Update", replace(A1, allocatable={"cpu": 1}, conditions={"Ready": "True"}), *EVERYWHERE)
    assert domains_of(mirror, ALL) is before
    tell(mirror, "Update", replace(A1, taints=(NO_SCHEDULE,)))
    assert domains_of(mirror, ALL) is not before


@pytest.mark.parametrize("bound", ["MAX_DOMAINS", "MAX_COUNTED"])
def test_the_domains_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(f"core.plugins.podtopologyspread.constraints.{bound}", 2)
    mirror = mirror_of()
    others = [CountedNodes((), None, frozenset({Toleration(key)})) for key in "xy"]
    first, second = domains_of(mirror, ALL), domains_of(mirror, others[0])
    assert domains_of(mirror, ALL) is first
    domains_of(mirror, others[1])
    assert domains_of(mirror, ALL) is first
    assert domains_of(mirror, others[0]) is not second


def test_nodes_counted_by_what_a_large_pod_asks_are_not_kept() -> None:
    mirror = mirror_of()
    large = CountedNodes((), None, frozenset({Toleration(f"key-{number}") for number in range(1000)}))
    assert domains_of(mirror, large) is not domains_of(mirror, large)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_request_whose_columns_are_too_large_to_keep_is_answered_right(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", kept)
    mirror = mirror_of(*EVERYWHERE)
    both = CountedNodes((HOST, ZONE), None, None)
    assert domains(mirror, both) == {"a": 3, "b": 1}
    assert domains(mirror, both, HOST) == {"a1": 1, "a2": 2, "b1": 1}


def test_a_cluster_without_nodes_has_no_domains() -> None:
    assert domains(mirror_of(nodes=()), CountedNodes((ZONE,), affinity(zone="a"), frozenset())) == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, A1, True, id="comes"),
        pytest.param(A1, None, True, id="goes"),
        pytest.param(A1, replace(A1, labels={ZONE: "b"}), True, id="labels"),
        pytest.param(A1, replace(A1, taints=(NO_SCHEDULE,)), True, id="taints"),
        pytest.param(A1, replace(A1, allocatable={"cpu": 1}), False, id="allocatable"),
        pytest.param(A1, replace(A1, images={"i": 1}), False, id="images"),
        pytest.param(A1, replace(A1, conditions={"Ready": "False"}), False, id="conditions"),
        pytest.param(A1, replace(A1, unschedulable=True), False, id="unschedulable"),
        pytest.param(A1, replace(A1, resource_version="2"), False, id="version"),
    ],
)
def test_domains_change_with_what_they_are_made_from(
    before: Node | None, after: Node | None, *, expected: bool
) -> None:
    assert domains_differ(before, after) is expected
