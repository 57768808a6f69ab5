"""When memory counts as flat."""

import pytest

from tests.load.memory import WINDOW, Memory


def memory(*minutes: float) -> Memory:
    """Make a Memory with a constant value in each minute, in MB."""
    made = Memory()
    for megabytes in minutes:
        for _ in range(WINDOW):
            made.sample(megabytes)
    return made


@pytest.mark.parametrize(
    "minutes",
    [
        pytest.param((100, 200, 200, 200), id="the-first-minute-does-not-count"),
        pytest.param((100, 200, 217), id="a-little-more"),
        pytest.param((100, 200, 900, 200), id="a-peak"),
        pytest.param((100, 200, 150), id="less"),
        pytest.param((100, 900), id="too-short-to-tell"),
    ],
)
def test_memory_that_stays_is_flat(minutes: tuple[float, ...]) -> None:
    assert memory(*minutes).growth() == ""


def test_memory_that_grows_is_told() -> None:
    assert memory(100, 200, 210, 219).growth() == "memory: 200 MB in the second minute, 219 MB in the last one"


def test_a_single_sample_does_not_decide() -> None:
    found = memory(100, 200, 200)
    found.sample(10_000)
    assert found.growth() == ""


def test_the_samples_can_be_had_second_by_second() -> None:
    found = Memory()
    found.sample(1.25)
    found.sample(2)
    assert found.csv() == "second,rss_mb\n0,1.2\n1,2.0\n"
