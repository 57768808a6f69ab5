"""Objects of kinds without a rule of their own, as the mirror holds them."""

import pytest

from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace, PodDisruptionBudget, ReplicaSet
from core.objects.labels import EVERYTHING
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.mirror.values import budget, mirror_of, node, pod, replica_set, selecting, tell

RED = budget("a/red", selecting(team="red"))
BLUE = budget("a/blue", selecting(team="blue"))
WEB = replica_set("a/red", app="web")


def test_objects_are_held_by_kind_and_full_name() -> None:
    mirror = mirror_of(RED, BLUE, WEB)
    assert mirror.objects(PodDisruptionBudget) == {"a/red": RED, "a/blue": BLUE}
    assert mirror.objects(ReplicaSet) == {"a/red": WEB}


def test_a_kind_of_which_there_is_nothing_has_no_objects() -> None:
    assert ClusterMirror().objects(ReplicaSet) == {}


def test_the_last_state_of_an_object_is_held_until_it_is_deleted() -> None:
    mirror = mirror_of(RED)
    changed = budget("a/red", selecting(team="green"))
    tell(mirror, "Update", changed, WEB)
    assert mirror.objects(PodDisruptionBudget) == {"a/red": changed}
    tell(mirror, "Delete", RED)
    assert (mirror.objects(PodDisruptionBudget), mirror.objects(ReplicaSet)) == ({}, {"a/red": WEB})


def test_deleting_an_unknown_object_does_nothing() -> None:
    mirror = mirror_of(WEB)
    generation = mirror.generation
    tell(mirror, "Delete", RED, replica_set("b/red"))
    assert (mirror.objects(ReplicaSet), mirror.generation) == ({"a/red": WEB}, generation)


def test_a_change_of_an_object_takes_a_generation_and_a_repetition_none() -> None:
    mirror = mirror_of(RED)
    assert mirror.generation == 1
    tell(mirror, "Update", budget("a/red", selecting(team="red")))
    assert mirror.generation == 1
    tell(mirror, "Update", budget("a/red", selecting(team="red"), version="2"))
    assert mirror.generation == 2
    tell(mirror, "Delete", RED)
    assert mirror.generation == 3


def test_what_is_given_out_follows_every_change_and_cannot_be_written() -> None:
    mirror = mirror_of(RED)
    held = mirror.objects(PodDisruptionBudget)
    tell(mirror, "Add", budget("b/x", EVERYTHING))
    assert set(held) == {"a/red", "b/x"}
    with pytest.raises(TypeError):
        held["c/y"] = RED  # type: ignore[index]  # that is what is tried


@pytest.mark.parametrize("kind", [Pod, Node, Namespace])
def test_kinds_that_stand_elsewhere_are_refused_rather_than_answered_with_nothing(kind: type[Object]) -> None:
    mirror = mirror_of(node("n"), pod("p", "n"), Namespace("x"))
    with pytest.raises(TypeError, match=kind.__name__):
        mirror.objects(kind)
