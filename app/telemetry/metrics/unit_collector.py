"""Groups of pods that are placed together, looked up when it is asked for."""

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.gangs.gangs import Gangs
from core.gangs.unit_status import SchedulingStatus


class UnitCollector:
    """Units by status, and what came of them since the start."""

    def __init__(self, gangs: Gangs, clock: Callable[[], float]) -> None:
        """Ask `gangs`, whose clock it is."""
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
            "kindred_units_reserved_pods", "Pods with a reserved place that were not asked about since.", reserved
        )
        yield CounterMetricFamily(
            "kindred_units_placed", "Times that all needed members of a unit found a place.", self._gangs.placed
        )
        yield CounterMetricFamily(
            "kindred_units_timed_out",
            "Times that places of a unit were released because its members were not asked about.",
            self._gangs.timeouts,
        )
