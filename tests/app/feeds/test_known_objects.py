"""What is known of a resource: a list, and each event, changes it by what differs, and passes that on."""

import json
import tracemalloc
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from app.feeds.freshness import ResourceState
from app.feeds.known_objects import KnownObjects, Listing, Unreadable
from app.feeds.objects import MirrorFeed, ObjectReader
from app.objects.resources import RESOURCES
from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.pod import Pod

# What a sync has told so far.


def present(listing: Listing) -> dict[str, Object]:
    """Return the objects of a list that is the first."""
    known = KnownObjects(lambda _: None)
    for _ in known.replace(listing):
        pass
    return {each.full_name: each for each in known}


def test_later_tellings_replace_earlier_ones() -> None:
    listing = Listing()
    for version in "12":
        listing.add(Namespace("a", resource_version=version))
    for uid in ("u1", "u2"):
        listing.add(Unreadable("b", uid))
    assert present(listing) == {"a": Namespace("a", resource_version="2")}
    assert listing.unreadable == {"b": "u2"}


def test_what_went_meanwhile_is_not_there_readable_or_not() -> None:
    readable, unreadable = Namespace("a", uid="ua"), Unreadable("b", "u")
    for gone in (readable, Unreadable("a", "ua"), Namespace("b", uid="u"), Unreadable("b", "u"), Unreadable("c", "uc")):
        listing = Listing()
        listing.add(readable)
        listing.add(unreadable)
        listing.remove(gone)
        assert ("a" in present(listing)) is (gone.full_name != "a")
        assert ("b" in listing.unreadable) is (gone.full_name != "b")
        for again in (Namespace("a", uid="again"), Namespace("a", {"v": "2"}, uid="ua")):
            listing.add(again)
            assert present(listing)["a"] == again


def test_the_readable_state_stays_of_what_became_unreadable() -> None:
    listing = Listing()
    listing.add(Namespace("a"))
    listing.add(Unreadable("a", "u"))
    assert present(listing) == {"a": Namespace("a")}
    assert listing.unreadable == {"a": "u"}


# What is known.


A1: Final = Namespace("a", {"v": "1"}, uid="ua", resource_version="1")
A2: Final = Namespace("a", {"v": "2"}, uid="ua", resource_version="2")
AGAIN: Final = Namespace("a", {"v": "1"}, uid="ub", resource_version="1")
B1: Final = Namespace("b", uid="uc", resource_version="1")
C1: Final = Namespace("c", uid="ud", resource_version="1")


class Reported:
    """Takes down events, and raises where it is to."""

    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []
        self.raise_at = ""

    def __call__(self, event: ClusterEvent) -> None:
        if event.action == self.raise_at:
            self.raise_at = ""
            raise RuntimeError
        self.events.append((event.action, event.object))

    def take(self) -> list[tuple[str, object]]:
        """Return the events since the last time."""
        events, self.events = self.events, []
        return events


@pytest.fixture
def reported() -> Reported:
    return Reported()


def knowing(reported: Reported, *objects: Namespace) -> KnownObjects:
    """Know some objects already."""
    known = KnownObjects(reported)
    for each in objects:
        known.put(each)
    reported.take()
    return known


@pytest.mark.parametrize(
    ("before", "put", "expected"),
    [
        pytest.param(A1, B1, [("Add", B1)], id="unknown"),
        pytest.param(A2, A1, [("Update", A1)], id="versions-are-compared-for-equality-only"),
        pytest.param(A1, A1, [], id="same-version"),
        pytest.param(A1, AGAIN, [("Delete", A1), ("Add", AGAIN)], id="made-again"),
        pytest.param(Namespace("a"), Namespace("a"), [("Update", Namespace("a"))], id="without-a-version"),
    ],
)
def test_an_object_is_told_by_what_differs(
    reported: Reported, before: Namespace, put: Namespace, expected: list[tuple[str, object]]
) -> None:
    known = knowing(reported, before)
    known.put(put)
    assert reported.take() == expected
    assert put in list(known)
    assert len(known) == len({before.name, put.name})


@pytest.mark.parametrize(
    ("name", "uid", "expected"),
    [
        pytest.param("a", "ua", [("Delete", A2)], id="with-its-uid"),
        pytest.param("a", "", [("Delete", A2)], id="without-a-uid"),
        pytest.param("a", "ub", [], id="of-another-uid"),
        pytest.param("b", "ua", [], id="unknown"),
        pytest.param("", "", [], id="without-a-name"),
    ],
)
def test_a_deletion_tells_the_last_known_state(
    reported: Reported, name: str, uid: str, expected: list[tuple[str, object]]
) -> None:
    known = knowing(reported, A1, A2)
    known.drop(name, uid)
    assert reported.take() == expected
    assert len(known) == (0 if expected else 1)


@pytest.mark.parametrize(
    ("name", "uid", "expected"),
    [
        pytest.param("a", "ub", [("Delete", A1)], id="of-another-uid"),
        pytest.param("a", "ua", [], id="of-the-same-uid"),
        pytest.param("a", "", [], id="of-who-knows-which"),
        pytest.param("b", "ub", [], id="of-another-name"),
    ],
)
def test_an_unreadable_object_drives_out_its_predecessor_only(
    reported: Reported, name: str, uid: str, expected: list[tuple[str, object]]
) -> None:
    known = knowing(reported, A1)
    known.drop_predecessor(name, uid)
    assert reported.take() == expected


def listed(present: Sequence[Namespace], unreadable: Mapping[str, str]) -> Listing:
    listing = Listing()
    for name, uid in unreadable.items():
        listing.add(Unreadable(name, uid))
    for each in present:
        listing.add(each)
    return listing


@pytest.mark.parametrize(
    ("present", "unreadable", "expected"),
    [
        pytest.param((B1,), {}, [("Delete", A1)], id="gone"),
        pytest.param((AGAIN, B1), {}, [("Delete", A1), ("Add", AGAIN)], id="made-again"),
        pytest.param((B1,), {"a": "ua"}, [], id="unreadable"),
        pytest.param((B1,), {"a": ""}, [], id="unreadable-without-uid"),
        pytest.param((B1,), {"a": "ub"}, [("Delete", A1)], id="made-again-and-unreadable"),
        pytest.param((B1,), {"c": "ud", "": ""}, [("Delete", A1)], id="gone-and-others-unreadable"),
        pytest.param((A2, B1), {"a": "ua"}, [("Update", A2)], id="readable-before-it-was-not"),
        pytest.param((), {}, [("Delete", A1), ("Delete", B1)], id="nothing-there"),
        # What is gone goes first: there is never more in the mirror than there was in the cluster.
        pytest.param((A1, C1), {}, [("Delete", B1), ("Add", C1)], id="gone-before-new"),
    ],
)
def test_a_replacement_tells_what_differs(
    reported: Reported,
    present: tuple[Namespace, ...],
    unreadable: Mapping[str, str],
    expected: list[tuple[str, object]],
) -> None:
    known = knowing(reported, A1, B1)
    for _ in known.replace(listed(present, unreadable)):
        pass
    assert reported.take() == expected
    retained = {A1.name: A1} if unreadable.get("a") in {"", "ua"} else {}
    assert {each.full_name: each for each in known} == retained | {each.name: each for each in present}


def test_a_known_object_that_was_deleted_while_it_was_listed_is_dropped(reported: Reported) -> None:
    known, listing = knowing(reported, A1, B1), listed((A1, B1), {})
    listing.remove(A1)
    for _ in known.replace(listing):
        pass
    assert reported.take() == [("Delete", A1)]


def test_a_replacement_pauses_after_each_object_that_is_looked_at(reported: Reported) -> None:
    known = knowing(reported, A1, B1)
    seen = [reported.take() for _ in known.replace(listed((B1, C1), {}))]
    assert seen == [[], [], [("Delete", A1)], [], []]  # first, each that is listed is noted
    assert reported.take() == [("Add", C1)]


def test_new_objects_of_a_list_are_told_some_at_a_time_and_before_the_next_change(reported: Reported) -> None:
    known = KnownObjects(reported)
    many = [Namespace(f"n{number}", uid=f"u{number}", resource_version="1") for number in range(150)]
    later = Namespace("n140", uid="u140", resource_version="2")
    counts = [len(reported.events) for _ in known.replace(listed((*many, later), {}))]
    assert {after - before for before, after in pairwise(counts)} == {0, 64}
    assert reported.take() == [*(("Add", each) for each in many), ("Update", later)]
    assert [*known] == [*many[:140], later, *many[141:]]


def test_new_objects_that_could_not_all_be_told_are_new_again(reported: Reported) -> None:
    known, reported.raise_at = KnownObjects(reported), "Add"
    with pytest.raises(RuntimeError):
        [*known.replace(listed((A1, B1), {}))]
    assert not known
    for _ in known.replace(listed((A1, B1), {})):
        pass
    assert reported.take() == [("Add", A1), ("Add", B1)]
    assert len(known) == 2


def test_a_new_object_that_was_told_before_another_could_not_be_is_dropped_once_it_has_gone() -> None:
    mirror = ClusterMirror()

    def apply(event: ClusterEvent) -> None:
        if event.object.uid == "bad":
            raise RuntimeError
        mirror.apply(event)

    known = KnownObjects(apply, mirror.add)
    running, pending, bad = Pod("u", "x", "p", node_name="n"), Pod("v", "x", "q"), Pod("bad", "x", "r")
    listing = Listing()
    for each in (pending, bad, running):
        listing.add(each)
    with pytest.raises(RuntimeError):
        [*known.replace(listing)]
    assert len(known) == 2
    for _ in known.replace(Listing()):
        pass
    assert (mirror.pod_count(), len(mirror.pending)) == (0, 0)


def test_new_objects_that_were_added_otherwise_are_not_told(reported: Reported) -> None:
    known = KnownObjects(reported, lambda added: [each for each in added if each != B1])
    for _ in known.replace(listed((A1, B1, C1), {})):
        pass
    assert reported.take() == [("Add", A1), ("Add", C1)]
    assert sorted(known, key=lambda each: each.name) == [A1, B1, C1]


# Pods, which the mirror holds.


def pods_in(mirror: ClusterMirror) -> KnownObjects:
    return MirrorFeed(mirror, lambda: 0.0, lambda _: None).known(Pod)


def test_of_a_pod_that_the_mirror_holds_the_uid_is_kept() -> None:
    mirror = ClusterMirror()
    known = pods_in(mirror)
    placed, pending = Pod("u", "x", "p", node_name="n", resource_version="7"), Pod("v", "x", "q", resource_version="7")
    for each in (placed, pending):
        known.put(each)
    assert [known.entry_of(each) for each in (placed, pending)] == ["u", pending]
    assert [*known] == [placed, pending]
    raw_placed = msgspec.Raw(
        json.dumps({"metadata": {"namespace": "x", "name": "p", "uid": "u", "resourceVersion": "7"}}).encode()
    )
    assert ObjectReader(ResourceState(RESOURCES[Pod])).read_unless_known(raw_placed, known) == "u"
    for state in (replace(placed, resource_version="8"), replace(placed, resource_version="9", terminal=True)):
        known.put(state)
        assert state in [*known]
    known.drop("x/p")
    assert [*known] == [pending]
    assert not mirror.is_mirrored("u")


def test_two_pods_of_one_uid_are_dropped_by_their_names() -> None:
    """No API server has them. What is left must not be in the way of a list."""
    mirror = ClusterMirror()
    known = pods_in(mirror)
    for name in "pq":
        known.put(Pod("u", "x", name, node_name="n"))
    known.drop("x/p")
    known.drop("x/q")
    assert (len(known), [*known], mirror.pod_count()) == (0, [], 0)


@pytest.mark.parametrize("is_applied", [False, True])
def test_a_list_that_goes_on_after_one_that_broke_off_drops_what_has_gone(is_applied: bool) -> None:  # noqa: FBT001  # a case
    mirror = ClusterMirror()
    known = pods_in(mirror)
    gone, stays, new = (Pod(uid, "x", uid, node_name="n", resource_version="7") for uid in "abc")
    for each in (gone, stays):
        known.put(each)
    listing = Listing(is_applied=is_applied)
    for each in (stays, new):
        listing.add(known.entry_of(each))
    if is_applied:  # a watch has shown the deletion
        known.put(new)
        listing.add(known.entry_of(gone))
        listing.remove(gone)
    for _ in known.replace(listing):
        pass
    assert {each.uid for each in known} == {"b", "c"} == set(mirror.pods.rows)


def test_of_a_name_that_a_first_list_has_twice_the_last_state_counts() -> None:
    mirror, listing = ClusterMirror(), Listing(is_applied=True)
    known = pods_in(mirror)
    pending = Pod("u", "x", "p", resource_version="7")
    for state in (pending, replace(pending, node_name="n", resource_version="8"), Pod("v", "x", "q", node_name="n")):
        listing.add(state)
    listing.remove(Pod("v", "x", "q"))
    for _ in known.replace(listing):
        pass
    assert [*known] == [replace(pending, node_name="n", resource_version="8")]
    assert set(mirror.pods.rows) == {"u"}


def test_namespaces_that_came_and_went_take_no_memory() -> None:
    known = KnownObjects(lambda _: None)
    known.put(Pod("u", "stays", "p"))
    tracemalloc.start()
    try:
        for number in range(2_000):
            assert known.of_version(f"other-{number}/p", "u", "7") is None
            known.put(Pod("v", f"ci-{number}", "p"))
            known.drop(f"ci-{number}/p")
        allocated, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert allocated < 50_000
    assert [each.full_name for each in known] == ["stays/p"]
