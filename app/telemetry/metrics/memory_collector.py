"""The memory that the process may have, looked up when it is asked for. What it has, ProcessCollector tells."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.watch.memory_watch import MemoryWatch


class MemoryCollector:
    """The limit, the watermark below it, and whether that is passed."""

    def __init__(self, memory: MemoryWatch) -> None:
        self._memory = memory

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        memory = self._memory
        yield GaugeMetricFamily(
            "kindred_memory_limit_bytes",
            "Memory above which the process would be killed; 0 if there is no limit.",
            memory.limit.bytes,
        )
        yield GaugeMetricFamily(
            "kindred_memory_watermark_bytes",
            "Memory above which the replica is not ready and lists nothing more; 0 if there is no limit.",
            memory.mark,
        )
        yield GaugeMetricFamily(
            "kindred_memory_above_watermark",
            "Whether the process holds more than the watermark (1) or not (0).",
            memory.is_above(),
        )
