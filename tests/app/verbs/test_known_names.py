"""Lists of names that are known again by their bytes, against the look-up that they spare."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from app.objects.decode_node import decode_node
from app.verbs.wire_in import _MAX_BYTES, _MISSES, NameLists
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from tests.app.questions import mirror_of
from tests.builders import make_node

NAMES = tuple(f"node-{number}" for number in range(30))


def written(names: Sequence[str]) -> bytes:
    return b",".join(b'"%b"' % name.encode() for name in names)


@pytest.fixture
def mirror() -> ClusterMirror:
    return mirror_of(*map(make_node, NAMES))


@pytest.fixture
def known(mirror: ClusterMirror) -> NameLists:
    return NameLists(mirror.nodes)


def learn(mirror: ClusterMirror, known: NameLists, names: Sequence[str]) -> None:
    text = written(names)
    batch = NodeBatch.found(mirror.nodes, text, 0, len(text))
    assert batch is not None
    known.remember(text, batch.slots)


def found(mirror: ClusterMirror, known: NameLists, text: bytes | bytearray) -> list[str] | None:
    """Return the names whose slots are found, with something around them, as there is in a body."""
    body = b'{"NodeNames":[' + text + b"]}"
    again = known.find(body, 14, 14 + len(text))
    return None if again is None else [mirror.nodes.name(slot) for slot in again.slots.tolist()]


@pytest.mark.parametrize(
    "requested",
    [NAMES[:20], NAMES[:3], NAMES[5:9], NAMES[15:20], (*NAMES[12:20], *NAMES[:12])],
    ids=["whole", "beginning", "middle", "end", "turned"],
)
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_the_same_names_have_the_same_slots(
    mirror: ClusterMirror, known: NameLists, requested: tuple[str, ...], kind: type[bytes | bytearray]
) -> None:
    learn(mirror, known, NAMES[:20])
    assert list(requested) == found(mirror, known, kind(written(requested)))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b",",
        b'"',
        b'"node-3',
        b'"node-3"x',
        b'"node-3",',
        b',"node-3"',
        b'"node-3""node-4"',
        b'"node-3", "node-4"',
        b'"node-3","node-4',
        b'"node-3","node-5"',
        b'"node-3","node-40"',
        b'"node-3","nobody"',
        b'"node-19",',
        b'"node-19"x"node-0"',
        b'"node-19","node-0',
        b'"node-19"\0',
        b"node-3",
        b"xnode-3x",
        b'"\xff"',
    ],
)
def test_other_bytes_are_not_known(mirror: ClusterMirror, known: NameLists, text: bytes) -> None:
    learn(mirror, known, NAMES[:20])
    assert found(mirror, known, text) is None


def test_a_name_that_begins_as_a_known_one_is_another() -> None:
    mirror = mirror_of(make_node("a"), make_node("node-1"), make_node("node-12"))
    known = NameLists(mirror.nodes)
    learn(mirror, known, ["a", "node-12"])
    assert found(mirror, known, b'"a","node-1"') is None
    assert found(mirror, known, b'"a","node-12"') == ["a", "node-12"]


def test_windows_of_one_order_are_joined_until_any_window_is_one_piece(mirror: ClusterMirror, known: NameLists) -> None:
    for begin in range(0, 30, 6):
        learn(mirror, known, NAMES[begin : begin + 6])
    for begin in range(3, 24, 6):
        assert list(NAMES[begin : begin + 6]) == found(mirror, known, written(NAMES[begin : begin + 6]))
    text = written(NAMES[1:29])
    again = known.find(text, 0, len(text))
    assert again is not None
    assert again.distinct
    assert list(NAMES[1:29]) == found(mirror, known, text)


def test_whether_a_name_stands_twice_is_open_where_pieces_are_joined(mirror: ClusterMirror, known: NameLists) -> None:
    learn(mirror, known, NAMES[:4])
    twice = written(NAMES[:4] * 2)
    again = known.find(twice, 0, len(twice))
    assert again is not None
    assert not again.distinct
    assert list(NAMES[:4] * 2) == found(mirror, known, twice), "and was not remembered"


def test_another_order_of_the_same_nodes_takes_the_place_of_the_first(mirror: ClusterMirror, known: NameLists) -> None:
    learn(mirror, known, NAMES)
    assert found(mirror, known, written(NAMES[3:10][::-1])) is None
    learn(mirror, known, NAMES[::-1])
    assert list(NAMES[3:10][::-1]) == found(mirror, known, written(NAMES[3:10][::-1]))
    assert list(NAMES[::-1]) == found(mirror, known, written(NAMES[::-1]))


def test_nothing_is_known_any_more_when_a_node_has_come_or_gone(mirror: ClusterMirror, known: NameLists) -> None:
    learn(mirror, known, NAMES[:5])
    known.remember_passing(written(NAMES[:2]), mirror.batch(NAMES[:2]).slots)
    mirror.apply(ClusterEvent("Delete", decode_node(make_node(NAMES[0]).json())))
    mirror.apply(ClusterEvent("Add", decode_node(make_node("newcomer").json())))
    for names in (NAMES[:5], NAMES[:2], NAMES[1:4]):
        assert found(mirror, known, written(names)) is None
    learn(mirror, known, NAMES[1:5])
    assert list(NAMES[2:4]) == found(mirror, known, written(NAMES[2:4]))


def test_more_nodes_than_there_was_room_for_are_known_too(mirror: ClusterMirror, known: NameLists) -> None:
    learn(mirror, known, NAMES)
    more = [f"more-{number}" for number in range(2 * mirror.nodes.capacity)]
    for name in more:
        mirror.apply(ClusterEvent("Add", decode_node(make_node(name).json())))
    learn(mirror, known, more)
    assert more[50:] == found(mirror, known, written(more[50:]))


def test_where_nothing_is_known_again_few_lists_are_remembered(mirror: ClusterMirror, known: NameLists) -> None:
    shuffled = random.Random(7)  # noqa: S311 - a test
    orders = [shuffled.sample(NAMES, len(NAMES)) for _ in range(3 * _MISSES)]
    remembered = []
    for order in orders:
        learn(mirror, known, order)
        remembered.append(known._of_length[len(written(order))].names == written(order))  # noqa: SLF001 - not asked, as that would count
    assert sum(remembered) == _MISSES + 2
    assert orders[-1] == found(mirror, known, written(orders[-1]))
    learn(mirror, known, orders[0])
    assert orders[0] == found(mirror, known, written(orders[0])), "as one was known again"


def test_memory_is_bounded() -> None:
    names = [f"node-{number:060}" for number in range(5000)]
    mirror = mirror_of(*map(make_node, names))
    known = NameLists(mirror.nodes)
    for start in range(0, 20 * 37, 37):
        text = written(names[start:])
        known._misses = 0  # noqa: SLF001 - as if they were known again
        known.remember(text, np.arange(start, 5000))
    assert known._nbytes <= _MAX_BYTES  # noqa: SLF001 - that is what is bounded
    assert sum(each.nbytes for each in known._lists.values()) == known._nbytes  # noqa: SLF001 - likewise
    assert all(each in known._lists.values() for each in known._of_length.values())  # noqa: SLF001 - likewise


def test_random_requests_are_answered_as_by_the_look_up(mirror: ClusterMirror, known: NameLists) -> None:
    chosen = random.Random(3)  # noqa: S311 - a test
    hits = 0
    for _ in range(3000):
        start, size = chosen.randrange(30), chosen.randrange(1, 30)
        names = [*NAMES[start:], *NAMES[:start]][:size]
        if chosen.random() < 0.2:
            chosen.shuffle(names)
        text = bytearray(written(names))
        if chosen.random() < 0.2:
            text[chosen.randrange(len(text))] = chosen.choice(b'",n0 \0')
        looked_up = NodeBatch.found(mirror.nodes, text, 0, len(text))
        again = known.find(text, 0, len(text))
        if again is None:
            if looked_up is not None and looked_up.repeated() < 0:
                known.remember(bytes(text), looked_up.slots)
            continue
        hits += 1
        assert looked_up is not None
        assert again.slots.tolist() == looked_up.slots.tolist()
        assert not again.distinct or looked_up.repeated() < 0
    assert hits > 1000
