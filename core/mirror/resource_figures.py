"""Sums of allocatable resources, of a node or the cluster, and of placed pods' requests.

Terms. A resource whose sum is 0 does not appear.

- *guaranteed allocatable*: the nodes' resources (`Node.allocatable`).
- *guaranteed requested*: the requests of placed pods that are not of QoS class BestEffort. The scheduler reserves them.
- *best-effort requested*: the requests of placed BestEffort pods, never cpu or memory.
- *best-effort allocatable*: guaranteed allocatable less guaranteed requested, on each node, and at least 0. The
  cluster's amount is the sum over nodes, not the difference of the cluster's sums, so over-commitment of one node does
  not reduce the rest of another.

Every placed pod requests 1 of `pods`. The cluster's sums cover known nodes. Pods on an unknown node count when the node
appears. Source of the division: the Collectable of reference/scheduler-cache-api (Guaranteed, BestEffort).
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from core.objects.labels import EVERYTHING, Selector
from core.objects.pod import Pod

Amounts: TypeAlias = dict[str, int]  # resource -> amount, never 0

_NOTHING: Final[Mapping[str, int]] = {}


class Figures(msgspec.Struct, frozen=True, gc=False):
    """The four sums of a node or of the cluster, each resource -> amount, never 0. cpu is in millicores."""

    guaranteed_allocatable: Mapping[str, int]
    guaranteed_requested: Mapping[str, int]
    best_effort_allocatable: Mapping[str, int]
    best_effort_requested: Mapping[str, int]


class PlacedRequests:
    """The requests of one node's pods. Initialised with the present requests, then updated by every event."""

    __slots__ = ("best_effort", "guaranteed")

    def __init__(self, guaranteed: Mapping[str, int] = _NOTHING, best_effort: Mapping[str, int] = _NOTHING) -> None:
        self.guaranteed: Amounts = {**guaranteed}
        self.best_effort: Amounts = {**best_effort}

    def count(self, pod: Pod, delta: int) -> None:
        """Add the requests of a pod (delta 1), or subtract them (delta -1)."""
        amounts = self.best_effort if pod.best_effort else self.guaranteed
        for resource, amount in pod.requests.items():
            total = amounts.get(resource, 0) + amount * delta
            if total:
                amounts[resource] = total
            else:
                amounts.pop(resource, None)
        total = amounts.get("pods", 0) + delta
        if total:
            amounts["pods"] = total
        else:
            del amounts["pods"]

    def figures(self, allocatable: Mapping[str, int]) -> Figures:
        """Return the present figures of a node with these allocatable resources."""
        left = {resource: amount - self.guaranteed.get(resource, 0) for resource, amount in allocatable.items()}
        return Figures(
            allocatable
            if all(allocatable.values())
            else {name: amount for name, amount in allocatable.items() if amount},
            {**self.guaranteed},
            {resource: amount for resource, amount in left.items() if amount > 0},
            {**self.best_effort},
        )


class Partition:
    """A rule on node names and labels, so that several schedulers own disjoint nodes. Initially all nodes are in.

    A name that was set explicitly takes precedence over the selector, and need not exist yet. Nodes out of the
    partition get an unresolvable status, but their pods count wherever pods of the whole cluster count.
    """

    def __init__(self) -> None:
        self.whole = True
        """Whether the rule includes every node, so that no node needs a check."""
        self._selector = EVERYTHING
        self._names: dict[str, bool] = {}  # node name -> whether it is in, for explicitly set names
        self._outside = 0  # how many of them are out: a rule may name hundreds of thousands

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels is in."""
        inside = self._names.get(name)
        return self._selector.matches(labels) if inside is None else inside

    def set_selector(self, selector: Selector) -> None:
        """Include the nodes whose labels match, except for explicitly set names."""
        self._selector = selector
        self._weigh()

    def set_name(self, name: str, *, inside: bool) -> None:
        """Include or exclude one node regardless of its labels."""
        self._outside += (not inside) - (self._names.get(name) is False)
        self._names[name] = inside
        self._weigh()

    def clear_name(self, name: str) -> None:
        """Remove an explicit setting, so that the selector decides for the node."""
        self._outside -= self._names.pop(name, None) is False
        self._weigh()

    def _weigh(self) -> None:
        self.whole = self._selector.everything and not self._outside
