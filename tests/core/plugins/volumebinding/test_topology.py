"""Things found by the labels of a node: the same as if each were held against them."""

from random import Random
from typing import Final

import pytest

from core.objects.affinity import Expression, NodeSelector, parse_node_selector
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.plugins.volumebinding.claims import ByTopology, label_keys, selected_nodes
from tests.core.plugins.volumebinding.values import within

VALUES: Final = ("a", "b", "c")
KEYS: Final = ("host", "zone")


def random_selector(random: Random) -> NodeSelector | None:
    if random.random() < 0.1:
        return None
    expressions: list[Expression] = [
        *((key, "In", random.sample(VALUES, random.randint(1, 2))) for key in KEYS),
        *((key, "NotIn", [random.choice(VALUES)]) for key in KEYS),
        ("zone", "Exists", ()),
        ("zone", "Gt", ["1"]),
    ]
    terms = [(random.sample(expressions, random.randint(0, 2)), ()) for _ in range(random.randint(0, 3))]
    return parse_node_selector(terms)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_missed_and_the_order_is_kept(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    things = [(number, random_selector(random)) for number in range(20)]
    indexed = ByTopology(things)
    for host in (*VALUES, None):
        for zone in (*VALUES, "7", None):
            labels = {key: value for key, value in zip(KEYS, (host, zone), strict=True) if value is not None}
            expected = [number for number, selector in things if selector is None or selector.matches(labels)]
            assert list(indexed.reached(labels)) == expected


def test_what_two_terms_let_a_node_reach_is_reached_once() -> None:
    twice = parse_node_selector([([("zone", "In", ["a"])], []), ([("zone", "In", ["a", "b"])], [])])
    assert list(ByTopology([("x", twice)]).reached({"zone": "a"})) == ["x"]


def test_the_keys_are_those_that_any_of_them_reads() -> None:
    greater = parse_node_selector([([("rank", "Gt", ["1"])], [])])
    assert ByTopology([("a", within("zone", "a")), ("b", greater), ("c", None)]).keys == {"zone", "rank"}
    assert label_keys(None) == set()


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(EVERYTHING, {}, True, id="all-nodes"),
        pytest.param(NOTHING, {"zone": "a"}, False, id="none"),
        pytest.param(parse_selector({"zone": "a"}, ()), {"zone": "a"}, True, id="matching"),
        pytest.param(parse_selector({"zone": "a"}, ()), {"zone": "b"}, False, id="not-matching"),
    ],
)
def test_a_label_selector_selects_the_same_nodes(
    selector: Selector,
    labels: dict[str, str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    nodes = selected_nodes(selector)
    assert expected is (nodes is None or nodes.matches(labels))


@pytest.mark.parametrize("seed", range(10))
def test_what_is_reached_from_a_place_on_is_the_rest(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    things = [(number, random_selector(random)) for number in range(20)]
    indexed = ByTopology(things)
    even = indexed.anywhere(lambda number: number % 2 == 0)
    for labels in ({}, {"host": "a"}, {"host": "b", "zone": "c"}, {"zone": "7"}):
        reached = list(indexed.reached(labels))
        assert list(indexed.reached(labels, start=9)) == [number for number in reached if number >= 9]
        some = list(indexed.reached(labels, anywhere=even))
        assert [number for number in some if number % 2 == 0] == [number for number in reached if number % 2 == 0]
        assert set(some) <= set(reached)
    assert (list(indexed), indexed.loose) == ([*range(20)], len(indexed.anywhere(lambda _: True)))
