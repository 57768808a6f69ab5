"""The node as scheduling sees it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from core.objects.toleration import Taint

CONDITION_TYPES: Final = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""The types of node conditions that decide something."""


NO_FEATURES: Final[frozenset[str]] = frozenset()
"""Shared by nodes that declare no features."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A v1.Node reduced to the fields that the plugins and the mirror read.

    `allocatable` has cpu in millicores and all others in their own unit (bytes, pieces), `pods` among them. `taints`
    keep the order of the spec, as the first one that a pod does not tolerate is reported. `images` has every name of
    every image, with the size in bytes. `conditions` has the status of CONDITION_TYPES alone: the other
    fields of a condition change with every heartbeat and decide nothing. Conditions that the node does not report are
    absent. `declared_features` is status.declaredFeatures. `capacity` is the cpu and the memory of status.capacity, in
    the units of `allocatable`. The usage of a node is a share of these amounts.
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
        """The object as people write it; it has no namespace."""
        return self.name
