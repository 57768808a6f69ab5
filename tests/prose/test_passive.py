"""The heuristic for passive voice."""

import pytest

from tests.prose.passive import is_passive


@pytest.mark.parametrize(
    "sentence",
    [
        "The pod is bound to the node.",
        "A cell was not yet evicted.",
        "Names that are only rarely seen",
        "It isn't known.",
    ],
)
def test_be_and_a_participle_are_passive(sentence: str) -> None:
    assert is_passive(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Kindred binds the pod.",
        "The port is open.",
        "There is need for it.",
        "It is then ready.",
        "A bound pod counts.",
    ],
)
def test_other_verbs_are_not(sentence: str) -> None:
    assert not is_passive(sentence)
