"""Loading a dump freezes its objects for the garbage collector. After each test they are collected again."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _thaw() -> Iterator[None]:
    yield
    gc.unfreeze()
