"""Slots of nodes, found by the bytes of their names."""

import json
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.mirror.name_index import NameIndex

MAX_LENGTH = 125
NAMES = st.one_of(
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?", fullmatch=True),
    st.integers(0, 200).map("node-{:05d}".format),
    st.text(min_size=1, max_size=5),
)


def index_of(names: Iterable[str]) -> NameIndex:
    index = NameIndex()
    for slot, name in enumerate(names):
        index.add(name, slot)
    return index


def written(names: Sequence[str]) -> bytes:
    """Write names as Go does, without the brackets."""
    return json.dumps(names, separators=(",", ":"), ensure_ascii=False).encode()[1:-1]


def found(index: NameIndex, text: bytes) -> list[int] | None:
    slots = index.find(b'"not-this"' + text + b',"nor-this"', len(b'"not-this"'), len(b'"not-this"' + text))
    return None if slots is None else slots.tolist()


@pytest.mark.parametrize(
    "name_of",
    [
        pytest.param("node-{0:05d}".format, id="numbered"),
        pytest.param("ip-10-0-{0}.eu-west-1.compute.internal".format, id="of-different-lengths"),
        pytest.param(lambda number: f"pool-{number * 2654435761 % 2**32:08x}", id="without-a-pattern"),
    ],
)
def test_thousands_of_names_are_found_in_any_order(name_of: Callable[[int], str]) -> None:
    names = [name_of(number) for number in range(15_000)]
    index = index_of(names)
    requested = [(number * 37) % 15_000 for number in range(15_000)]
    assert requested == found(index, written([names[slot] for slot in requested]))
    for slot in range(0, 15_000, 2):
        index.remove(slot)
    assert list(range(1, 15_000, 2)) == found(index, written(names[1::2]))
    assert not any(found(index, written([name])) for name in names[:200:2])


def test_a_name_is_not_found_by_its_beginning_nor_with_something_behind_it() -> None:
    index = index_of(["node-1234", "node-1234-5678", "other"])
    assert found(index, written(["node-1234"])) == [0]
    assert found(index, written(["node-123"])) is None
    assert found(index, written(["node-12345"])) is None
    assert found(index, written(["node-1234-567"])) is None


def test_a_name_may_have_125_bytes() -> None:
    names = ["n" * MAX_LENGTH, "n" * (MAX_LENGTH + 1), "short"]
    index = index_of(names)
    assert found(index, written(names[::2])) == [0, 2]
    assert found(index, written(names[1:])) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'"',
        b'""',
        b'"","a"',
        b'"a",',
        b',"a"',
        b'"a","b',
        b'a","b"',
        b'"a" ,"b"',
        b'"a", "b"',
        b' "a"',
        b'"a"\n',
        b'"a""b"',
        b'"a",,"b"',
        b'"a","","b"',
        b'"a",",","b"',
        b'"a","b"]',
        b'"a",null',
        b'"\\u0061"',
        b'"a\0"',
        b'"a\xff"',
        b'"a","a","a"',
    ],
)
def test_whatever_else_is_not_found(text: bytes) -> None:
    assert found(index_of(["a", "b"]), text) is None


@pytest.mark.parametrize("name", ['quo"te', "comma,", "back\\slash", "\u00e9", "tab\t"])
def test_a_name_that_json_writes_in_another_way_is_not_found(name: str) -> None:
    index = index_of(["a", name])
    assert found(index, written([name])) is None
    assert found(index, name.encode().join((b'"', b'"'))) is None
    assert found(index, written(["a"])) == [0]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.none() | NAMES), max_size=60), st.lists(st.integers(0, 40), max_size=8)
)
def test_what_is_found_is_what_was_added_last_and_not_removed(
    steps: Sequence[tuple[int, str | None]], requested: Sequence[int]
) -> None:
    index = NameIndex()
    stored: dict[int, str] = {}
    for slot, name in steps:
        index.remove(slot)
        stored.pop(slot, None)
        if name is not None and name not in stored.values():
            index.add(name, slot)
            stored[slot] = name
    slots = list(dict.fromkeys(slot for slot in requested if slot in stored and ordinary(stored[slot])))
    assert (slots or None) == found(index, written([stored[slot] for slot in slots]))
    gone = [name for _, name in steps if name is not None and name not in stored.values()]
    assert all(found(index, written([name])) is None for name in gone)


def ordinary(name: str) -> bool:
    return name.isascii() and "," not in name and json.dumps(name) == f'"{name}"' and "\x7f" not in name
