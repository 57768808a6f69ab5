"""The measured usage beside what pods request: columns that follow events, generations, and measurements that age."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT
from core.mirror.node_values import NodeUsage, judged, outdated
from core.objects.node import NodeMetrics, Usage
from tests.builders import make_node
from tests.core.decoded import mirror_of, node_of, tell

NODE: Final = make_node("n1").allocatable(cpu="3", memory="7Gi").capacity(cpu="4", memory="8Gi")
MEASURED: Final = NodeMetrics(
    name="n1",
    measured_at=1000,
    covers_pods_until="1970-01-01T00:15:40Z",
    cpu=Usage(800, 100),
    memory=Usage(2**30),
)
GIB: Final = 2**30


class Told:
    """Keeps the changes of objects."""

    hears: Final = (ObjectChange,)

    def __init__(self) -> None:
        self.changes: list[ObjectChange] = []

    def changed(self, change: Change) -> None:
        if isinstance(change, ObjectChange):
            self.changes.append(change)


def columns(mirror: ClusterMirror, name: str = "n1") -> list[tuple[int, ...]]:
    """Return (measured, average, deviation, capacity, allocatable) of cpu and memory."""
    usage, batch = mirror.derived(NodeUsage), mirror.batch([name])
    found = [usage.of(resource, batch) for resource in range(2)]
    return [(bool(each[0][0]), *(int(column[0]) for column in each[1:])) for each in found]


NOT_MEASURED: Final = [(False, 0, 0, 4000, 3000), (False, 0, 0, 8 * GIB, 7 * GIB)]
WHOLE: Final = [(True, 800, 100, 4000, 3000), (True, GIB, 0, 8 * GIB, 7 * GIB)]


@pytest.mark.parametrize("measured_first", [False, True])
def test_a_measurement_is_held_whether_its_node_is_known_before_or_after(*, measured_first: bool) -> None:
    mirror = mirror_of()
    mirror.derived(NodeUsage)
    events = [ClusterEvent("Add", node_of(NODE)), ClusterEvent("Add", MEASURED)]
    for event in reversed(events) if measured_first else events:
        mirror.apply(event)
    assert columns(mirror) == WHOLE


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


def test_columns_grow_with_the_nodes() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Add", MEASURED))
    assert columns(mirror) == WHOLE
    tell(mirror, "Add", *(make_node(f"more-{number}").allocatable(cpu="1") for number in range(200)))
    assert columns(mirror) == WHOLE
    assert columns(mirror, "more-199")[0] == (False, 0, 0, 1000, 1000)


def test_a_stranger_has_no_usage() -> None:
    mirror = mirror_of(NODE)
    mirror.apply(ClusterEvent("Add", replace(MEASURED, name="stranger")))
    assert columns(mirror, "stranger") == [(False, 0, 0, 0, 0)] * 2


def test_a_measurement_takes_a_generation_and_tells_of_its_node_and_the_same_again_does_not() -> None:
    mirror = mirror_of(NODE)
    told = Told()
    mirror.listen(told)
    before = mirror.generation
    mirror.apply(ClusterEvent("Update", MEASURED))
    mirror.apply(ClusterEvent("Update", replace(MEASURED)))
    assert mirror.generation == before + 1
    assert told.changes == [ObjectChange(NodeMetrics, mirror.nodes.slots["n1"], None, MEASURED)]


def test_a_measurement_of_an_unknown_node_is_of_no_slot() -> None:
    mirror = mirror_of()
    told = Told()
    mirror.listen(told)
    mirror.apply(ClusterEvent("Update", MEASURED))
    assert [change.slot for change in told.changes] == [NO_SLOT]


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
