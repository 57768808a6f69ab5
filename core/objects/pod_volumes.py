"""The volumes of a pod that a plugin reads: claims and inline disks.

Source: the fields of v1.Volume that k8s.io/kubernetes pkg/scheduler/framework/plugins/{volumebinding,volumezone,
nodevolumelimits,volumerestrictions} and k8s.io/csi-translation-lib (IsInlineMigratable) read. Inline CSI volumes, Azure
files and vSphere volumes change no result of these plugins.
"""

from typing import TypeAlias

import msgspec

from core.objects.volumes import VolumeSource


class PodClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim in the pod's namespace. An ephemeral one has the name POD-VOLUME, and must belong to the pod."""

    name: str
    ephemeral: bool = False


class InlineDisk(msgspec.Struct, frozen=True, gc=False):
    """An inline disk, identified as its in-tree plugin does.

    `name` is the volume's name in the pod, for messages. The source of an iSCSI disk, which counts against no limit, is
    `kubernetes.io/iscsi` and the IQN. `read_only` is set only for GCE and iSCSI disks: no plugin reads it for other
    disks. `kind` is for an Azure disk. None means Managed.
    """

    name: str
    source: VolumeSource
    read_only: bool = False
    kind: str | None = None


class RBDImage(msgspec.Struct, frozen=True, gc=False):
    """A Ceph block device. Two pods share the device if the image is the same and they share a monitor."""

    monitors: frozenset[str]
    pool: str
    image: str
    read_only: bool = False


PodVolume: TypeAlias = PodClaim | InlineDisk | RBDImage
