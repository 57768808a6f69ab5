"""What is read of every node, by distinct value."""

from random import Random

import pytest

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_values import LabelProjections, LabelValues, NodeValues, labels_of
from core.objects.node import Node
from tests.core.mirror.values import mirror_of, node, tell

LENGTHS = {None: -1, "": 0, "ssd": 3, "nvme": 4}


def disk(node: Node) -> str | None:
    return node.labels.get("disk")


def followed(mirror: ClusterMirror) -> NodeValues[str]:
    """Return values that hear of every change."""
    values = NodeValues(mirror, disk)
    mirror.listen(values)
    return values


def judged(values: NodeValues[str], mirror: ClusterMirror, *names: str) -> list[int]:
    results: list[int] = values.judged(mirror.batch(names), LENGTHS.__getitem__).tolist()
    return results


def with_disk(name: str, kind: str | None = None) -> Node:
    return node(name, labels={} if kind is None else {"disk": kind})


def test_values_are_judged_by_node_in_the_order_of_the_batch() -> None:
    mirror = mirror_of(with_disk("a", "ssd"), with_disk("b"), with_disk("c", ""), with_disk("d", "nvme"))

    assert judged(followed(mirror), mirror, "d", "b", "a", "c", "a") == [4, -1, 3, 0, 3]


def test_a_value_is_judged_once_for_all_nodes_that_have_it() -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", ("ssd", None)[number % 2]) for number in range(40)))
    asked: list[str | None] = []

    def judge(value: str | None) -> int:
        asked.append(value)
        return len(asked)

    NodeValues(mirror, disk).judged(mirror.batch(list(mirror.nodes.slots)), judge)

    assert sorted(asked, key=str) == [None, "ssd"]


def test_more_values_than_nodes_asked_about_are_not_all_judged() -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", str(number)) for number in range(40)))
    asked: list[str | None] = []

    def judge(value: str | None) -> int:
        asked.append(value)
        return int(value or -1)

    found = NodeValues(mirror, disk).judged(mirror.batch(["n7", "n39", "n7"]), judge)

    assert found.tolist() == [7, 39, 7]
    assert sorted(asked, key=str) == ["39", "7"]


@pytest.mark.parametrize("known", [1, 40])
def test_strangers_are_judged_by_their_own_object_and_unknown_names_get_0(known: int) -> None:
    mirror = mirror_of(*(with_disk(f"n{number}", "nvme") for number in range(known)))
    batch = mirror.batch(["s", "n0", "unknown", "bare"], {0: with_disk("s", "ssd"), 3: with_disk("bare")})

    assert followed(mirror).judged(batch, LENGTHS.__getitem__).tolist() == [3, 4, 0, -1]


def test_a_batch_of_no_nodes_has_no_results() -> None:
    mirror = mirror_of(with_disk("a", "ssd"))

    assert judged(followed(mirror), mirror) == []


def test_values_kept_by_events_are_those_that_are_read_anew() -> None:
    random = Random(5)  # noqa: S311 - no secret; the same in every run
    mirror = mirror_of()
    values = followed(mirror)
    for _ in range(300):
        name, kind = f"n{random.randrange(40)}", random.choice((None, "", "ssd", "nvme"))
        mirror.apply(ClusterEvent(random.choice(("Update", "Update", "Delete")), with_disk(name, kind)))
        names = list(mirror.nodes.slots)
        assert judged(values, mirror, *names) == judged(NodeValues(mirror, disk), mirror, *names)


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


def test_a_projection_is_made_once() -> None:
    projections = mirror_of().derived(LabelProjections)

    assert projections.of(("a", "b")) is projections.of(("a", "b"))
    assert projections.of(("a", "b")) is not projections.of(("b", "a"))


def test_projections_follow_the_labels_of_nodes() -> None:
    mirror = mirror_of(node("a", labels={"zone": "z"}))
    projections = mirror.derived(LabelProjections)
    projections.of(("zone",))
    tell(mirror, "Update", node("a", labels={"zone": "y"}))
    tell(mirror, "Add", node("b"))

    assert values_of(projections, mirror, "zone") == [("y",), (None,)]


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
