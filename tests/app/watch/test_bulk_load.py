"""The garbage collector around loads."""

import gc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from app.watch.bulk_load import BulkLoads


@pytest.fixture(autouse=True)
def _collector_as_it_was() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_nothing_is_collected_during_a_load_and_what_it_made_is_frozen() -> None:
    loads = BulkLoads()
    with loads.loading():
        assert not gc.isenabled()
        made: list[list[object]] = [[]]
        assert gc.get_freeze_count() == 0
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert not any(made is each for each in gc.get_objects())


def test_of_loads_that_overlap_the_last_ends_it() -> None:
    loads = BulkLoads()
    first, second = loads.loading(), loads.loading()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    assert gc.get_freeze_count() == 0
    second.__exit__(None, None, None)
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_what_a_failed_load_leaves_behind_can_be_collected() -> None:
    loads = BulkLoads()
    with suppress(LookupError), loads.loading():
        raise LookupError
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_was_loaded_is_frozen_though_another_load_fails_later() -> None:
    loads = BulkLoads()
    with suppress(LookupError), loads.loading():
        with loads.loading():
            pass
        raise LookupError
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    # That is said once.
    with suppress(LookupError), loads.loading():
        raise LookupError
    assert gc.get_freeze_count() == 0
