"""Answers that are computed afresh."""

import pytest

from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, Code, Status
from tests.core.equivalence.said_plugin import StatedPlugin, failing, scores, statuses, whole
from tests.core.mirror.values import mirror_of, node, pod

FULL = failing("Insufficient cpu")


def test_a_fresh_evaluation_asks_the_plugin_at_every_question() -> None:
    mirror = mirror_of(node("a"), node("b"))
    plugin = StatedPlugin()
    evaluation = FreshEvaluation(mirror, pod("p"))
    for number in range(2):
        plugin.stated, plugin.raw = {"b": FULL}, {"b": number}
        assert statuses(evaluation, plugin, whole(mirror)) == [SUCCESS, FULL]
        assert scores(evaluation, plugin, whole(mirror)) == [0, number]

    assert len(plugin.requested) == 4
    assert evaluation.source == "none"


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(FULL, id="unschedulable"),
        pytest.param(failing("a", "b", code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE), id="unresolvable"),
        pytest.param(failing("broken", code=Code.ERROR), id="error"),
    ],
)
def test_a_failure_of_pre_filter_is_that_of_every_node(outcome: Status) -> None:
    mirror = mirror_of(node("a"), node("b"))
    plugin = StatedPlugin()
    plugin.outcome = outcome

    assert statuses(FreshEvaluation(mirror, pod("p")), plugin, mirror.batch(["b", "unknown"])) == [outcome] * 2
    assert plugin.requested == []


@pytest.mark.parametrize("outcome", [SKIP, failing("broken", code=Code.ERROR)])
def test_a_pre_score_without_a_state_gives_no_scores(outcome: Status) -> None:
    mirror = mirror_of(node("a"))
    plugin = StatedPlugin()
    plugin.outcome = outcome

    assert FreshEvaluation(mirror, pod("p")).raw_scores(plugin, whole(mirror)) is None


# Of all filters together.


def test_the_first_filter_that_fails_gives_a_node_its_status() -> None:
    mirror = mirror_of(node("a"), node("b"), node("c"))
    first, silent, last = StatedPlugin("First"), StatedPlugin("Silent"), StatedPlugin("Last")
    silent.outcome = SKIP
    first.stated, last.stated = {"a": FULL}, {"a": failing("never told"), "b": failing("last"), "c": failing("else")}

    verdicts = FreshEvaluation(mirror, pod("p")).filtered((first, silent, last), whole(mirror))

    assert [verdicts.status(position) for position in range(3)] == [FULL, failing("last"), failing("else")]
    assert verdicts.statuses[0] == SUCCESS


def test_all_filters_are_asked_about_all_nodes_whatever_the_first_says() -> None:
    mirror = mirror_of(node("a"), node("b"))
    first, last = StatedPlugin("First"), StatedPlugin("Last")
    first.outcome = FULL

    verdicts = FreshEvaluation(mirror, pod("p")).filtered((first, last), whole(mirror))

    assert [verdicts.status(position) for position in range(2)] == [FULL, FULL]
    assert last.requested == [["a", "b"]]
