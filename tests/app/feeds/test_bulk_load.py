"""The garbage collector around loads."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from weakref import ref

import pytest

from app.feeds.objects import BulkLoads
from tests.collector import freezing


class Node:
    """One that is garbage as soon as nothing else has it, and that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True, scope="module")
def _freezing() -> Iterator[None]:
    with freezing():
        yield


@pytest.fixture(autouse=True)
def _collector_as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
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


def test_the_first_load_is_not_looked_through() -> None:
    frozen_at_collections: list[int] = []

    def note(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            frozen_at_collections.append(gc.get_freeze_count())

    gc.callbacks.append(note)
    try:
        with BulkLoads().loading():
            pass
    finally:
        gc.callbacks.remove(note)
    assert frozen_at_collections
    assert all(frozen_at_collections)


def test_what_is_garbage_at_the_end_of_a_later_load_is_not_frozen() -> None:
    loads = BulkLoads()
    with loads.loading():
        pass
    before = ref(Node())
    with loads.loading():
        meanwhile = ref(Node())
    assert before() is None
    assert meanwhile() is None


def test_what_becomes_garbage_after_a_load_does_not_wait_for_what_is_frozen() -> None:
    loaded: list[list[object]] = [[] for _ in range(10_000)]
    gc.collect()  # from now on, a full collection waits for a quarter of these
    with BulkLoads().loading():
        pass
    gc.set_threshold(10, 2, 2)
    node = Node()
    seen = ref(node)
    gc.collect(1)  # it is of the oldest generation now, where only a full collection looks
    del node
    later: list[list[object]] = [[] for _ in range(len(loaded) // 10)]
    assert seen() is None
    assert later


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
