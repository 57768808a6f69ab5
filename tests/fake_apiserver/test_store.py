"""The store: what is made of objects, and which past can still be told."""

import pytest

from tests.fake_apiserver.asking import pod
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.store import Collection, Store
from tests.fake_apiserver.stored import Stored


def keys(collection: Collection, version: int) -> list[str] | None:
    """Tell the keys of a snapshot."""
    snapshot = collection.snapshot(version)
    return None if snapshot is None else [stored.key for stored in snapshot.items]


def test_an_object_gets_what_it_lacks_and_keeps_what_it_has() -> None:
    store = Store()
    made = store.create(PODS.path, {"kind": "Pod", "metadata": {"name": "a", "uid": None}, "spec": {"x": 1}})
    assert made["metadata"].pop("creationTimestamp").endswith("Z")
    assert made["metadata"].pop("uid")
    assert made == {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "2"}, "spec": {"x": 1}}
    given = {"name": "b", "namespace": "x", "uid": "u", "creationTimestamp": "then", "resourceVersion": "77"}
    assert store.create(PODS.path, {"metadata": given})["metadata"] == {**given, "resourceVersion": "3"}
    assert "namespace" not in store.create(NODES.path, {"metadata": {"name": "n"}})["metadata"]


def test_what_is_given_is_left_as_it_is() -> None:
    store, body = Store(), pod("a")
    store.create(PODS.path, body)
    store.update(PODS.path, body)
    assert body == pod("a")


def test_an_update_keeps_uid_and_creation_and_nothing_else() -> None:
    store = Store()
    made = store.create(PODS.path, {"metadata": {"name": "a", "labels": {"app": "x"}, "creationTimestamp": "then"}})
    changed = store.update(PODS.path, {"metadata": {"name": "a", "uid": "another"}, "spec": {}})
    expected = {key: value for key, value in made["metadata"].items() if key != "labels"}
    assert changed == {"metadata": {**expected, "resourceVersion": "3"}, "spec": {}}
    assert store.get(PODS.path, "a", "default") == changed


def test_what_is_not_there_cannot_be_changed_and_what_is_not_made_again() -> None:
    store = Store()
    store.create(PODS.path, pod("a"))
    with pytest.raises(ValueError, match="pods default/a already exists"):
        store.create(PODS.path, pod("a"))
    with pytest.raises(KeyError):
        store.update(PODS.path, pod("b"))
    with pytest.raises(KeyError):
        store.delete(PODS.path, "a", "another")
    assert (store.version, len(store.objects(PODS.path))) == (2, 1)
    assert store.get(PODS.path, "a") is None


def test_a_deletion_returns_the_last_state() -> None:
    store = Store()
    made = store.create(PODS.path, pod("a"))
    assert store.delete(PODS.path, "a", "default") == made
    assert store.objects(PODS.path) == []
    assert store.version == 3


def test_events_are_found_by_version() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.create(PODS.path, pod(name))
        store.create(NODES.path, {"metadata": {"name": name}})
    pods = store.collections[PODS.path]
    assert [pods.position_after(version) for version in (0, 1, 2, 3, 4, 5, 6, 7)] == [0, 0, 1, 1, 2, 2, 3, 3]
    events = pods.events_from(1)
    assert events is not None
    assert [event.version for event in events] == [4, 6]
    assert pods.events_from(pods.end) == []


def test_the_past_is_told_by_undoing_events() -> None:
    store = Store()
    pods = store.collections[PODS.path]
    store.create(PODS.path, pod("b"))
    store.create(PODS.path, pod("a"))
    store.delete(PODS.path, "b", "default")
    store.update(PODS.path, pod("a", "Failed"))
    assert [keys(pods, version) for version in (1, 2, 3, 4, 5)] == [
        [],
        ["default/b"],
        ["default/a", "default/b"],
        ["default/a"],
        ["default/a"],
    ]
    before, after = pods.snapshot(4), pods.snapshot(5)
    assert before is not None
    assert after is not None
    assert [snapshot.items[0].phase for snapshot in (before, after)] == ["Running", "Failed"]


def test_compaction_forgets_the_past_of_one_resource() -> None:
    store = Store()
    store.create(PODS.path, pod("a"))
    store.create(NODES.path, {"metadata": {"name": "n"}})
    pods, nodes = store.collections[PODS.path], store.collections[NODES.path]
    assert keys(pods, 2) == ["default/a"]
    store.compact(PODS.path)
    assert (pods.floor, nodes.floor) == (3, 0)
    assert keys(pods, 2) is None
    assert keys(pods, 3) == ["default/a"]
    assert keys(nodes, 2) == []
    assert pods.events_from(0) is None
    assert pods.events_from(pods.end) == []


def test_history_is_bounded_and_older_versions_expire() -> None:
    store = Store(history=3)
    pods = store.collections[PODS.path]
    for number in range(6):
        store.create(PODS.path, pod(f"p{number}"))
    # Six are twice three: the older half went.
    assert (pods.floor, pods.end) == (4, 6)
    assert pods.events_from(2) is None
    assert len(pods.events_from(3) or ()) == 3
    assert keys(pods, 3) is None
    assert keys(pods, 4) == ["default/p0", "default/p1", "default/p2"]


def test_a_snapshot_outlives_the_history_until_there_are_too_many() -> None:
    store = Store(history=1)
    pods = store.collections[PODS.path]
    store.create(PODS.path, pod("a"))
    assert keys(pods, 2) == ["default/a"]
    for number in range(15):
        store.update(PODS.path, pod("a", str(number)))
        pods.snapshot(store.version)
    assert keys(pods, 2) == ["default/a"]
    store.update(PODS.path, pod("a"))
    pods.snapshot(store.version)
    assert keys(pods, 2) is None


def test_a_snapshot_is_made_once_for_a_version() -> None:
    store = Store()
    store.create(PODS.path, pod("a"))
    pods = store.collections[PODS.path]
    assert pods.snapshot(2) is pods.snapshot(2)


def test_the_place_of_a_key_is_found_in_a_snapshot() -> None:
    store = Store()
    for name in ("b", "d", "f"):
        store.create(NODES.path, {"metadata": {"name": name}})
    snapshot = store.collections[NODES.path].snapshot(4)
    assert snapshot is not None
    assert [snapshot.index_of(key) for key in ("a", "b", "b\0", "c", "f", "f\0")] == [0, 0, 1, 1, 2, 3]


def test_loaded_objects_make_no_events_and_their_past_is_not_known() -> None:
    store = Store()
    store.load(PODS.path, [Stored("x", "a", "u", 40, b"}"), Stored("x", "b", "v", 41, b"}")])
    pods = store.collections[PODS.path]
    assert (store.version, pods.end, pods.floor) == (41, 0, 41)
    assert list(pods.objects) == ["x/a", "x/b"]
    assert store.create(PODS.path, pod("c"))["metadata"]["resourceVersion"] == "42"


def test_bytes_take_the_next_version_and_no_other() -> None:
    store = Store()
    heard = []
    store.collections[PODS.path].listeners.add(lambda: heard.append(store.version))
    first = Stored("x", "a", "u", 2, b'"metadata":{"resourceVersion":"2"}}')
    store.put(PODS.path, None, first)
    with pytest.raises(AssertionError):
        store.put(PODS.path, first, Stored("x", "a", "u", 4, b"}"))
    store.remove(PODS.path, first)
    events = store.collections[PODS.path].events_from(0) or []
    assert [(event.version, event.before, event.after) for event in events] == [(2, None, first), (3, first, None)]
    assert heard == [2, 3]
