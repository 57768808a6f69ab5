"""The volumes of a pod, as far as a plugin reads them: claims, and disks that the pod names itself.

Source: what k8s.io/kubernetes pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,
volumerestrictions} and k8s.io/csi-translation-lib (IsInlineMigratable) read of v1.Volume. Inline CSI volumes, Azure
files and vSphere volumes change no result of these plugins.
"""

from typing import TypeAlias

import msgspec

from core.objects.volumes import VolumeSource


class PodClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim in the pod's namespace. An ephemeral one is named POD-VOLUME, and must have been made for the pod."""

    name: str
    ephemeral: bool = False


class InlineDisk(msgspec.Struct, frozen=True, gc=False):
    """A disk by the name that its in-tree plugin has for it.

    `name` is the volume's in the pod, for messages. The source of an iSCSI disk, which counts against no limit, is
    `kubernetes.io/iscsi` and the IQN. `read_only` is kept of GCE and iSCSI disks alone: no plugin reads it of the
    others. `kind` is for an Azure disk; None means Managed.
    """

    name: str
    source: VolumeSource
    read_only: bool = False
    kind: str | None = None


class RBDImage(msgspec.Struct, frozen=True, gc=False):
    """A Ceph block device; one that two pods reach by different monitors is one as long as they share a monitor."""

    monitors: frozenset[str]
    pool: str
    image: str
    read_only: bool = False


PodVolume: TypeAlias = PodClaim | InlineDisk | RBDImage
