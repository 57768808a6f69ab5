"""A change of one object in the cluster, as the mirror receives it."""

from typing import Literal, TypeAlias

import msgspec

from core.objects.device_class import DeviceClass
from core.objects.disruption import PodDisruptionBudget
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.node_metrics import NodeMetrics
from core.objects.owner import ReplicaSet, ReplicationController, StatefulSet
from core.objects.pod import Pod
from core.objects.pod_group import PodGroup
from core.objects.scheduling_group import SchedulingGroup
from core.objects.service import Service
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Object: TypeAlias = (
    Node
    | Pod
    | Namespace
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | Service
    | PodDisruptionBudget
    | ReplicaSet
    | StatefulSet
    | ReplicationController
    | DeviceClass
    | PodGroup
    | SchedulingGroup
    | NodeMetrics
)
"""Each has `name`, `full_name` (its key within its kind), `uid` and `resource_version`."""
Kind: TypeAlias = type[Object]
Action: TypeAlias = Literal["Add", "Update", "Delete"]


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """One change of one object: its new state, or for a Delete its last known state.

    The mirror compares an event with its own state. An Add of a known object is an update. An Update of an unknown
    object is an addition. A Delete of an unknown object does nothing. So a source may skip or repeat an event.
    """

    action: Action
    object: Object
