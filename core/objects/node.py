"""The node, reduced to the fields that scheduling reads."""

from collections.abc import Mapping
from typing import Final

import msgspec

from core.objects.toleration import Taint

CONDITION_TYPES: Final = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""The types of node conditions that affect a result."""


NO_FEATURES: Final[frozenset[str]] = frozenset()
"""Shared by nodes that declare no features."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A v1.Node, reduced to the fields that the plugins and the mirror read.

    `allocatable` has cpu in millicores, and all other resources in their own unit (bytes, pieces). It includes `pods`.
    `taints` keep the order of the spec, because the first untolerated taint is reported. `images` has every name of
    every image, with the size in bytes.

    `conditions` has the status of CONDITION_TYPES only. The other fields of a condition change with every heartbeat and
    affect no result. A condition that the node does not report is missing.

    `declared_features` is status.declaredFeatures. `capacity` is the cpu and memory of status.capacity, in the units of
    `allocatable`. Measured usage is a share of these amounts.
    """

    name: str
    labels: Mapping[str, str] = {}
    allocatable: Mapping[str, int] = {}
    uid: str = ""
    resource_version: str = ""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Mapping[str, int] = {}
    conditions: Mapping[str, str] = {}
    declared_features: frozenset[str] = NO_FEATURES
    capacity: Mapping[str, int] = {}

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name
