"""The garbage collector, kept away while objects are loaded in bulk, and from the mirror ever after.

A load makes hardly any garbage, but the collector would look through its objects again and again. One full collection
over an unfrozen mirror of 150,000 pods stopped the process for 244 ms, and for 0.01 ms after `gc.freeze()`. Every
freeze but the first needs a collection before it. Otherwise garbage would be frozen and leak, such as connections
closed since the last one, with the buffers of their TLS. It looks only through the objects that are new since. After
the first load that is the whole mirror, and next to nothing of it was found to be garbage.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class BulkLoads:
    """Turns collection off while any load is under way, and freezes the live objects after the last.

    Not after one that failed alone: that made nothing that is to stay.
    """

    def __init__(self) -> None:
        self._running = 0
        self._loaded = False  # whether there is something to freeze
        self._frozen = False  # whether there was a freeze

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Surround a load. Loads may overlap."""
        self._running += 1
        gc.disable()
        try:
            yield
            self._loaded = True
        finally:
            self._running -= 1
            if not self._running:
                self._end()

    def _end(self) -> None:
        if self._loaded:
            if self._frozen:
                gc.collect()
            gc.freeze()
            self._frozen = True
            # A full collection is put off until the new objects are a quarter of those that the last one found
            # (gcmodule.c, long_lived_total). That is in the freeze now, so that garbage would wait for tens of
            # thousands of objects.
            gc.collect()
            self._loaded = False
        gc.enable()
