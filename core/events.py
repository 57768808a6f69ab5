"""What happens in a cluster, as the mirror is told it."""

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
    | NodeMetrics
)
"""Each has `name`, `full_name` (its key within its kind), `uid` and `resource_version`."""
Kind: TypeAlias = type[Object]
Action: TypeAlias = Literal["Add", "Update", "Delete"]


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """One change of one object: its new state, or for a Delete its last known one.

    The mirror compares with the state that it holds itself, so an Add of what it knows is an update, an Update of what
    it does not know is an addition, and a Delete of the unknown does nothing: a source that has missed an event, or
    repeats one, does no harm.
    """

    action: Action
    object: Object
