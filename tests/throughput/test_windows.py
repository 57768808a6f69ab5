"""Bindings in a scheduler's log, and CPU time between two of them."""

import datetime as dt
import time

import pytest

from tests.throughput.windows import CpuSamples, binding_times, sampling

LOG = b"""\
I1231 23:59:59.500000   12 schedule_one.go:1] "Attempting to schedule pod" pod="sched-1/a"
I1231 23:59:59.750000   12 schedule_one.go:370] "Successfully bound pod to node" pod="sched-1/a" node="node-0001"
E1231 23:59:59.800000   12 schedule_one.go:370] "Failed to bind pod" pod="sched-1/b"
I1231 23:59:59.999999   12 schedule_one.go:370] "Successfully bound pod to node" pod="sched-1/b" node="node-0002"
"""


def test_only_bindings_that_were_done_have_a_time() -> None:
    first, second = binding_times(LOG, 2026)
    assert first == dt.datetime(2026, 12, 31, 23, 59, 59, 750_000).timestamp()  # noqa: DTZ001  # local, as klog has it
    assert second - first == pytest.approx(0.249999)


def test_only_the_pods_of_a_prefix_count() -> None:
    assert binding_times(LOG, 2026, "b") == binding_times(LOG, 2026)[1:]


def test_a_member_of_a_group_counts_by_its_own_name() -> None:
    log = LOG.replace(b' pod="sched-1/b" node', b' podGroup="sched-1/g" pod="sched-1/b" node')
    assert binding_times(log, 2026, "b") == binding_times(LOG, 2026, "b")


def test_a_log_without_bindings_has_no_times() -> None:
    assert binding_times(LOG.replace(b"Successfully", b"Hardly"), 2026) == []


def samples_of(*taken: tuple[float, float]) -> CpuSamples:
    """Return samples of one program: times, and the CPU seconds that it had spent until then."""
    seconds = iter([spent for _, spent in taken])
    samples = CpuSamples({"program": lambda: next(seconds)})
    for moment, _ in taken:
        samples.take(moment)
    return samples


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        pytest.param(10.0, 12.0, 3.0, id="at samples"),
        pytest.param(10.5, 11.5, 1.5, id="between samples"),
        pytest.param(11.0, 11.5, 1.0, id="from a sample on"),
        pytest.param(9.0, 20.0, 3.0, id="beyond the samples nothing is spent"),
    ],
)
def test_cpu_time_between_two_samples_counts_in_proportion(begin: float, end: float, expected: float) -> None:
    samples = samples_of((10.0, 5.0), (11.0, 6.0), (12.0, 8.0))
    assert samples.spent(begin, end) == {"program": pytest.approx(expected)}


def test_sampling_ends_with_the_block() -> None:
    calls: list[float] = []

    def read() -> float:
        calls.append(time.time())
        return float(len(calls))

    begin = time.time()
    with sampling({"program": read}) as samples:
        time.sleep(0.1)
    taken = len(calls)
    assert taken >= 3
    assert samples.spent(begin - 1, time.time() + 1) == {"program": taken - 1}
    time.sleep(0.05)
    assert len(calls) == taken
