"""The changes that a search makes."""

import json
import random

import pytest

from tests.cost.attack import Attack
from tests.cost.forms import FORMS
from tests.cost.mutation import Mutator

_MAX = 20_000
_NAMES = ("anti-topology-keys", "ordinary", "nodes-labels", "names-unknown", "yaml-laughs", "wire-headers")


def _mutated(name: str, seed: int, count: int) -> list[Attack]:
    mutator = Mutator(random.Random(seed), _MAX)  # noqa: S311 - to be the same each time
    attack, other = FORMS[name].attack(8000), FORMS[name].attack(2000)
    found = []
    for _ in range(count):
        attack = mutator.mutated(attack, other)
        found.append(attack)
    return found


@pytest.mark.parametrize("name", _NAMES)
def test_changes_of_changes_stay_json_and_within_the_size(name: str) -> None:
    for attack in _mutated(name, seed=3, count=150):
        if attack.way != "manifest":
            json.loads(attack.body())
        assert len(attack.body()) <= 5 * _MAX  # elements that cannot be halved may stay


@pytest.mark.parametrize("name", _NAMES)
def test_the_same_seed_makes_the_same_changes(name: str) -> None:
    assert _mutated(name, seed=1, count=30) == _mutated(name, seed=1, count=30)


def test_changes_leave_the_attack_that_they_are_made_of_alone() -> None:
    attack = FORMS["anti-topology-keys"].attack(2000)
    mutator = Mutator(random.Random(1), _MAX)  # noqa: S311 - to be the same each time
    for _ in range(50):
        mutator.mutated(attack, attack)
    assert attack == FORMS["anti-topology-keys"].attack(2000)
