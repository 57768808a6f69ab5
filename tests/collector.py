"""The garbage collector in a process of pytest: it looks at the objects of one module of tests at a time.

Collected tests and cached golden cases stay until the end. A full collection among them took up to 2 s,
which is as long as the time limits of some tests. So these objects are frozen, which makes them invisible to it.
Code under test freezes what it loads (app/feeds/objects.py). That has no effect in a process of pytest, in which each
loaded cluster would stay until the end.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

_freeze: Final = gc.freeze


def freeze_what_stays() -> None:
    """Collect the garbage since the last call, and freeze the rest."""
    gc.collect()
    _freeze()


def ignore_freezes() -> None:
    """Make `gc.freeze` do nothing until the end of the process."""
    patch.object(gc, "freeze", _nothing).start()


@contextmanager
def freezing() -> Iterator[None]:
    """Let `gc.freeze` freeze in a block, which begins and ends with nothing else frozen."""
    gc.unfreeze()
    with patch.object(gc, "freeze", _freeze):
        yield
    gc.unfreeze()


def _nothing() -> None:
    pass
