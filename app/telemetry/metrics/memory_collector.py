"""The memory limit and watermark, read at each scrape. ProcessCollector exports the memory in use."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.watch.memory_watch import MemoryWatch


class MemoryCollector:
    """The limit, the watermark below it, and whether memory is above the watermark."""

    def __init__(self, memory: MemoryWatch) -> None:
        self._memory = memory

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        memory = self._memory
        yield GaugeMetricFamily(
            "kindred_memory_limit_bytes",
            "Memory limit of the process in bytes. 0: no limit.",
            memory.limit.bytes,
        )
        yield GaugeMetricFamily(
            "kindred_memory_watermark_bytes",
            "Memory in bytes above which the replica is not ready and starts no list. 0: no limit.",
            memory.mark,
        )
        yield GaugeMetricFamily(
            "kindred_memory_above_watermark",
            "Whether memory is above the watermark (1) or not (0).",
            memory.is_above(),
        )
