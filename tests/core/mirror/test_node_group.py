"""The nodes of the partition by domain."""

from core.mirror.cluster import ClusterMirror
from core.mirror.node_values import NO_DOMAIN, NodeGroup, make_node_group
from tests.builders import NodeBuilder, make_node
from tests.core.decoded import mirror_of, tell

RACK = "example.com/rack"


def node(name: str, rack: str = "") -> NodeBuilder:
    return make_node(name).label(RACK, rack) if rack else make_node(name)


def domains(group: NodeGroup) -> set[frozenset[str]]:
    return {frozenset(group.within({domain}).names) for domain in range(group.domains)}


def of_slots(mirror: ClusterMirror, group: NodeGroup, *names: str) -> set[frozenset[str]]:
    present = group.has_any(mirror.batch(names).slots)
    return {frozenset(group.within({domain}).names) for domain in present.nonzero()[0].tolist()}


def test_nodes_with_one_value_are_a_domain_and_a_node_without_the_label_is_one_of_its_own() -> None:
    mirror = mirror_of(node("a", "r1"), node("b", "r2"), node("c", "r1"), node("d"), node("e"))
    group = make_node_group(mirror, RACK)
    assert domains(group) == {frozenset("ac"), frozenset("b"), frozenset("d"), frozenset("e")}
    assert of_slots(mirror, group, "c", "e") == {frozenset("ac"), frozenset("e")}


def test_without_a_key_and_where_no_node_has_it_each_node_is_a_domain() -> None:
    mirror = mirror_of(node("a", "r1"), node("b", "r1"))
    for key in ("", "unknown"):
        assert domains(make_node_group(mirror, key)) == {frozenset("a"), frozenset("b")}


def test_nodes_out_of_the_partition_are_in_no_domain() -> None:
    mirror = mirror_of(node("a", "r1"), node("b", "r1"), node("c", "r2"))
    mirror.set_node_out_of_partition("b")
    group = make_node_group(mirror, RACK)
    by_slot = group.by_slot(mirror.nodes.capacity)
    assert len(by_slot) == mirror.nodes.capacity
    assert [int(by_slot[mirror.nodes.slots[name]]) for name in "abc"] == [0, NO_DOMAIN, 1]
    assert domains(group) == {frozenset("a"), frozenset("c")}
    assert of_slots(mirror, group, "b") == set()


def test_an_empty_cluster_has_no_domain() -> None:
    group = make_node_group(ClusterMirror(), RACK)
    assert (group.domains, len(group.nodes)) == (0, 0)


def test_it_has_the_generation_of_the_mirror() -> None:
    mirror = mirror_of(node("a", "r1"))
    assert make_node_group(mirror, RACK).generation == mirror.generation
    tell(mirror, "Update", node("a", "r2"))
    assert make_node_group(mirror, RACK).generation == mirror.generation


def test_amounts_are_summed_by_domain() -> None:
    mirror = mirror_of(node("a", "r1"), node("b", "r2"), node("c", "r1"))
    group = make_node_group(mirror, RACK)
    by_node = group.nodes.slots + 1
    assert sorted(group.sums(by_node).tolist()) == [2, 4]
