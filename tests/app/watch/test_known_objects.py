"""What each telling of the API server changes of what is known."""

from collections.abc import Mapping
from typing import Final

import pytest

from app.watch.objects import KnownObjects
from core.events import ClusterEvent
from core.objects.kinds import Namespace
from core.objects.pod import Pod

A1: Final = Namespace("a", {"v": "1"}, uid="ua", resource_version="1")
A2: Final = Namespace("a", {"v": "2"}, uid="ua", resource_version="2")
AGAIN: Final = Namespace("a", {"v": "1"}, uid="ub", resource_version="1")
B1: Final = Namespace("b", uid="uc", resource_version="1")
C1: Final = Namespace("c", uid="ud", resource_version="1")


class Told:
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
def told() -> Told:
    return Told()


def knowing(told: Told, *objects: Namespace) -> KnownObjects:
    """Know some objects already."""
    known = KnownObjects(told)
    for each in objects:
        known.put(each)
    told.take()
    return known


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        pytest.param(B1, [("Add", B1)], id="unknown"),
        pytest.param(A2, [("Update", A2)], id="other-version"),
        pytest.param(A1, [], id="same-version"),
        pytest.param(AGAIN, [("Delete", A1), ("Add", AGAIN)], id="made-again"),
    ],
)
def test_an_object_is_told_by_what_differs(told: Told, put: Namespace, expected: list[tuple[str, object]]) -> None:
    known = knowing(told, A1)
    known.put(put)
    assert told.take() == expected
    assert put in list(known)
    assert A1 not in list(known) or put in (A1, B1)


def test_versions_are_compared_for_equality_only(told: Told) -> None:
    known = knowing(told, A2)
    known.put(A1)
    assert told.take() == [("Update", A1)]


def test_an_object_without_a_version_may_be_another_each_time(told: Told) -> None:
    bare = Namespace("a")
    known = knowing(told, bare)
    known.put(bare)
    assert told.take() == [("Update", bare)]


def test_objects_are_known_by_their_full_names(told: Told) -> None:
    known = KnownObjects(told)
    one, two = Pod("u1", "x", "p"), Pod("u2", "y", "p")
    known.put(one)
    known.put(two)
    assert (len(known), list(known)) == (2, [one, two])
    known.drop("x/p")
    assert (len(known), list(known)) == (1, [two])


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
    told: Told, name: str, uid: str, expected: list[tuple[str, object]]
) -> None:
    known = knowing(told, A1, A2)
    known.drop(name, uid)
    assert told.take() == expected
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
    told: Told, name: str, uid: str, expected: list[tuple[str, object]]
) -> None:
    known = knowing(told, A1)
    known.drop_predecessor(name, uid)
    assert told.take() == expected


@pytest.mark.parametrize(
    ("present", "unreadable", "expected"),
    [
        pytest.param((A1, B1), {}, [], id="nothing-new"),
        pytest.param((A2, B1), {}, [("Update", A2)], id="other-version"),
        pytest.param((B1,), {}, [("Delete", A1)], id="gone"),
        pytest.param((A1, B1, C1), {}, [("Add", C1)], id="new"),
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
    told: Told, present: tuple[Namespace, ...], unreadable: Mapping[str, str], expected: list[tuple[str, object]]
) -> None:
    known = knowing(told, A1, B1)
    for _ in known.replace({each.name: each for each in present}, unreadable):
        pass
    assert told.take() == expected
    kept = {A1.name: A1} if unreadable.get("a") in {"", "ua"} else {}
    assert {each.full_name: each for each in known} == kept | {each.name: each for each in present}


def test_a_replacement_pauses_after_each_object_that_is_looked_at(told: Told) -> None:
    known = knowing(told, A1, B1)
    seen = [told.take() for _ in known.replace({"b": B1, "c": C1}, {})]
    assert seen == [[("Delete", A1)], [], [], [("Add", C1)]]


def test_of_an_object_that_is_told_again_the_first_telling_is_kept(told: Told) -> None:
    known = knowing(told, A1)
    for _ in known.replace({"a": Namespace("a", {"v": "1"}, uid="ua", resource_version="1")}, {}):
        pass
    assert [object_ is A1 for object_ in known] == [True]
