"""The best nodes of groups, held against a comparison of all nodes."""

import tracemalloc
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.equivalence.groups import MAX_GROUPS, UNFIT, Groups
from core.mirror.topology import Int64Array

_Node: TypeAlias = tuple[int, tuple[int, int]]
"""The value, and the traits."""

_nodes: Final = st.tuples(
    st.sampled_from((UNFIT, 0, 1, 2)), st.tuples(st.integers(-1, 2), st.sampled_from((0, 7, 10**9)))
)


def _made(nodes: Sequence[_Node]) -> Groups:
    first, second = (np.array(each) for each in zip(*[traits for _, traits in nodes], strict=True))
    groups = Groups.of([[first], [second]], len(nodes))
    assert groups is not None
    groups.fill(_array(nodes))
    return groups


def _array(nodes: Sequence[_Node]) -> Int64Array:
    return np.array([value for value, _ in nodes])


def _found(groups: Groups) -> dict[tuple[int, ...], tuple[int, int, list[int]]]:
    """Return the nodes that fit, the highest value and the best positions of each group with a node that fits."""
    keys = zip(*[each.tolist() for (each,) in groups.traits], strict=True)
    fitting = groups.nodes.nonzero()[0]
    together = [groups.best(np.array([group])) for group in fitting]
    assert groups.best(fitting).tolist() == sorted(at for best in together for at in best.tolist())
    return {
        key: (int(groups.nodes[group]), int(groups.tops[group]), groups.best(np.array([group])).tolist())
        for group, key in enumerate(keys)
        if groups.nodes[group]
    }


def _expected(nodes: Sequence[_Node]) -> dict[tuple[int, ...], tuple[int, int, list[int]]]:
    expected: dict[tuple[int, ...], tuple[int, int, list[int]]] = {}
    for key in {traits for value, traits in nodes if value != UNFIT}:
        among = {at: value for at, (value, traits) in enumerate(nodes) if traits == key and value != UNFIT}
        top = max(among.values())
        expected[key] = len(among), top, [at for at, value in among.items() if value == top]
    return expected


@given(
    st.lists(_nodes, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), _nodes, st.booleans()), max_size=20),
)
def test_after_each_move_groups_are_as_made_anew(nodes: list[_Node], moves: Sequence[tuple[int, _Node, bool]]) -> None:
    groups = _made(nodes)
    for place, (value, traits), look in moves:
        if look:  # what is kept is of different times
            assert _found(groups) == _expected(nodes)
        nodes[place % len(nodes)] = value, traits
        assert groups.move(place % len(nodes), value, traits)
    assert _found(groups) == _expected(nodes)
    groups.fill(_array(nodes))
    assert _found(groups) == _expected(nodes)


def test_the_best_of_several_groups_are_in_the_order_of_the_nodes() -> None:
    groups = _made([(1, (0, 0)), (1, (1, 0)), (0, (0, 0)), (1, (0, 0))])
    assert groups.best(np.array([1, 0])).tolist() == [0, 1, 3]


def test_an_array_of_the_best_stays_as_it_was_returned() -> None:
    groups = _made([(1, (0, 0)), (1, (0, 0)), (0, (0, 0))])
    best = groups.best(np.array([0]))
    assert groups.move(0, 0, (0, 0))
    assert groups.move(2, 1, (0, 0))
    assert (best.tolist(), groups.best(np.array([0])).tolist()) == ([0, 1], [1, 2])


def test_nodes_without_traits_are_one_group() -> None:
    groups = Groups.of([], 3)
    assert groups is not None
    groups.fill(np.array([1, 2, 2]))
    assert groups.move(0, 2, ())
    assert groups.best(np.array([0])).tolist() == [0, 1, 2]


@pytest.mark.parametrize("step", [1, 10**6])
def test_more_groups_than_are_worth_it_are_none(step: int) -> None:
    assert Groups.of([[np.arange(MAX_GROUPS + 1) * step]], MAX_GROUPS + 1) is None
    groups = Groups.of([[np.arange(MAX_GROUPS) * step]], MAX_GROUPS)
    assert groups is not None
    groups.fill(np.zeros(MAX_GROUPS, np.int32))
    assert groups.move(0, 0, (step,)), "a group is left"
    assert not groups.move(0, 0, (-1,)), "one more"


@pytest.mark.parametrize(("length", "number"), [(100, 20), (MAX_GROUPS, MAX_GROUPS), (5000, 330)])
def test_the_size_is_about_what_groups_take(length: int, number: int) -> None:
    traits = [[np.arange(length) % number * step] for step in (1, 1000)]
    tracemalloc.start()
    try:
        groups = Groups.of(traits, length)
        assert groups is not None
        groups.fill(np.zeros(length, np.int32))
        for fewer in range(4):
            groups.best(np.arange(fewer, number))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < groups.nbytes < 2 * taken
