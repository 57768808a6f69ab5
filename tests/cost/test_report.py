"""Excesses of bounds."""

from tests.cost.forked import Step
from tests.cost.report import Live, Row, bound_of

_MB = 1_000_000
_SMALL = 64 * 1024


def _row(*steps: Step, size: int = _SMALL, live: Live | None = None) -> Row:
    return Row("form", "area", "pod", size, steps, live)


def _live(longest: float) -> Live:
    return Live(p99=0.0, longest=longest, waited=0.0, watch_delay=0.0, cpu=0.0, peak=0, kept=0)


def test_a_large_body_may_take_more_than_a_pod() -> None:
    assert _row(Step("filter", 0.4, 0, 0)).excesses() == ["filter: 0.40 s of CPU"]
    assert _row(Step("filter", 0.4, 0, 0), size=_SMALL + 1).excesses() == []
    assert bound_of(4 * 2**20).cpu == 2.0


def test_memory_at_the_peak_and_in_the_end_are_bounded_apart() -> None:
    assert _row(Step("filter", 0.0, 40 * _MB, 0)).excesses() == ["filter: 40 MB"]
    kept = _row(Step("watch: add", 0.0, 0, 40 * _MB), Step("ordinary after watch", 0.0, 0, 0, "same answers"))
    assert kept.excesses() == ["keeps 40 MB"]


def test_what_is_given_back_by_the_end_is_not_kept() -> None:
    steps = Step("watch: add", 0.0, 0, 40 * _MB), Step("watch: delete", 0.0, 0, -39 * _MB)
    assert _row(*steps, Step("ordinary after watch", 0.0, 0, 0, "same answers")).excesses() == []


def test_other_answers_and_internal_errors_are_too_much() -> None:
    assert _row(Step("ordinary after filter", 0.0, 0, 0, "other answers")).excesses()
    assert _row(Step("filter", 0.0, 0, 0, "200 90 bytes internal error: KeyError")).excesses()


def test_a_late_answer_of_livez_is_too_much() -> None:
    assert _row(live=_live(0.2)).excesses() == []
    assert _row(live=_live(0.4)).excesses() == ["/livez: 0.40 s"]


def test_the_share_of_the_bound_tells_the_step() -> None:
    shares = _row(Step("filter", 0.15, 0, 0), Step("explain", 0.6, 0, 0)).shares()
    assert shares["cpu"] == (2.0, "explain")
