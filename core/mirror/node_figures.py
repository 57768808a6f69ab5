"""The resource figures of one node, and the requests of its pods from which they follow."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from core.objects.pod import Pod

Amounts: TypeAlias = dict[str, int]  # resource -> amount, never 0


class Figures(msgspec.Struct, frozen=True, gc=False):
    """The four sums of a node or of the cluster, each resource -> amount, never 0. cpu is in millicores.

    *Guaranteed requested* are the requests of placed pods that are not of QoS class BestEffort: the scheduler reserves
    them. *Best-effort requested* are those of BestEffort pods, never cpu or memory. Every placed pod requests 1 of
    `pods`. *Best-effort allocatable* is guaranteed allocatable less guaranteed requested, on each node, and at least 0.
    The cluster's amount is the sum over nodes, so over-commitment of one node does not reduce the rest of another. Pods
    on an unknown node count when the node appears. Source: the Collectable of reference/scheduler-cache-api.
    """

    guaranteed_allocatable: Mapping[str, int]
    guaranteed_requested: Mapping[str, int]
    best_effort_allocatable: Mapping[str, int]
    best_effort_requested: Mapping[str, int]


class PlacedRequests(msgspec.Struct, eq=False):
    """The requests of one node's pods. Every event updates them."""

    guaranteed: Amounts = {}
    best_effort: Amounts = {}

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
