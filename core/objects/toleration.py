"""Taints of nodes, and tolerations of pods.

Source: k8s.io/api core/v1 toleration.go (ToleratesTaint).
"""

import re
from collections.abc import Collection
from typing import Final

import msgspec

_COMPARED: Final = ("Lt", "Gt")
_LONGEST_INT64: Final = 20
_canonical: Final = re.compile("-?[1-9][0-9]*|0")


class Taint(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Taint. The effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Toleration: the taints that do not keep the pod off a node.

    An empty `key` means every key, and an empty `effect` every effect. An empty `operator` means Equal. Decoding writes
    Equal, so that equal tolerations are equal values.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint, *, numeric: bool = False) -> bool:
        """Return whether the toleration tolerates the taint. An unknown operator tolerates no taint.

        `numeric` enables the operators Lt and Gt (TaintTolerationComparisonOperators).
        """
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        if numeric and self.operator in _COMPARED:
            return self._compares(taint.value)
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)

    def _compares(self, value: str) -> bool:
        """Upstream compareNumericValues: the taint's value is less than the toleration's (Lt), or greater (Gt)."""
        tolerated, there = _number(self.value), _number(value)
        if tolerated is None or there is None:
            return False
        return there < tolerated if self.operator == "Lt" else there > tolerated


def _number(text: str) -> int | None:
    """Return a decimal integer in canonical form. None for any other text, and for values outside of int64."""
    if len(text) > _LONGEST_INT64 or not _canonical.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class ToleratedTaints:
    """The taints that some tolerations tolerate.

    The cost of a look-up does not depend on the number of tolerations, except for those that compare numbers.
    """

    __slots__ = ("_compared", "_equal", "_existing")

    def __init__(self, tolerations: Collection[Toleration], *, numeric: bool = False) -> None:
        self._existing: set[tuple[str, str]] = set()  # (key, effect), each "" for any
        self._equal: set[tuple[str, str, str]] = set()  # (key, effect, value)
        self._compared = [each for each in tolerations if each.operator in _COMPARED] if numeric else []
        for each in tolerations:
            if each.operator == "Exists":
                self._existing.add((each.key, each.effect))
            elif each.operator in ("", "Equal"):
                self._equal.add((each.key, each.effect, each.value))

    def __contains__(self, taint: Taint) -> bool:
        """Return whether any toleration tolerates the taint, as Toleration.tolerates does."""
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._existing or (key, effect, taint.value) in self._equal:
                    return True
        return any(each.tolerates(taint, numeric=True) for each in self._compared)


NO_TOLERATIONS: Final[frozenset[Toleration]] = frozenset()
"""Shared by pods without tolerations: Python creates a new empty set each time."""
