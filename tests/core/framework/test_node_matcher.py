"""Node selectors over all nodes of a request at once, against each node judged alone."""

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from core.framework.node_matcher import NodeMatcher, label_keys
from core.objects.affinity import Comparison, FieldRequirement, NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.labels import EVERYTHING, Operator, Selector, requirement
from tests.core.mirror.values import mirror_of, node, passes_over_nodes

if TYPE_CHECKING:
    from core.objects.node import Node

KEYS: Final = ("zone", "gen", "of-strangers", "of-nobody")
VALUES: Final = ("", "a", "b", "7", "-3", "08")
UNKNOWN: Final = 3
OPERATORS: Final = (Operator.IN, Operator.NOT_IN)


def any_labels(random: Random, keys: Sequence[str]) -> dict[str, str]:
    return {key: random.choice(VALUES) for key in keys if random.random() < 0.7}


def any_term(random: Random) -> NodeSelectorTerm:
    requirements = []
    for _ in range(random.randrange(3)):
        key = random.choice(KEYS)
        if random.random() < 0.5:
            requirements.append(requirement(key, random.choice(OPERATORS), random.sample((*VALUES, "other"), 3)))
        else:
            requirements.append(requirement(key, random.choice((Operator.EXISTS, Operator.DOES_NOT_EXIST)), ()))
    comparisons = [
        Comparison(random.choice(KEYS), random.random() < 0.5, random.randrange(-4, 9))
        for _ in range(random.randrange(2))
    ]
    names = ("n1", "new", "nobody", "none", "")
    fields = [
        FieldRequirement(random.choice(("metadata.name", "other")), random.choice(names), random.random() < 0.5)
        for _ in range(random.randrange(2))
    ]
    errors = ("broken",) if random.random() < 0.05 else ()
    return NodeSelectorTerm(tuple(requirements), tuple(comparisons), tuple(fields), errors)


def any_affinity(random: Random) -> NodeAffinity:
    selector = EVERYTHING
    if random.random() < 0.3:
        selector = Selector((requirement(random.choice(KEYS), Operator.IN, [random.choice(VALUES)]),))
    terms = tuple(any_term(random) for _ in range(random.randrange(4)))
    return NodeAffinity(selector, None if random.random() < 0.2 else NodeSelector(terms))


@pytest.mark.parametrize("seed", range(20))
def test_nodes_of_a_request_are_judged_as_each_alone(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a test that is the same each time
    known = [node(f"n{number}", labels=any_labels(random, ("zone", "gen"))) for number in range(6)]
    mirror = mirror_of(*known)
    unmirrored = [node(name, labels=any_labels(random, KEYS[:3])) for name in ("new", "newer")]
    nodes: list[Node | None] = [*known[:UNKNOWN], None, *known[UNKNOWN:], *unmirrored]
    names = [each.name if each is not None else "nobody" for each in nodes]
    batch = mirror.batch(names, {len(names) - 2: unmirrored[0], len(names) - 1: unmirrored[1]})
    for _ in range(40):
        affinity = any_affinity(random)
        found = NodeMatcher(mirror, batch, label_keys(affinity)).required(affinity)
        assert found.tolist() == [each is not None and affinity.matches(each.labels, each.name) for each in nodes]


def test_many_keys_cost_one_pass_over_the_nodes_and_many_values_none(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"key-{number}" for number in range(200)]
    mirror = mirror_of(*(node(f"n{number}", labels=dict.fromkeys(keys, "x")) for number in range(5)))
    passes = passes_over_nodes(mirror, monkeypatch)
    terms = tuple(
        NodeSelectorTerm((requirement(key, Operator.IN, [f"value-{number}"]),))
        for number in range(20)
        for key in (*keys, f"lacking-{number}")
    )
    affinity = NodeAffinity(required=NodeSelector(terms))
    batch = mirror.batch(list(mirror.nodes.slots))
    assert not NodeMatcher(mirror, batch, label_keys(affinity)).required(affinity).any()
    assert len(passes) == 1
