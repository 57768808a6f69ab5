"""Setup of all tests: depth and order of random tests, and the garbage collector."""

import gc
import os
from collections.abc import Generator, Iterator
from typing import Final
from unittest.mock import patch

import pytest

from tests.collector import freeze_what_stays, ignore_freezes
from tests.depth import has_depth, use_depth

use_depth()

_LONG: Final = ("tests/properties/", "tests/robustness/", "tests/conformance/")


@pytest.fixture(scope="session", autouse=True)
def _children_are_not_idle() -> Iterator[None]:
    """Let a forked child have its share: on busy CPUs an idle one (app/process/forked.py) has next to none."""
    with patch.object(os, "sched_setscheduler", lambda *_: None):
        yield


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for two CPUs. Tests wait for pauses and time limits, so three keep two CPUs 76 % busy."""
    return max(1, len(os.sched_getaffinity(0)) * 3 // 2)


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that have a depth. Run long tests first, so that workers share the short ones at the end."""
    for item in items:
        if has_depth(item):
            item.add_marker("deep")
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without full garbage collections, which find nothing."""
    ignore_freezes()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        freeze_what_stays()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """After the last test of a module, let the collector forget what stays."""
    yield
    if nextitem is not None and nextitem.path != item.path:
        freeze_what_stays()
