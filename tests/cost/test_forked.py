"""Reports of forked children about their steps."""

from collections.abc import Callable

from tests.cost.forked import Recorder, Step, forked

_MIB = 1024 * 1024


def _steps(act: Callable[[], str], cpu: int = 5, most: int = 512 * _MIB) -> list[Step]:
    return forked(lambda recorder: recorder.step("it", act), cpu, most)


def test_the_peak_is_told_though_the_memory_is_free_again() -> None:
    (step,) = _steps(lambda: str(len(bytearray(64 * _MIB))))
    assert 60 * _MIB < step.peak < 80 * _MIB
    assert step.kept < 8 * _MIB


def test_what_is_kept_is_told_apart() -> None:
    kept: list[bytearray] = []

    def act() -> str:
        kept.append(bytearray(32 * _MIB))
        return "told"

    (step,) = _steps(act)
    assert step.kept > 28 * _MIB
    assert step.told == "told"
    assert not kept  # the parent's list is empty: only the child added to it


def test_a_child_without_end_is_ended() -> None:
    def act() -> str:
        while True:
            pass

    (step,) = _steps(act, cpu=1)
    assert (step.name, step.ended) == ("it", "> 1 s of CPU")


def test_a_child_that_wants_too_much_memory_is_told_of() -> None:
    (step,) = _steps(lambda: str(len(bytearray(1024 * _MIB))), most=256 * _MIB)
    assert step.ended.startswith("MemoryError")


def test_steps_before_the_end_are_told() -> None:
    def fail() -> str:
        raise LookupError("gone")

    def work(recorder: Recorder) -> None:
        recorder.step("first", lambda: "fine")
        recorder.step("second", fail)

    assert [(step.told, step.ended) for step in forked(work)] == [("fine", ""), ("", "LookupError: gone")]
