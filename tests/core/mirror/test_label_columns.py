"""The values of labels over slots and over the nodes of a request."""

from random import Random
from typing import Final
from weakref import ref

import pytest

from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchLabels, LabelColumns
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, UNSEEN
from tests.core.mirror.values import mirror_of, node, passes_over_nodes, tell

KEYS: Final = ("zone", "disk", "gen", "rare")


def values_on(mirror: ClusterMirror, key: str) -> dict[str, str]:
    """Return the value of a label by node, as its column has it."""
    column = mirror.derived(LabelColumns).of((key,)).get(key)
    if column is None:
        return {}
    ids = {name: int(column.of_slot[slot]) for name, slot in mirror.nodes.slots.items()}
    return {name: column.values[value_id] for name, value_id in ids.items() if value_id != ABSENT}


def test_a_key_that_no_node_has_needs_no_column_and_no_look_at_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(node("a", labels={"zone": "z"}))
    passes = passes_over_nodes(mirror, monkeypatch)
    assert mirror.derived(LabelColumns).of([f"key-{number}" for number in range(1000)]) == {}
    assert passes == []


def test_all_columns_that_are_missing_are_made_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"key-{number}" for number in range(100)]
    mirror = mirror_of(node("a", labels=dict.fromkeys(keys, "x")), node("b", labels={keys[7]: "y", "other": "z"}))
    columns = mirror.derived(LabelColumns)
    columns.of(keys[:1])
    passes = passes_over_nodes(mirror, monkeypatch)
    assert columns.of(keys).keys() == set(keys)
    assert len(passes) == 1
    assert {key: values_on(mirror, key) for key in keys[6:8]} == {
        keys[6]: {"a": "x"},
        keys[7]: {"a": "x", "b": "y"},
    }
    assert len(passes) == 1


def test_no_column_is_dropped_before_the_request_that_needs_it_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", 1000)
    keys = [f"key-{number}" for number in range(100)]
    mirror = mirror_of(node("a", labels=dict.fromkeys(keys, "x")))
    columns = mirror.derived(LabelColumns)
    found = columns.of(keys)
    assert [found[key].values for key in keys] == [["x"]] * len(keys)
    assert columns.nbytes <= 1000


def test_the_columns_asked_for_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", 500)  # two: each has 16 slots and a value
    mirror = mirror_of(node("a", labels={"zone": "z", "disk": "d", "gen": "1"}))
    columns = mirror.derived(LabelColumns)
    first = {key: ref(column) for key, column in columns.of(("zone", "disk")).items()}
    assert columns.of(("zone",))["zone"] is first["zone"]()
    columns.of(("gen",))
    assert columns.of(("zone",))["zone"] is first["zone"]()
    assert first["disk"]() is None


def test_a_column_in_use_is_not_made_again_and_follows_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.label_columns.MAX_BYTES", 1)  # one column is kept
    mirror = mirror_of(node("a", labels={"zone": "z", "disk": "d"}))
    columns, passes = mirror.derived(LabelColumns), passes_over_nodes(mirror, monkeypatch)
    in_use = columns.of(("zone", "disk"))
    others = [columns.of((key,))[key] for key in ("zone", "disk", "zone", "disk")]
    assert [column is in_use[column.key] for column in others] == [True] * 4
    assert len(passes) == 1
    tell(mirror, "Update", node("a", labels={"zone": "y", "disk": "e"}))
    assert [values_on(mirror, key) for key in ("zone", "disk")] == [{"a": "y"}, {"a": "e"}]


@pytest.mark.parametrize("seed", range(5))
def test_columns_follow_any_changes_of_nodes(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a test that is the same each time
    mirror = mirror_of()
    labels: dict[str, dict[str, str]] = {}
    for _ in range(200):
        name = f"n{random.randrange(40)}"
        if name in labels and random.random() < 0.3:
            tell(mirror, "Delete", node(name, labels=labels.pop(name)))
        else:
            labels[name] = {key: random.choice("abc") for key in KEYS if random.random() < 0.5}
            tell(mirror, "Add", node(name, labels=labels[name]))
        mirror.derived(LabelColumns).of(random.sample(KEYS, 2))
        for key in KEYS:
            assert values_on(mirror, key) == {name: of[key] for name, of in labels.items() if key in of}


# A batch, with nodes that the mirror does not know.


def batch_of(mirror: ClusterMirror) -> NodeBatch:
    """Return two known nodes, two strangers, and a name of which nothing is known."""
    unmirrored = {1: node("new", labels={"gen": "7", "rare": "x"}), 3: node("newer", labels={"gen": "new"})}
    return mirror.batch(["a", "new", "nobody", "newer", "b"], unmirrored)


@pytest.fixture
def mirror() -> ClusterMirror:
    return mirror_of(node("a", labels={"gen": "7"}), node("b", labels={"gen": "-3", "zone": "z"}), node("c"))


def test_values_are_found_on_known_nodes_and_strangers(mirror: ClusterMirror) -> None:
    column = BatchLabels(mirror, batch_of(mirror), KEYS).of("gen")
    assert column is not None
    assert column.present().tolist() == [True, True, False, True, True]
    listed = [column.among(values) for values in (["7"], ["new", "7"], ["-3", "none"])]
    assert [found.tolist() for found in listed if found is not None] == [
        [True, True, False, False, False],
        [True, True, False, True, False],
        [False, False, False, False, True],
    ]
    assert column.among(["none", "8"]) is None
    numbers, valid = column.numbers()
    assert [number if is_one else None for number, is_one in zip(numbers, valid, strict=True)] == [7, 7, None, None, -3]


def test_a_value_of_strangers_alone_is_unseen_for_counters(mirror: ClusterMirror) -> None:
    column = BatchLabels(mirror, batch_of(mirror), KEYS).of("gen")
    assert column is not None
    seven, three = column.column.ids["7"], column.column.ids["-3"]
    assert column.topology_ids().tolist() == [seven, seven, ABSENT, UNSEEN, three]
    assert column.id_of("7") == seven
    assert column.id_of("new") not in {None, seven, three}
    assert column.id_of("none") is None


def test_a_label_that_only_a_stranger_has_is_found_there(mirror: ClusterMirror) -> None:
    labels = BatchLabels(mirror, batch_of(mirror), KEYS)
    rare = labels.of("rare")
    assert rare is not None
    assert rare.present().tolist() == [False, True, False, False, False]
    assert labels.of("disk") is None


def test_the_numbers_of_a_column_follow_its_values(mirror: ClusterMirror) -> None:
    column = mirror.derived(LabelColumns).of(("gen",))["gen"]
    assert sorted(column.numbers()[0].tolist()) == [-3, 7]
    tell(mirror, "Update", node("b", labels={"gen": "99999999999999999999"}))
    numbers, valid = column.numbers()
    assert [int(number) for number, is_one in zip(numbers, valid, strict=True) if is_one] == [7]
