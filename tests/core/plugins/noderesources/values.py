"""Nodes, pods and mirrors that differ in amounts alone, for the tests of this package."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Demand, Pod
from tests.core.mirror.values import mirror_of

Amounts: TypeAlias = Mapping[str, int]

GPU: Final = "example.com/gpu"
DISK: Final = "ephemeral-storage"


def offering(name: str, amounts: Amounts) -> Node:
    """Make a node that offers these amounts, and 110 pods unless it says otherwise."""
    return Node(name, allocatable={"pods": 110, **amounts})


def asking(name: str, amounts: Amounts, on: str = "", non_zero: tuple[int, int] | None = None) -> Pod:
    """Make a pod that asks for these amounts; scoring takes it for the same unless `non_zero` says otherwise."""
    taken_for = (amounts.get("cpu", 0), amounts.get("memory", 0)) if non_zero is None else non_zero
    demand = Demand(non_zero_requests=taken_for, scored_requests=taken_for)
    return Pod(name, "default", name, node_name=on, requests=amounts, demand=demand)


def foreign(amounts: Amounts) -> tuple[ClusterMirror, NodeBatch]:
    """Return a batch of one whole node that the mirror does not know, though the mirror is not empty."""
    mirror = mirror_of(offering("known", {"cpu": 1, "memory": 1}), asking("there", {"cpu": 1, "memory": 1}, "known"))
    return mirror, mirror.batch(["strange"], {0: offering("strange", amounts)})
