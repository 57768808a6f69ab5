"""The memory that the process may have, as metrics."""

from app.telemetry.metrics.memory_collector import MemoryCollector
from app.watch.memory_watch import MemoryWatch
from app.watch.process_memory import MemoryLimit
from tests.app.telemetry.metrics.scraped import collected


def test_the_limit_the_watermark_and_whether_it_is_passed_are_told() -> None:
    memory = MemoryWatch(MemoryLimit(1000, "the test"), 0.9, (), lambda: 0.0, resident=lambda: 950)
    assert collected(MemoryCollector(memory)) == {
        "kindred_memory_limit_bytes": {(): 1000.0},
        "kindred_memory_watermark_bytes": {(): 900.0},
        "kindred_memory_above_watermark": {(): 1.0},
    }
