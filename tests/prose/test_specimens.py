"""Specimens before and after."""

from tests.prose.passage import Kind, Passage
from tests.prose.specimens import chosen, counterpart

PASSAGES = [Passage("a.py", line, kind, f"{kind} number {line} has enough words") for kind in Kind for line in range(9)]


def test_as_many_of_each_kind_are_chosen_and_the_same_for_the_same_seed() -> None:
    found = chosen(PASSAGES, 6, seed=1)
    assert [each.kind for each in found] == [kind for kind in list(Kind)[1:] for _ in range(2)]
    assert found == chosen(PASSAGES, 6, seed=1)


def test_the_counterpart_is_of_the_same_kind_and_nearest_in_its_words() -> None:
    before = Passage("a.py", 1, Kind.COMMENT, "what a pod asks of its node")
    near, far = (Passage("a.py", 1, Kind.COMMENT, text) for text in ("the demands of a pod on its node", "no lock"))
    assert counterpart(before, [far, near]) == near
    assert counterpart(before, [far]) is None
