"""Slots of nodes, which are reused, and the nodes of a question."""

import json
import tracemalloc
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.mirror.generation_store import GenerationCounter
from core.mirror.node_info import NodeBatch, NodeTable
from core.mirror.topology import ABSENT, UNSEEN, TopologyColumn
from core.objects.labels import parse_selector
from core.objects.node import Node


def table_of(*names: str) -> NodeTable:
    table = NodeTable(GenerationCounter())
    for name in names:
        table.occupy(table.info(name), Node(name))
    return table


def numbered(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def batch_of(table: NodeTable, names: Sequence[str], objects: Mapping[int, Node] | None = None) -> NodeBatch:
    return NodeBatch.of(table, names, objects or {})


def rendered_names(batch: NodeBatch) -> list[str]:
    return [json.loads(fragment) for fragment in batch.name_json()]


def zones_of(table: NodeTable, zones: Mapping[str, str]) -> TopologyColumn:
    column = TopologyColumn("zone", table.capacity)
    for name, zone in zones.items():
        column.assign(table.slots[name], zone)
    return column


def test_label_keys_are_counted_by_the_nodes_that_have_them() -> None:
    table = NodeTable(GenerationCounter())
    one, two = table.info("one"), table.info("two")
    table.occupy(one, Node("one", {"zone": "a", "host": "one"}))
    table.occupy(two, Node("two", {"zone": "b"}))
    assert table.label_keys == {"zone": 2, "host": 1}
    table.replace(one, Node("one", {"zone": "c", "rack": "r"}))
    assert table.label_keys == {"zone": 2, "rack": 1}
    table.vacate(two)
    assert table.label_keys == {"zone": 1, "rack": 1}
    forked = table.info("three")
    table.add_tentative(forked, Node("three", {"disk": "ssd"}))
    assert table.label_keys == {"zone": 1, "rack": 1, "disk": 1}
    table.withdraw(forked)
    table.vacate(one)
    assert table.label_keys == {}


@pytest.mark.parametrize(
    ("count", "capacity"),
    [
        pytest.param(15, 16, id="one-less-than-at-first"),
        pytest.param(16, 16, id="as-many-as-at-first"),
        pytest.param(17, 32, id="one-more-than-at-first"),
        pytest.param(32, 32, id="twice-as-many"),
        pytest.param(33, 64, id="one-more-than-twice-as-many"),
    ],
)
def test_more_nodes_than_slots_make_room_for_twice_as_many(count: int, capacity: int) -> None:
    table = table_of(*numbered(count))
    assert capacity == table.capacity
    assert set(range(count)) == set(table.slots.values())
    assert numbered(count) == rendered_names(batch_of(table, numbered(count)))


def test_names_are_shown_as_json_from_the_slots_and_from_the_question() -> None:
    table = table_of('quo"te', "é")
    batch = batch_of(table, ['quo"te', "é", 'back\\slash"'])
    expected = [rb'"quo\"te"', '"é"'.encode(), rb'"back\\slash\""']
    assert expected == list(batch.name_json())
    assert expected == [*map(batch.name_json_at, range(3))]


@pytest.mark.parametrize("known", [3, 5_000], ids=["a-few", "very-many"])
@pytest.mark.parametrize("longest", [125, 253, 100_000])
def test_names_are_shown_however_much_longer_than_the_others_one_is(known: int, longest: int) -> None:
    requested = [*numbered(known), "x" * longest, *(f"stranger-{number}" for number in range(known))]
    assert rendered_names(batch_of(table_of(*numbered(known)), requested)) == requested
    assert rendered_names(batch_of(table_of(*requested), requested)) == requested


def test_one_long_name_among_many_costs_its_own_length() -> None:
    requested = [*numbered(100_000), "x" * 100_000]  # 10 GB, were each as long
    batch = batch_of(table_of(), requested)
    tracemalloc.start()
    try:
        texts = batch.name_json()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(texts) == 100_001
    assert peak < 64 * 1024 * 1024


@pytest.mark.parametrize("known", [0, 1, 16], ids=["no-node", "one-node", "no-free-slot"])
def test_value_ids_are_those_of_the_node_the_object_or_absent(known: int) -> None:
    table = table_of(*numbered(known))
    column = zones_of(table, dict.fromkeys(numbered(known), "a"))
    names = ["unknown", "without", "new", "like", *numbered(known)]
    objects = {1: Node("without"), 2: Node("new", {"zone": "b"}), 3: Node("like", {"zone": "a"})}
    like = column.ids["a"] if known else UNSEEN
    expected = [ABSENT, ABSENT, UNSEEN, like, *[column.ids.get("a")] * known]
    assert expected == batch_of(table, names, objects).value_ids(column).tolist()


@settings(deadline=None)
@given(st.lists(st.sampled_from(numbered(6)), max_size=10), st.sets(st.sampled_from(numbered(6))), st.booleans())
def test_the_first_repeated_name_is_the_first_that_stands_earlier(
    names: list[str],
    unknown: set[str],
    all_known: bool,  # noqa: FBT001 - drawn
) -> None:
    table = table_of(*reversed(numbered(6)))
    if not all_known:
        for name in unknown:
            table.vacate(table.infos[name])
    expected = next((position for position, name in enumerate(names) if name in names[:position]), -1)
    assert expected == batch_of(table, names).repeated()


# Generations, values and the partition.


def generations(table: NodeTable) -> dict[str, int]:
    return {name: info.generation for name, info in table.infos.items()}


def partitioned(*names: str, inside: Sequence[str]) -> NodeTable:
    """Return a table of nodes of which those named are in the partition, by their labels."""
    table = NodeTable(GenerationCounter())
    table.partition.set_selector(parse_selector({"ours": "yes"}, ()))
    for name in names:
        table.occupy(table.info(name), Node(name, {"ours": "yes"} if name in inside else {}))
    return table


def outside(batch: NodeBatch) -> list[str] | None:
    mask = batch.out_of_partition
    return None if mask is None else [name for name, out in zip(batch.names, mask.tolist(), strict=True) if out]


def test_strangers_are_judged_by_their_labels_and_unknown_names_not_at_all() -> None:
    table = partitioned("a", "b", inside=["a"])
    objects = {2: Node("c"), 3: Node("d", {"ours": "yes"})}
    assert outside(batch_of(table, ["a", "b", "c", "d", "unknown"], objects)) == ["b", "c"]
    table.partition.set_name("d", inside=False)
    table.partition.set_name("unknown", inside=False)
    assert outside(batch_of(table, ["unknown", "d", "c", "b"], {1: Node("d", {"ours": "yes"})})) == ["d", "b"]


def test_an_unknown_name_is_not_out_of_the_partition_because_the_last_slot_is() -> None:
    table = partitioned(*numbered(16), inside=numbered(15))
    assert outside(batch_of(table, ["n15", "unknown"])) == ["n15"]


def test_only_nodes_that_change_sides_get_a_new_generation() -> None:
    table = partitioned("a", "b", "c", inside=["a"])
    table.info("waiting")
    table.partition.set_name("a", inside=True)
    table.partition.set_name("b", inside=True)
    table.partition.set_name("waiting", inside=False)
    table.partition_changed(["a", "b", "c", "waiting", "unknown"])
    assert generations(table) == {"a": 1, "b": 4, "c": 3, "waiting": 0}
    assert outside(batch_of(table, ["a", "b", "c"])) == ["c"]


def test_positions_and_domains_are_those_of_the_slots_whether_all_nodes_are_in_the_batch_or_some() -> None:
    table = table_of(*numbered(40))
    for gone in ((), ("n3", "n39")):
        for name in gone:
            table.vacate(table.infos[name])
        column = zones_of(table, {name: f"zone-{int(name[1:]) % 3}" for name in table.slots})
        for slots in (table.all_slots(), table.all_slots()[::-2]):
            batch = NodeBatch.of_slots(table, slots)
            changed = {0, 3, 5, 38, 39}
            assert batch.positions_of(changed) == [at for at, slot in enumerate(slots.tolist()) if slot in changed]
            assert batch.value_ids(column).tolist() == column.of_slot[slots].tolist()
