"""What is read of every node, by distinct value."""

from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_values import (
    NO_DOMAIN,
    LabelProjections,
    LabelValues,
    NodeGroup,
    NodeUsage,
    NodeValues,
    judged,
    labels_of,
    make_node_group,
    outdated,
)
from core.objects.node import Node, NodeMetrics, Usage
from tests.core.mirror.values import mirror_of, node, tell

LENGTHS = {None: -1, "": 0, "ssd": 3, "nvme": 4}


def disk(node: Node) -> str | None:
    return node.labels.get("disk")


def followed(mirror: ClusterMirror) -> NodeValues[str]:
    """Return values that hear of every change."""
    values = NodeValues(mirror, disk)
    mirror.listen(values)
    return values


def results(values: NodeValues[str], mirror: ClusterMirror, *names: str) -> list[int]:
    found: list[int] = values.judged(mirror.batch(names), LENGTHS.__getitem__).tolist()
    return found


def with_disk(name: str, kind: str | None = None) -> Node:
    return node(name, labels={} if kind is None else {"disk": kind})


def test_a_value_is_judged_once_for_all_nodes_that_have_it() -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", ("ssd", None)[number % 2]) for number in range(40)))
    requested: list[str | None] = []

    def judge(value: str | None) -> int:
        requested.append(value)
        return len(requested)

    NodeValues(mirror, disk).judged(mirror.batch(list(mirror.nodes.slots)), judge)

    assert sorted(requested, key=str) == [None, "ssd"]


def test_more_values_than_nodes_asked_about_are_not_all_judged() -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", str(number)) for number in range(40)))
    requested: list[str | None] = []

    def judge(value: str | None) -> int:
        requested.append(value)
        return int(value or -1)

    found = NodeValues(mirror, disk).judged(mirror.batch(["n7", "n39", "n7"]), judge)

    assert found.tolist() == [7, 39, 7]
    assert sorted(requested, key=str) == ["39", "7"]


@pytest.mark.parametrize("known", [1, 40])
def test_strangers_are_judged_by_their_own_object_and_unknown_names_get_0(known: int) -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", "nvme") for number in range(known)))
    batch = mirror.batch(["s", "n0", "unknown", "bare"], {0: with_disk("s", "ssd"), 3: with_disk("bare")})

    assert followed(mirror).judged(batch, LENGTHS.__getitem__).tolist() == [3, 4, 0, -1]


def test_values_kept_by_events_are_those_that_are_read_anew() -> None:
    random = Random(5)  # noqa: S311 - no secret; the same in every run
    mirror = mirror_of()
    values = followed(mirror)
    for _ in range(300):
        name, kind = f"n{random.randrange(40)}", random.choice((None, "", "ssd", "nvme"))
        mirror.apply(ClusterEvent(random.choice(("Update", "Update", "Delete")), with_disk(name, kind)))
        names = list(mirror.nodes.slots)
        assert results(values, mirror, *names) == results(NodeValues(mirror, disk), mirror, *names)


# Labels.


def values_of(projections: LabelProjections, mirror: ClusterMirror, *keys: str) -> list[LabelValues | None]:
    """Return the values of these labels on all nodes."""
    found: list[LabelValues | None] = []

    def note(values: LabelValues | None) -> int:
        found.append(values)
        return len(found) - 1

    batch = mirror.batch(sorted(mirror.nodes.slots))
    return [found[index] for index in projections.of(keys).judged(batch, note)]


def test_labels_are_in_the_order_of_the_keys_and_none_where_a_node_lacks_one() -> None:
    mirror = mirror_of(node("a", labels={"zone": "z", "disk": "ssd"}), node("b", labels={"disk": ""}), node("c"))
    projections = mirror.derived(LabelProjections)

    assert values_of(projections, mirror, "disk", "zone") == [("ssd", "z"), ("", None), (None, None)]
    assert values_of(projections, mirror, "zone") == [("z",), (None,), (None,)]


def test_a_node_whose_labels_stay_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(node("a", labels={"zone": "z"}, cpu=1))
    mirror.derived(LabelProjections).of(("zone",))
    heard: list[object] = []
    monkeypatch.setattr(NodeValues, "changed", lambda _, change: heard.append(change))
    tell(mirror, "Update", node("a", labels={"zone": "z"}, cpu=2))
    assert heard == []

    tell(mirror, "Update", node("a", labels={"zone": "y"}, cpu=2))
    assert len(heard) == 1


def test_only_the_projections_that_were_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.node_values.MAX_BYTES", 1000)  # three: each has 16 slots and one or two values
    mirror = mirror_of(node("a", labels={"zone": "z"}))
    projections = mirror.derived(LabelProjections)
    first, second = projections.of(("zone",)), projections.of(("disk",))
    for number in range(3):
        projections.of((f"key-{number}",))
        assert projections.of(("zone",)) is first  # which is asked for all the time

    assert projections.of(("disk",)) is not second


def test_a_projection_larger_than_all_that_may_be_kept_is_kept_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.node_values.MAX_BYTES", 0)
    projections = mirror_of(node("a", labels={"zone": "z"})).derived(LabelProjections)
    first = projections.of(("zone",))

    assert projections.of(("zone",)) is first
    projections.of(("disk",))
    assert projections.of(("zone",)) is not first


@pytest.mark.parametrize(
    ("keys", "values", "expected"),
    [
        pytest.param(("a", "b"), ("1", None), {"a": "1"}, id="absent"),
        pytest.param(("a",), ("",), {"a": ""}, id="an-empty-value-is-a-value"),
        pytest.param(("a", "b"), None, {}, id="no-value-at-all"),
        pytest.param((), (), {}, id="no-keys"),
    ],
)
def test_a_projected_value_stands_for_labels(
    keys: tuple[str, ...], values: LabelValues | None, expected: dict[str, str]
) -> None:
    assert labels_of(keys, values) == expected


MEASURED: Final = NodeMetrics(
    name="n1",
    measured_at=1000,
    covers_pods_until="1970-01-01T00:15:40Z",
    cpu=Usage(800, 100),
    memory=Usage(2**30),
)
GIB: Final = 2**30
NODE: Final = Node("n1", allocatable={"cpu": 3000, "memory": 7 * GIB}, capacity={"cpu": 4000, "memory": 8 * GIB})


def columns(mirror: ClusterMirror, name: str = "n1") -> list[tuple[int, ...]]:
    """Return (measured, average, deviation, capacity, allocatable) of cpu and memory."""
    usage, batch = mirror.derived(NodeUsage), mirror.batch([name])
    found = [usage.of(resource, batch) for resource in range(2)]
    return [(bool(each[0][0]), *(int(column[0]) for column in each[1:])) for each in found]


NOT_MEASURED: Final = [(False, 0, 0, 4000, 3000), (False, 0, 0, 8 * GIB, 7 * GIB)]
WHOLE: Final = [(True, 800, 100, 4000, 3000), (True, GIB, 0, 8 * GIB, 7 * GIB)]


def test_a_resource_that_was_not_measured_is_not_0() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Add", replace(MEASURED, memory=None)))
    assert columns(mirror) == [WHOLE[0], NOT_MEASURED[1]]


def test_a_measurement_that_is_too_old_or_gone_is_not_used() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Add", MEASURED))
    mirror.apply(ClusterEvent("Update", replace(MEASURED, too_old=True)))
    assert columns(mirror) == NOT_MEASURED
    assert mirror.derived(NodeUsage).outdated(mirror.batch(["n1"])).tolist() == [True]
    mirror.apply(ClusterEvent("Delete", MEASURED))
    assert columns(mirror) == NOT_MEASURED
    assert mirror.derived(NodeUsage).outdated(mirror.batch(["n1"])).tolist() == [False]


def test_a_stranger_has_no_usage() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Add", replace(MEASURED, name="stranger")))
    assert columns(mirror, "stranger") == [(False, 0, 0, 0, 0)] * 2


@pytest.mark.parametrize(
    ("now", "expected"),
    [pytest.param(1180.0, False, id="as-old-as-it-may-be"), pytest.param(1180.1, True, id="older")],
)
def test_a_measurement_is_too_old_once_its_age_is_more_than_it_may_be(now: float, *, expected: bool) -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Update", MEASURED))
    marked = replace(MEASURED, too_old=True)
    assert judged(MEASURED, now, 180.0).too_old is expected
    assert judged(marked, now, 180.0).too_old is expected
    assert [*outdated(mirror, now, 180.0)] == ([marked] if expected else [])


def test_what_is_marked_as_too_old_is_not_marked_again() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Update", replace(MEASURED, too_old=True)))
    assert [*outdated(mirror, 5000.0, 180.0)] == []


RACK = "example.com/rack"


def racked(name: str, rack: str = "") -> Node:
    return node(name, labels={RACK: rack} if rack else {})


def domains(group: NodeGroup) -> set[frozenset[str]]:
    return {frozenset(group.within({domain}).names) for domain in range(group.domains)}


def of_slots(mirror: ClusterMirror, group: NodeGroup, *names: str) -> set[frozenset[str]]:
    present = group.has_any(mirror.batch(names).slots)
    return {frozenset(group.within({domain}).names) for domain in present.nonzero()[0].tolist()}


def test_nodes_with_one_value_are_a_domain_and_a_node_without_the_label_is_one_of_its_own() -> None:
    mirror = mirror_of(racked("a", "r1"), racked("b", "r2"), racked("c", "r1"), racked("d"), racked("e"))
    group = make_node_group(mirror, RACK)
    assert domains(group) == {frozenset("ac"), frozenset("b"), frozenset("d"), frozenset("e")}
    assert of_slots(mirror, group, "c", "e") == {frozenset("ac"), frozenset("e")}


def test_without_a_key_and_where_no_node_has_it_each_node_is_a_domain() -> None:
    mirror = mirror_of(racked("a", "r1"), racked("b", "r1"))
    for key in ("", "unknown"):
        assert domains(make_node_group(mirror, key)) == {frozenset("a"), frozenset("b")}


def test_nodes_out_of_the_partition_are_in_no_domain() -> None:
    mirror = mirror_of(racked("a", "r1"), racked("b", "r1"), racked("c", "r2"))
    mirror.set_node_out_of_partition("b")
    group = make_node_group(mirror, RACK)
    by_slot = group.by_slot(mirror.nodes.capacity)
    assert len(by_slot) == mirror.nodes.capacity
    assert [int(by_slot[mirror.nodes.slots[name]]) for name in "abc"] == [0, NO_DOMAIN, 1]
    assert domains(group) == {frozenset("a"), frozenset("c")}
    assert of_slots(mirror, group, "b") == set()


def test_amounts_are_summed_by_domain() -> None:
    mirror = mirror_of(racked("a", "r1"), racked("b", "r2"), racked("c", "r1"))
    group = make_node_group(mirror, RACK)
    by_node = group.nodes.slots + 1
    assert sorted(group.sums(by_node).tolist()) == [2, 4]
