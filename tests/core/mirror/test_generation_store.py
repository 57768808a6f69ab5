"""What a reader is told who comes back to a store: what changed, what is gone, and nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.events import Object
from core.mirror import generation_store
from core.mirror.generation_store import GenerationCounter, GenerationStore
from core.objects.kinds import Namespace, PodDisruptionBudget, ReplicaSet
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.mirror.values import budget, mirror_of, node, pod, replica_set, selecting, tell


def store_of(*keys: str) -> GenerationStore[str]:
    store: GenerationStore[str] = GenerationStore(GenerationCounter())
    for key in keys:
        store.set(key, f"{key}1")
    return store


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        pytest.param(6, {"d", "e"}, id="within-the-journal"),
        pytest.param(5, {"c", "d", "e"}, id="just-within-the-journal"),
        pytest.param(4, {"a", "c", "d", "e"}, id="beyond-the-journal-all-that-is-held-is-looked-through"),
        pytest.param(0, {"a", "c", "d", "e"}, id="long-before-the-journal"),
    ],
)
def test_a_reader_who_missed_more_than_the_journal_holds_looks_through_all_that_it_has(
    monkeypatch: pytest.MonkeyPatch, since: int, expected: set[str]
) -> None:
    monkeypatch.setattr(generation_store, "JOURNAL_LENGTH", 3)
    store = store_of("a", "b", "c", "d")
    store.remove("a")  # 5, let go by the fourth removal
    store.remove("c")  # 6
    store.remove("d")  # 7
    store.set("e", "e1")  # 8
    store.remove("e")  # 9
    stored = {"a", "b", "c", "d", "e"}
    assert expected == set(store.deleted_since(since, stored))


changes = st.tuples(st.sampled_from(("set", "touch", "remove", "look")), st.sampled_from("abcd"))


@given(st.lists(changes, max_size=30), st.integers(1, 4))
def test_a_reader_who_looks_now_and_then_holds_what_the_store_holds(
    steps: Sequence[tuple[str, str]], journal_length: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(generation_store, "JOURNAL_LENGTH", journal_length)
        counter = GenerationCounter()
        store: GenerationStore[str] = GenerationStore(counter)
        stored: dict[str, str] = {}
        seen = 0
        for number, (step, key) in enumerate([*steps, ("look", "")]):
            if step == "set":
                store.set(key, f"{key}{number}")
            elif step == "touch" and key in store.values:
                store.touch(key)
            elif step == "remove" and key in store.values:
                store.remove(key)
            elif step == "look":
                for gone in store.deleted_since(seen, stored):
                    stored.pop(gone, None)
                stored.update((value[0], value) for value in store.changed_since(seen))
                seen = counter.last
                assert dict(store.values) == stored


RED = budget("a/red", selecting(team="red"))
BLUE = budget("a/blue", selecting(team="blue"))
WEB = replica_set("a/red", app="web")


def test_objects_are_held_by_kind_and_full_name() -> None:
    mirror = mirror_of(RED, BLUE, WEB)
    assert mirror.objects(PodDisruptionBudget) == {"a/red": RED, "a/blue": BLUE}
    assert mirror.objects(ReplicaSet) == {"a/red": WEB}


def test_a_change_of_an_object_takes_a_generation_and_a_repetition_none() -> None:
    mirror = mirror_of(RED)
    assert mirror.generation == 1
    tell(mirror, "Update", budget("a/red", selecting(team="red")))
    assert mirror.generation == 1
    tell(mirror, "Update", budget("a/red", selecting(team="red"), version="2"))
    assert mirror.generation == 2
    tell(mirror, "Delete", RED)
    assert mirror.generation == 3


@pytest.mark.parametrize("kind", [Pod, Node, Namespace])
def test_kinds_that_stand_elsewhere_are_refused_rather_than_answered_with_nothing(kind: type[Object]) -> None:
    mirror = mirror_of(node("n"), pod("p", "n"), Namespace("x"))
    with pytest.raises(TypeError, match=kind.__name__):
        mirror.objects(kind)
