"""What a reader is told who comes back to a store: what changed, what is gone, and nothing else."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirror import generation_store
from core.mirror.generation_store import GenerationCounter, GenerationStore


def store_of(*keys: str) -> GenerationStore[str]:
    store: GenerationStore[str] = GenerationStore(GenerationCounter())
    for key in keys:
        store.set(key, f"{key}1")
    return store


def test_generations_count_on_over_all_stores_of_a_counter() -> None:
    counter = GenerationCounter()
    one: GenerationStore[str] = GenerationStore(counter)
    other: GenerationStore[str] = GenerationStore(counter)
    assert [one.set("a", ""), other.set("a", ""), one.touch("a"), other.remove("a"), counter.advance()] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert counter.last == 5


def test_a_reader_is_given_what_changed_since_the_last_change_first() -> None:
    store = store_of("a", "b", "c")
    assert list(store.changed_since(0)) == ["c1", "b1", "a1"]
    store.touch("a")
    store.set("b", "b2")
    assert list(store.changed_since(3)) == ["b2", "a1"]
    assert list(store.changed_since(4)) == ["b2"]
    assert list(store.changed_since(5)) == []


def test_a_value_has_the_generation_of_its_last_change() -> None:
    store = store_of("a", "b", "c")
    store.touch("a")
    assert list(store.generations()) == [("b", 2), ("c", 3), ("a", 4)]


def test_a_reader_looks_at_no_more_values_than_have_changed() -> None:
    store = store_of(*map(str, range(100)))
    store.touch("7")
    changed = store.changed_since(100)
    assert next(changed) == "71"
    assert next(changed, None) is None


def test_removing_what_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        store_of("a").remove("b")


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
    held = {"a", "b", "c", "d", "e"}
    assert expected == set(store.deleted_since(since, held))


changes = st.tuples(st.sampled_from(("set", "touch", "remove", "look")), st.sampled_from("abcd"))


@given(st.lists(changes, max_size=30), st.integers(1, 4))
def test_a_reader_who_looks_now_and_then_holds_what_the_store_holds(
    steps: Sequence[tuple[str, str]], journal_length: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(generation_store, "JOURNAL_LENGTH", journal_length)
        counter = GenerationCounter()
        store: GenerationStore[str] = GenerationStore(counter)
        held: dict[str, str] = {}
        seen = 0
        for number, (step, key) in enumerate([*steps, ("look", "")]):
            if step == "set":
                store.set(key, f"{key}{number}")
            elif step == "touch" and key in store.values:
                store.touch(key)
            elif step == "remove" and key in store.values:
                store.remove(key)
            elif step == "look":
                for gone in store.deleted_since(seen, held):
                    held.pop(gone, None)
                held.update((value[0], value) for value in store.changed_since(seen))
                seen = counter.last
                assert dict(store.values) == held
