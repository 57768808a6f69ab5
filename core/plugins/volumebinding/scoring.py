"""How much of its storage a node would give to the claims of a pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (Score) and scorer.go, with
the default shape of VolumeBindingArgs: 100 if no storage is used, 0 if all is.
"""

from collections.abc import Mapping
from typing import Final

from core.framework.interface import MAX_NODE_SCORE

_INT64: Final = 2**63


class Storage:
    """The requests of one class's claims, and the capacity for them, in bytes."""

    __slots__ = ("_capacity", "_requested")

    def __init__(self) -> None:
        self._requested = 0
        self._capacity = 0

    def add(self, requested: int, capacity: int) -> None:
        """Add a claim with a volume of its own."""
        self._requested = _wrapped(self._requested + requested)
        self._capacity = _wrapped(self._capacity + capacity)

    def take_from(self, requested: int, capacity: int) -> None:
        """Add a claim with a new volume. All such claims of a class take from the same capacity."""
        self._requested = _wrapped(self._requested + requested)
        self._capacity = capacity

    @property
    def score(self) -> int:
        """100 less the requested share, in percent, rounded down. 0 if the capacity is 0 or too small."""
        if not self._capacity or self._requested > self._capacity:
            return 0
        used = _wrapped(self._requested * MAX_NODE_SCORE) // self._capacity
        return MAX_NODE_SCORE - min(max(used, 0), MAX_NODE_SCORE)


def score_of(by_class: Mapping[str, Storage]) -> int:
    """Return the mean of the scores of the classes, rounded to the nearest integer, or 0 without classes."""
    if not by_class:
        return 0
    total, number = sum(storage.score for storage in by_class.values()), len(by_class)
    return (2 * total + number) // (2 * number)


def _wrapped(amount: int) -> int:
    """Return an amount wrapped to an int64, as in Go."""
    return amount if -_INT64 <= amount < _INT64 else (amount + _INT64) % (2 * _INT64) - _INT64
