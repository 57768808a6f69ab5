"""The work of one evaluation, counted against a limit, so that no pod blocks the event loop for too long."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

DEFAULT_MAX_WORK: Final = 100_000_000
"""Units for one evaluation. A unit is about a nanosecond on a machine of 2024.

The units are always the same for the same pod and mirror. At 5,000 nodes and 50,000 pods, pods of the benchmark need up
to 1.8 million, and a pod with 20 anti-affinity terms 6.1 million.
"""


class WorkLimitError(Exception):
    """The evaluation of a pod takes more work than allowed. `field` is the field that causes the work."""

    def __init__(self, field: str, entries: int, needed: int, limit: int) -> None:
        self.field: Final = f"Pod.{field}"
        self.reason: Final = f"too much work: {entries} entries, {needed} of {limit} units"
        super().__init__(f"{self.field}: {self.reason}")


class Work:
    """The work of the current evaluation so far. An evaluation begins by setting `spent` to 0.

    Only the pod's own terms are charged. Work that other pods cause must not prevent the pod from being scheduled.
    """

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int | None = None) -> None:
        """Allow `limit` units for each evaluation. None means no limit."""
        self.limit = limit
        self.spent = 0

    @contextmanager
    def uncharged(self) -> Iterator[None]:
        """Repeat an evaluation without a second charge, in order to check or explain its result."""
        limit, self.limit = self.limit, None
        spent = self.spent
        try:
            yield
        finally:
            self.limit, self.spent = limit, spent

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within the block, other evaluations may begin and end. Then the current one continues with its own count."""
        spent = self.spent
        try:
            yield
        finally:
            self.spent = spent

    def spend(self, units: int, field: str, entries: int) -> None:
        """Charge work for `entries` entries of a field, before it is done. Raises WorkLimitError over the limit."""
        self.spent += units
        if self.limit is not None and self.spent > self.limit:
            raise WorkLimitError(field, entries, self.spent, self.limit)
