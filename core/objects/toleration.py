"""Taints of nodes, and what a pod says to tolerate them.

Source: k8s.io/api core/v1 toleration.go (ToleratesTaint).
"""

from collections.abc import Iterable
from typing import Final

import msgspec


class Taint(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Taint; the effect is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, order=True, gc=False):
    """A v1.Toleration: which taints do not keep the pod off a node.

    An empty `key` stands for every key, an empty `effect` for every effect. An empty `operator` means Equal, which is
    what decoding makes of it, so that equal tolerations are equal values.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Tell whether the taint does not matter to the pod; an unknown operator tolerates nothing."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class ToleratedTaints:
    """The taints that some tolerations tolerate. A look-up costs the same however many tolerations there are."""

    __slots__ = ("_equal", "_existing")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._existing: set[tuple[str, str]] = set()  # (key, effect), each "" for any
        self._equal: set[tuple[str, str, str]] = set()  # (key, effect, value)
        for each in tolerations:
            if each.operator == "Exists":
                self._existing.add((each.key, each.effect))
            elif each.operator in ("", "Equal"):
                self._equal.add((each.key, each.effect, each.value))

    def __contains__(self, taint: Taint) -> bool:
        """Tell whether any toleration tolerates the taint, as Toleration.tolerates does."""
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._existing or (key, effect, taint.value) in self._equal:
                    return True
        return False


NO_TOLERATIONS: Final[frozenset[Toleration]] = frozenset()
"""What pods without tolerations share: Python makes an empty set anew each time."""
