"""Groups of pods that are placed together, read at each scrape."""

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.gangs.gangs import Gangs
from core.gangs.unit_status import SchedulingStatus


class UnitCollector:
    """Units by status, and counts of placed and timed-out ones since the start."""

    def __init__(self, gangs: Gangs, clock: Callable[[], float]) -> None:
        """Report `gangs`. `clock` is the clock that `gangs` uses."""
        self._gangs = gangs
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        units: Counter[SchedulingStatus] = Counter()
        reserved = 0
        for each in self._gangs.unit_statuses(self._clock()):
            units[each.status] += 1
            reserved += each.reserved
        by_status = GaugeMetricFamily(
            "kindred_units", "Groups of pods that are placed together, by status.", labels=["status"]
        )
        for status in SchedulingStatus:
            by_status.add_metric([status.value], units[status])
        yield by_status
        yield GaugeMetricFamily(
            "kindred_units_reserved_pods",
            "Pods with a reserved place and no request since the reservation.",
            reserved,
        )
        yield CounterMetricFamily(
            "kindred_units_placed",
            "Times that Kindred found places for all needed members of a unit.",
            self._gangs.placed,
        )
        yield CounterMetricFamily(
            "kindred_units_timed_out",
            "Times that places of a unit were released because requests for its members did not come in time.",
            self._gangs.timeouts,
        )
