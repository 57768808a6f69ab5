"""What is supposed once a pod has a node: volumes reserved for its claims, and others that a driver makes there.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (AssumePodVolumes), which is what the
next pod finds. The volume itself comes later.
"""

from functools import partial

from msgspec.structs import replace

from core.framework.claims import ClaimError
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.pod import Pod
from core.objects.volumes import ClaimRef, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from core.plugins.volumebinding.claims import Offers, claims_of
from core.plugins.volumebinding.filtering import NodeView, PodVolumes, Provisioning, node_views


def reserve_volumes(mirror: ClusterMirror, fork: Fork, pod: Pod) -> None:
    """Suppose that the claims of a pod on a node have volumes, or that volumes are made for them."""
    try:
        bound, unbound = claims_of(mirror, pod)
    except ClaimError:
        return
    if not unbound:
        return
    once = [*{each.full_name: each for each in unbound}.values()]  # a pod may name a claim in two of its volumes
    volumes = PodVolumes(mirror, bound, once)
    _, views = node_views(mirror, volumes, mirror.batch([pod.node_name]))
    for claim, volume in [*volumes.taken_on(views[0])]:
        if volume is not None:
            fork.change_object(replace(volume, claim=ClaimRef(claim.namespace, claim.name, claim.uid)))
        elif claim.selected_node is None:
            # Another pod of the claim asks for no more capacity.
            fork.change_object(replace(claim, selected_node=pod.node_name, requested=None))
            _use_capacity(mirror, fork, claim, views[0])


def _use_capacity(mirror: ClusterMirror, fork: Fork, claim: PersistentVolumeClaim, node: NodeView) -> None:
    """Suppose that the driver has made the volume, and has published what is left of the largest capacity there.

    kube-scheduler does not count it: until the driver publishes, it gives the same room to another pod, whose volume
    cannot be made, so that this pod is scheduled once more.
    """
    storage_class = mirror.objects(StorageClass)[claim.storage_class]
    room = Provisioning(mirror, mirror.derived(Offers), storage_class).capacity(node.labels)
    if room is not None and claim.requested is not None:
        fork.adjust_object(room, partial(_without, claim.requested))


def _without(size: int, room: CSIStorageCapacity) -> CSIStorageCapacity:
    """Return a capacity after a volume was made of it. Of a maximumVolumeSize alone it is not known what is left."""
    if not room.capacity:
        return room
    left = max(0, room.capacity - size)
    return replace(room, capacity=left, limit=min(room.limit or 0, left))
