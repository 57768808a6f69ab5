"""What of a plugin's answers is kept at all, and whose the answer is that a caller gets."""

from typing import Final

import numpy as np
import pytest

from core.equivalence.rows import Miss
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, Code, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from tests.core.equivalence.asked import Asked
from tests.core.equivalence.said_plugin import SaidPlugin, failing, statuses, when, whole
from tests.core.mirror.values import pod, tell

FULL, TAINTED, BROKEN = failing("Insufficient cpu"), failing("tainted", "twice"), failing("broken", code=Code.ERROR)
_LOWEST: Final = -(2**63)


def test_an_error_of_pre_filter_is_asked_for_again() -> None:
    asked = Asked()
    asked.plugin.outcome = BROKEN
    assert asked.statuses() == [BROKEN] * 3
    assert asked.statuses() == [BROKEN] * 3
    assert len(asked.plugin.prepared) == 2

    asked.plugin.outcome = None
    assert asked.statuses() == [SUCCESS] * 3


def test_an_error_of_pre_score_is_asked_for_again() -> None:
    asked = Asked()
    asked.plugin.outcome = BROKEN
    assert asked.scores() == [None] * 3

    asked.plugin.outcome, asked.plugin.raw = None, {"a": 1}
    assert asked.scores() == [1, 0, 0]


def test_an_error_of_one_node_is_asked_for_again_and_the_others_are_kept() -> None:
    asked = Asked()
    asked.plugin.said = {"a": FULL, "b": BROKEN}
    assert asked.statuses() == [FULL, BROKEN, SUCCESS]
    assert asked.statuses() == [FULL, BROKEN, SUCCESS]

    asked.plugin.said = {}
    assert asked.statuses() == [FULL, SUCCESS, SUCCESS]
    assert asked.plugin.asked == [["a", "b", "c"], ["b"], ["b"]]


def test_a_plugin_that_raises_leaves_its_row_to_be_looked_at_again() -> None:
    class Raising(SaidPlugin):
        raises = False

        def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
            if self.raises:
                raise RuntimeError("for a moment")
            return super().pre_filter(mirror, pod)

    plugin = Raising(invalidated_by=(when(Pod, Scope.COUNTERS),))
    asked = Asked(plugin)
    asked.statuses()
    tell(asked.mirror, "Add", pod("x", "b"))
    plugin.raises, plugin.version, plugin.said = True, 1, {"c": FULL}
    with pytest.raises(RuntimeError, match="for a moment"):
        asked.statuses()

    plugin.raises = False
    assert asked.statuses() == [SUCCESS, SUCCESS, FULL]


# What the caller gets is his.


def test_reasons_of_a_hit_are_those_of_a_fresh_run_in_the_same_order() -> None:
    asked = Asked()
    asked.plugin.said = {"c": failing("z", "a"), "a": failing("a", "z"), "b": TAINTED}
    asked.statuses("c")
    asked.statuses()

    fresh = statuses(FreshEvaluation(asked.mirror, pod("p")), asked.plugin, whole(asked.mirror))
    assert asked.statuses() == fresh == [failing("a", "z"), TAINTED, failing("z", "a")]


def test_a_caller_who_changes_his_verdicts_changes_no_others() -> None:
    asked = Asked()
    asked.plugin.said = {"b": FULL}
    for _ in range(3):  # a miss, then hits
        verdicts = asked.evaluation().verdicts(asked.plugin, whole(asked.mirror))
        assert verdicts is not None
        assert [verdicts.status(position) for position in range(3)] == [SUCCESS, FULL, SUCCESS]
        verdicts.codes[:] = 0
        verdicts.statuses = (FULL, FULL)


@pytest.mark.parametrize("number", [1, 1000, 2**40])
def test_a_caller_who_changes_his_scores_changes_no_others(number: int) -> None:
    asked = Asked()
    asked.plugin.raw = {"a": number}
    for _ in range(3):
        raw = asked.evaluation().raw_scores(asked.plugin, whole(asked.mirror))
        assert raw is not None
        assert raw.tolist() == [number, 0, 0]
        raw[:] = 9


def test_an_array_that_a_plugin_keeps_is_not_the_one_that_is_kept_here() -> None:
    class Keeping(SaidPlugin):
        column: Int64Array = np.array([1, 2, 3], np.int64)

        def score(self, _state: Pod, _batch: NodeBatch) -> Int64Array:
            return self.column

    plugin = Keeping()
    asked = Asked(plugin)
    asked.scores()
    plugin.column[:] = 0

    assert asked.scores() == [1, 2, 3]


@pytest.mark.parametrize("number", [1, 1000, 2**40])
def test_scores_are_int64_however_they_are_kept(number: int) -> None:
    asked = Asked()
    asked.plugin.raw = {"a": number}
    for names in (("a",), ("a",), ("a", "b")):  # a miss, a hit, and partly
        raw = asked.evaluation().raw_scores(asked.plugin, asked.mirror.batch(names))
        assert raw is not None
        assert raw.dtype == np.int64


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(_LOWEST, id="lowest-int64"),
        pytest.param(_LOWEST + len(Miss) - 1, id="last-that-is-a-reason"),
    ],
)
def test_a_score_that_would_be_a_reason_in_int64_is_given_but_not_kept(score: int) -> None:
    # There is no wider type, which was a StopIteration out of the question.
    asked = Asked()
    asked.plugin.raw.update(a=1, b=score, c=2)

    assert asked.scores() == [1, score, 2]
    asked.plugin.asked.clear()
    assert asked.scores() == [1, score, 2]
    assert asked.plugin.asked == [["b"]]


def test_the_lowest_score_that_is_no_reason_is_kept() -> None:
    asked = Asked()
    asked.plugin.raw["b"] = _LOWEST + len(Miss)

    assert asked.scores() == asked.scores() == [0, _LOWEST + len(Miss), 0]
    assert len(asked.plugin.asked) == 1
