"""Domains: the nodes that are counted in them, the pods there, and how they follow the nodes."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import LabelColumn, LabelColumns
from core.objects.labels import Operator, Requirement, requirement
from core.objects.node import Node
from core.objects.node_affinity import NodeAffinity
from core.objects.node_selector import Comparison, FieldRequirement, NodeSelector, NodeSelectorTerm
from core.objects.toleration import Taint, Toleration
from core.objects.topology_spread import HONOR, IGNORE
from core.plugins.podtopologyspread.domains import (
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
    NODES,
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


def named(name: str, *, negated: bool = False) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=(FieldRequirement("metadata.name", name, negated),))


@pytest.mark.parametrize(
    ("key", "labels", "expected"),
    [
        # nodeLabelsMatchSpreadConstraints of common.go
        pytest.param(ZONE, (ZONE,), {"a": 3, "b": 1}, id="its-own"),
        pytest.param(HOST, (HOST,), {"a1": 1, "a2": 2, "b1": 1, "zoneless": 1}, id="another"),
        pytest.param(HOST, (HOST, ZONE), {"a1": 1, "a2": 2, "b1": 1}, id="those-of-all-constraints"),
        pytest.param("rack", ("rack",), {}, id="one-that-no-node-has"),
        pytest.param(ZONE, (), {"a": 3, "b": 1}, id="none"),
    ],
)
def test_nodes_are_counted_by_the_labels_they_need(key: str, labels: tuple[str, ...], expected: dict[str, int]) -> None:
    assert expected == domains(mirror_of(*EVERYWHERE), CountedNodes(labels, None, None), key)


def test_nodes_without_the_label_are_in_the_domain_of_the_empty_value_where_there_is_one() -> None:
    # A Go map gives "" for a label that is not there (PreScore of scoring.go).
    mirror = mirror_of(*EVERYWHERE, *placed(void="web"), Node("void", {ZONE: ""}))
    assert domains(mirror, CountedNodes((), None, None)) == {"a": 3, "b": 1, "": 3}
    assert domains(mirror) == {"a": 3, "b": 1, "": 1}


def test_a_domain_counts_though_it_has_no_pods() -> None:
    assert domains(mirror_of(*placed(a1="db"))) == {"a": 0, "b": 0}


ZONE_A: Final = labelled(requirement(ZONE, Operator.IN, ["a"]))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(affinity(zone="b"), {"b": 1}, id="node-selector"),
        pytest.param(affinity(ZONE_A), {"a": 3}, id="required-term"),
        pytest.param(affinity(ZONE_A, disk="ssd"), {"a": 2}, id="both"),
        pytest.param(affinity(ZONE_A, labelled(requirement("disk", Operator.EXISTS, ()))), {"a": 3}, id="alternatives"),
        pytest.param(
            affinity(NodeSelectorTerm(comparisons=(Comparison("cores", greater=True, bound=4),))),
            {"b": 1},
            id="comparison",
        ),
        pytest.param(affinity(named("a2")), {"a": 2}, id="name"),
        pytest.param(affinity(named("a2", negated=True)), {"a": 1, "b": 1}, id="any-other-name"),
        pytest.param(affinity(named("nobody")), {}, id="name-of-nobody"),
        pytest.param(affinity(named("a2"), labelled(requirement(ZONE, Operator.IN, ["b"]))), {"a": 2, "b": 1}, id="or"),
        pytest.param(affinity(NodeSelectorTerm(errors=("broken",)), ZONE_A), {"a": 3}, id="not-a-broken-term"),
        pytest.param(NodeAffinity(required=NodeSelector()), {}, id="no-terms"),
    ],
)
def test_nodes_are_counted_by_node_affinity(asked: NodeAffinity, expected: dict[str, int]) -> None:
    a2 = replace(A2, labels={**A2.labels, "disk": "ssd", "cores": "4"})
    b1 = replace(B1, labels={**B1.labels, "cores": "8"})
    mirror = mirror_of(*EVERYWHERE, nodes=(A1, a2, b1, *NODES[3:]))
    counted = CountedNodes.of(must(ZONE), incoming(node_affinity=asked), (ZONE,))
    assert expected == domains(mirror, counted)


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([NO_SCHEDULE], [], {"a": 3}, id="untolerated"),
        pytest.param([NO_SCHEDULE], [Toleration("dedicated", value="x")], {"a": 3, "b": 1}, id="tolerated"),
        pytest.param([NO_SCHEDULE], [Toleration("dedicated", value="y")], {"a": 3}, id="not-of-that-value"),
        pytest.param([Taint("down", "", "NoExecute")], [], {"a": 3}, id="no-execute"),
        pytest.param([Taint("slow", "", "PreferNoSchedule")], [], {"a": 3, "b": 1}, id="preferences-do-not-matter"),
        pytest.param(
            [NO_SCHEDULE, Taint("down", "", "NoExecute")],
            [Toleration("dedicated", "Exists")],
            {"a": 3},
            id="all-must-be-tolerated",
        ),
    ],
)
def test_nodes_are_counted_by_their_taints(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], expected: dict[str, int]
) -> None:
    mirror = mirror_of(*EVERYWHERE, nodes=(A1, A2, replace(B1, taints=tuple(taints)), *NODES[3:]))
    pod = incoming(tolerations=frozenset(tolerations))
    assert expected == domains(mirror, CountedNodes.of(must(ZONE, node_taints_policy=HONOR), pod, (ZONE,)))


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


def test_spec_unschedulable_is_not_looked_at() -> None:
    assert domains(mirror_of(nodes=(replace(A1, unschedulable=True),)), CountedNodes((ZONE,), None, frozenset())) == {
        "a": 0
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
    monkeypatch.setattr(f"core.plugins.podtopologyspread.domains.{bound}", 2)
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
