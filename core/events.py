"""A change of one object in the cluster, as the mirror receives it."""

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from core.objects import kinds, volumes
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.groups import PodGroup, SchedulingGroup
from core.objects.node import Node, NodeMetrics
from core.objects.pod import Pod

Object: TypeAlias = (
    Node
    | Pod
    | kinds.Namespace
    | volumes.PersistentVolume
    | volumes.PersistentVolumeClaim
    | volumes.StorageClass
    | volumes.CSINode
    | volumes.CSIDriver
    | volumes.CSIStorageCapacity
    | volumes.VolumeAttachment
    | kinds.Service
    | kinds.PodDisruptionBudget
    | kinds.ReplicaSet
    | kinds.StatefulSet
    | kinds.ReplicationController
    | kinds.DeviceClass
    | ResourceSlice
    | ResourceClaim
    | DeviceTaintRule
    | PodGroup
    | SchedulingGroup
    | NodeMetrics
)
"""Each has `namespace`, or an empty one, `name`, `full_name` (its key within its kind), `uid`, `resource_version`."""
Kind: TypeAlias = type[Object]


class Missing(NamedTuple):
    """Why the mirror may lack the objects of a kind."""

    why: str = ""
    command: str = ""
    """A command that gets the objects. Empty if there is none."""


NOT_MISSING: Final = Missing()
Action: TypeAlias = Literal["Add", "Update", "Delete"]


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """One change of one object: its new state, or for a Delete its last known state.

    The mirror compares an event with its own state. An Add of a known object is an update. An Update of an unknown
    object is an addition. A Delete of an unknown object does nothing. So a source may skip or repeat an event.
    """

    action: Action
    object: Object
