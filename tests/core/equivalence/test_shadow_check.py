"""The shadow check: a share of the questions is answered afresh, and the cache's answers are held against it."""

from collections.abc import Sequence

import numpy as np
import pytest

from core.equivalence.cache import CacheOptions, EquivalenceCache, Mismatch
from core.equivalence.shadow_check import Difference, ShadowedEvaluation
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, AnyFilter, Status, Verdicts
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from tests.core.equivalence.said_plugin import StatedPlugin, failing, scores, statuses, whole
from tests.core.mirror.values import mirror_of, node, pod, tell

FULL = failing("Insufficient cpu")


class Checked:
    """A cache whose every question is checked, a plugin that no event invalidates, and what was told of mismatches."""

    def __init__(self, share: float = 1.0) -> None:
        self.mirror = mirror_of(node("a"), node("b"))
        self.plugin = StatedPlugin()
        self.reported: list[Mismatch] = []
        options = CacheOptions(mode="spec", shadow_share=share)
        self.cache = EquivalenceCache(self.mirror, [self.plugin], options, self.reported.append)

    def statuses(self) -> list[Status]:
        return statuses(self.cache.evaluation(pod("p")), self.plugin, whole(self.mirror))

    def scores(self) -> list[int | None]:
        return list(scores(self.cache.evaluation(pod("p")), self.plugin, whole(self.mirror)))


@pytest.mark.parametrize(
    ("share", "questions", "checked"),
    [
        pytest.param(0.0, 1000, 0, id="off"),
        pytest.param(1.0, 10, 10, id="every-question"),
        pytest.param(0.5, 10, 5, id="every-other"),
        pytest.param(0.25, 1000, 250, id="every-fourth"),
        pytest.param(0.75, 1000, 750, id="three-of-four"),
        pytest.param(0.01, 1000, 10, id="one-in-a-hundred"),
    ],
)
def test_the_share_of_questions_is_kept_without_any_chance(share: float, questions: int, checked: int) -> None:
    requested = Checked(share)
    chosen = [isinstance(requested.cache.evaluation(pod("p")), ShadowedEvaluation) for _ in range(questions)]
    assert abs(chosen.count(True) - checked) <= 1  # a sum of floats may fall short of the last one


def test_right_answers_are_counted_and_nothing_is_told() -> None:
    checked = Checked()
    checked.plugin.stated, checked.plugin.raw = {"b": FULL}, {"b": 4}
    for _ in range(2):
        assert checked.statuses() == [SUCCESS, FULL]
        assert checked.scores() == [0, 4]

    assert checked.cache.statistics.checks == 8
    assert checked.cache.statistics.mismatches == 0
    assert checked.reported == []
    assert len(checked.cache) == 1


def test_a_wrong_verdict_is_counted_and_told_and_the_fresh_one_is_the_answer() -> None:
    checked = Checked()
    checked.statuses()
    checked.plugin.stated = {"b": FULL}

    assert checked.statuses() == [SUCCESS, FULL]
    assert checked.cache.statistics.mismatches == 1
    assert [mismatch.differences for mismatch in checked.reported] == [[Difference("Said", "b", SUCCESS, FULL)]]


def test_a_wrong_score_is_counted_and_told_and_the_fresh_one_is_the_answer() -> None:
    checked = Checked()
    checked.scores()
    checked.plugin.raw = {"a": 1, "b": 2}

    assert checked.scores() == [1, 2]
    assert checked.cache.statistics.mismatches == 2
    (mismatch,) = checked.reported
    assert mismatch.differences == [Difference("Said", "a", 0, 1), Difference("Said", "b", 0, 2)]


def test_after_a_mismatch_nothing_of_the_cache_is_trusted() -> None:
    checked = Checked()
    checked.statuses()
    checked.plugin.stated = {"b": FULL}
    checked.statuses()
    assert (len(checked.cache), checked.cache.nbytes) == (0, 0)

    assert checked.statuses() == [SUCCESS, FULL]
    assert checked.cache.statistics.mismatches == 1
    assert len(checked.reported) == 1


def test_a_mismatch_tells_what_is_needed_to_reproduce_it() -> None:
    checked = Checked()
    checked.statuses()
    tell(checked.mirror, "Add", pod("x", "a"))
    checked.plugin.stated = {"a": FULL}
    statuses(checked.cache.evaluation(pod("q")), checked.plugin, whole(checked.mirror))

    (mismatch,) = checked.reported
    assert mismatch.equivalence_hash == f"{int(mismatch.equivalence_hash, 16):016x}"
    assert mismatch.pod == pod("q")
    assert mismatch.first_pod == "default/p"
    assert mismatch.generation == checked.mirror.generation
    assert mismatch.invalidated == {"Said": checked.cache.validities.now}  # never, and the nodes were there before


def test_the_changes_since_the_last_invalidation_are_told() -> None:
    checked = Checked()
    checked.statuses()
    tell(checked.mirror, "Add", node("c"), pod("x", "a"), pod("y", "a"))
    checked.statuses()
    checked.plugin.stated = {"a": FULL}
    checked.statuses()

    assert checked.reported[0].invalidated == {"Said": 2}


def test_strangers_are_not_compared_as_they_are_never_kept() -> None:
    checked = Checked()
    batch = checked.mirror.batch(["a", "s", "t"], {1: Node("s")})
    statuses(checked.cache.evaluation(pod("p")), checked.plugin, batch)
    checked.plugin.stated = {"s": FULL, "t": FULL}

    found = statuses(checked.cache.evaluation(pod("p")), checked.plugin, batch)

    assert found == [SUCCESS, FULL, FULL]
    assert checked.cache.statistics.checks == 2
    assert checked.reported == []


def test_a_plugin_that_is_silent_in_both_is_not_compared() -> None:
    plugin = StatedPlugin()
    plugin.outcome = SKIP
    mirror = mirror_of(node("a"))
    fresh = FreshEvaluation(mirror, pod("p"))
    reported: list[int] = []
    shadowed = ShadowedEvaluation(fresh, fresh, lambda cells, _: reported.append(cells), mirror.work)

    assert shadowed.verdicts(plugin, whole(mirror)) is None
    assert shadowed.raw_scores(plugin, whole(mirror)) is None
    assert reported == []


def test_a_wrong_first_failure_is_told_even_where_every_plugin_is_right() -> None:
    class WrongChain(FreshEvaluation):
        def filtered(self, _filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
            return Verdicts(np.zeros(len(batch), np.uint8), (SUCCESS,))

    mirror, plugin = mirror_of(node("a"), node("b")), StatedPlugin()
    plugin.stated = {"b": FULL}
    reported: list[Difference] = []
    shadowed = ShadowedEvaluation(
        WrongChain(mirror, pod("p")),
        FreshEvaluation(mirror, pod("p")),
        lambda _, differences: reported.extend(differences),
        mirror.work,
    )

    verdicts = shadowed.filtered((plugin,), whole(mirror))
    assert [verdicts.status(position) for position in range(2)] == [SUCCESS, FULL]
    assert reported == [Difference("first failing filter", "b", SUCCESS, FULL)]


def test_a_wrong_choice_is_told_by_node() -> None:
    checked = Checked()
    batch = checked.mirror.all_nodes()
    filters, no_scores = (checked.plugin,), ()
    for _ in range(2):
        checked.cache.evaluation(pod("p")).best(filters, no_scores, batch)
    checked.plugin.stated["b"] = FULL  # which nobody hears of

    best = checked.cache.evaluation(pod("p")).best(filters, no_scores, batch)

    assert best is not None
    assert best.tolist() == [0]
    assert checked.reported[-1].differences == [Difference("best nodes", "b", 1, 0)]
