"""What is measured while pods come and go, and which modes a release has."""

import pytest

from tests.e2e.throughput import read_options
from tests.throughput.modes import MODES
from tests.throughput.results import FAST_PATH
from tests.throughput.steady import Growth, Sample, Steady, rss_of, tables


def test_growth_is_that_of_a_line_through_all_and_not_of_one_sample() -> None:
    even = [(float(second), 200.0) for second in range(0, 600, 10)]
    assert Growth.of(even) == Growth(200.0, 200.0, 200.0, 0.0)
    peak = [*even, (600.0, 260.0)]
    assert Growth.of(peak).end == 200.0
    assert Growth.of(peak).most == 260.0
    leak = [(second, value + second / 60) for second, value in even]
    assert Growth.of(leak).a_minute == pytest.approx(1.0)
    assert Growth.of(leak).start == pytest.approx(200.4, abs=0.1)
    assert Growth.of(leak).end == pytest.approx(209.4, abs=0.1)


def test_a_program_that_did_not_run_has_no_growth() -> None:
    samples = [Sample(seconds, {"etcd": 80.0}, {"pods waiting": 2.0}) for seconds in (10.0, 70.0)]
    cell = Steady("plain", "in-tree", 200, 80, 14_000, 3, 4.0, 20.0, 60.0, {"etcd": 0.5}, samples)
    assert cell.growth(rss_of("Kindred")) is None
    assert tables([cell], ["etcd", "Kindred"]).splitlines()[-1] == (
        "| plain, in-tree | 80.0 to 80.0 (+0.00) | - | 2.00 to 2.00 (+0.00) |"
    )


def test_a_mode_with_a_gate_is_offered_for_releases_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert MODES[FAST_PATH].flags == ["--feature-gates=InterPodAffinityHostnameFastPath=true"]
    for release in ("1.37", "v1.37.1"):
        assert read_options(["--modes", FAST_PATH, "--kubernetes", release]).modes == [MODES[FAST_PATH]]
    for earlier in ([], ["--kubernetes", "v1.36.3"]):
        with pytest.raises(SystemExit):
            read_options(["--modes", FAST_PATH, *earlier])
        assert "--kubernetes 1.37 has it" in capsys.readouterr().err
