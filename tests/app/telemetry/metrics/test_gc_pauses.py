"""Pauses of the garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from app.telemetry.metrics.gc_pauses import GcPauses
from tests.app.telemetry.metrics.scraped import collected

COUNT, SECONDS = "kindred_gc_pause_seconds_count", "kindred_gc_pause_seconds_sum"
MAX_LENGTH = "kindred_gc_longest_pause_seconds"


@pytest.fixture(autouse=True)
def _no_collection_but_ours() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_pauses_are_counted_and_summed_by_generation() -> None:
    pauses = GcPauses(iter([1.0, 1.5, 2.0, 2.25, 3.0, 6.0]).__next__)
    with pauses.observing():
        gc.collect(2)
        gc.collect(2)
        gc.collect(0)
    values = collected(pauses)
    assert values[COUNT] == {("0",): 1, ("1",): 0, ("2",): 2}
    assert values[SECONDS] == {("0",): 3.0, ("1",): 0.0, ("2",): 0.75}
    assert values[MAX_LENGTH] == {("0",): 3.0, ("1",): 0.0, ("2",): 0.5}


def test_nothing_is_measured_after_the_block_even_if_it_raises() -> None:
    callbacks = list(gc.callbacks)
    pauses = GcPauses(iter([1.0, 2.0]).__next__)

    def fail() -> None:
        with pauses.observing():
            gc.collect(1)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    gc.collect(1)
    assert collected(pauses)[COUNT]["1",] == 1
    assert gc.callbacks == callbacks
