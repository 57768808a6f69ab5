"""Claims and volumes that prevent scheduling: bound elsewhere, used by another pod, or over a driver's limit."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from core.diagnosis.amounts.claims import MAX_CLAIMS, selector_text
from core.diagnosis.amounts.node_labels import values_text
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.pod_names import name_of
from core.framework.claims import find_claim, named_claims
from core.framework.interface import Status
from core.framework.node_matcher import keys_of_terms
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray
from core.objects.csi_migration import TranslationError
from core.objects.pod import Pod, PodClaim, RBDImage
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from core.plugins.nodevolumelimits.plugin import NewVolumes, NodeVolumeLimits
from core.plugins.nodevolumelimits.volumes_in_use import NO_LIMIT, Migration
from core.plugins.volumebinding.filtering import BoundVolume, node_views
from core.plugins.volumebinding.plugin import BindingState, VolumeBinding
from core.plugins.volumerestrictions import READ_WRITE_ONCE_POD, Restrictions, VolumeRestrictions, disks_of, in_conflict
from core.plugins.volumezone import VolumeZone, ZoneConstraints, volume_topologies


class BoundElsewhere(msgspec.Struct, frozen=True, gc=False):
    """A bound claim whose volume a node cannot reach."""

    plugin: str
    """VolumeBinding (the volume's node affinity) or VolumeZone (its zone and region labels)."""
    claim: str
    """NAMESPACE/NAME"""
    volume: str
    needs: str
    """The volume's requirements on the labels of a node."""
    has: str
    """What the node has of these labels, or all nodes together. Empty if some node can reach the volume."""


class BoundElsewhereInCluster(BoundElsewhere, frozen=True, gc=False):
    """A bound claim, with the number of nodes that cannot reach its volume."""

    nodes: int


class DriverOnNode(msgspec.Struct, frozen=True, gc=False):
    """A CSI driver of the pod's volumes, on one node."""

    driver: str
    limit: int | None
    """How many volumes the driver can attach to the node. None means no limit."""
    attached: int
    added: int
    """Volumes that the pod would add."""


class DriverInCluster(msgspec.Struct, frozen=True, gc=False):
    """A CSI driver of the pod's volumes, over the nodes that limit it."""

    driver: str
    added: int
    """Volumes of the pod, including any that are already attached to a node."""
    nodes: int
    """Nodes with a limit."""
    most_free: int
    most_free_node: str
    limit: int
    """The limit of this node."""


class InUse(msgspec.Struct, frozen=True, gc=False):
    """A ReadWriteOncePod claim, or a disk, that other pods use."""

    name: str
    """NAMESPACE/NAME of a claim, or the name of the pod's volume that is the disk."""
    pods: Sequence[str]
    """NAMESPACE/NAME of pods that use it. For a claim, empty if there are too many pods to search."""


class _Bound(NamedTuple):
    plugin: str
    claim: PersistentVolumeClaim
    volume: PersistentVolume
    needs: str
    keys: Collection[str]
    refused: BoolArray


def bound_elsewhere_on_node(decision: Diagnosis, position: int) -> Sequence[BoundElsewhere]:
    """Return the claims whose volumes a node cannot reach."""
    batch, node = decision.batch.part(np.array([position])), decision.node(position)
    labels = {} if node is None else node.labels
    return [
        BoundElsewhere(
            each.plugin,
            each.claim.full_name,
            each.volume.name,
            each.needs,
            ", ".join(f"{key}={labels[key]}" if key in labels else f"no label {key}" for key in sorted(each.keys)),
        )
        for each in _bound(decision, batch)
        if each.refused[0]
    ]


def bound_elsewhere_in_cluster(decision: Diagnosis) -> Sequence[BoundElsewhereInCluster]:
    """Return the claims whose volumes some node cannot reach."""
    if not len(decision.known):
        return ()
    counted = ((each, int(np.count_nonzero(each.refused))) for each in _bound(decision, decision.batch))
    return [
        BoundElsewhereInCluster(
            each.plugin,
            each.claim.full_name,
            each.volume.name,
            each.needs,
            values_text(decision, each.keys) if nodes == len(decision.batch) else "",
            nodes,
        )
        for each, nodes in counted
        if nodes
    ]


def drivers_on_node(decision: Diagnosis, position: int) -> Sequence[DriverOnNode]:
    """Return the CSI drivers of the pod's volumes on a known node, with their limits there."""
    state = decision.state_of(NodeVolumeLimits.name)
    if not isinstance(state, NewVolumes) or position in decision.batch.strangers:
        return ()
    in_use = state.in_use
    in_use.refresh()
    slot = int(decision.batch.slots[position])
    new = state.on(Migration(int(in_use.migration[slot])))
    if isinstance(new, Status):
        return ()
    added = Counter(driver for volume, driver in new.items() if slot not in in_use.users.get(volume, ()))
    found = []
    for driver, number in sorted(added.items()):
        limits, attached = in_use.limits.get(driver), in_use.attached.get(driver)
        limit = NO_LIMIT if limits is None else int(limits[slot])
        found.append(
            DriverOnNode(
                driver, None if limit == NO_LIMIT else limit, 0 if attached is None else int(attached[slot]), number
            )
        )
    return found


def drivers_in_cluster(decision: Diagnosis) -> Sequence[DriverInCluster]:
    """Return the CSI drivers of the pod's volumes, with the free attachments of the nodes that limit them."""
    state = decision.state_of(NodeVolumeLimits.name)
    if not isinstance(state, NewVolumes) or not len(decision.known):
        return ()
    in_use, slots = state.in_use, decision.batch.slots[decision.known]
    in_use.refresh()
    new = state.on(Migration.ALL)
    added = Counter() if isinstance(new, Status) else Counter(new.values())
    found = []
    for driver, number in sorted(added.items()):
        limits, attached = in_use.limits.get(driver), in_use.attached.get(driver)
        limited = np.zeros(0, np.intp) if limits is None else np.flatnonzero(limits[slots] != NO_LIMIT)
        if limits is None or not len(limited):
            continue
        free = limits[slots[limited]] - (0 if attached is None else attached[slots[limited]])
        most = int(free.argmax())
        name = decision.batch.names[int(decision.known[limited[most]])]
        limit = int(limits[slots[limited[most]]])
        found.append(DriverInCluster(driver, number, len(limited), int(free[most]), name, limit))
    return found


def claims_in_use(decision: Diagnosis, limit: int) -> Sequence[InUse]:
    """Return the pod's ReadWriteOncePod claims that other pods use. They exclude every node."""
    state = decision.state_of(VolumeRestrictions.name)
    if not isinstance(state, Restrictions) or not state.exclusive_claim_in_use:
        return ()
    users = claim_users(decision)
    return [InUse(claim, [name_of(pod) for pod in pods[:limit]]) for claim, pods in users.items()]


def claim_users(decision: Diagnosis) -> dict[str, list[Pod]]:
    """Return the pods that use each ReadWriteOncePod claim of the pod. Costs a pass over all pods of the mirror.

    No pods if the search has taken too long, see PodSearch.
    """
    mirror, pod = decision.mirror, decision.pod
    claims = (find_claim(mirror, pod, each) for each in named_claims(pod))
    found: dict[str, list[Pod]] = {
        each.name: [] for each in claims if each is not None and READ_WRITE_ONCE_POD in each.access_modes
    }
    if decision.search.may_look_at(len(mirror.pods.pods)):
        for _, other in mirror.placed_pods():
            if other.volumes and other.namespace == pod.namespace:
                for volume in other.volumes:
                    if isinstance(volume, PodClaim) and not volume.ephemeral and volume.name in found:
                        found[volume.name].append(other)
    return {f"{pod.namespace}/{name}": pods for name, pods in found.items()}


def disks_on_node(decision: Diagnosis, position: int, limit: int) -> Sequence[InUse]:
    """Return the disks of the pod that pods of a node have mounted, unless all mounts are read-only."""
    state = decision.state_of(VolumeRestrictions.name)
    if not isinstance(state, Restrictions) or position in decision.batch.strangers:
        return ()
    others = decision.mirror.pods_on(decision.batch.names[position])
    found = []
    for disk in disks_of(decision.pod)[:MAX_CLAIMS]:
        users = [name_of(pod) for pod in others if any(in_conflict(disk, other) for other in disks_of(pod))]
        if users:
            name = disk.image if isinstance(disk, RBDImage) else disk.name
            found.append(InUse(name, users[:limit]))
    return found


def _bound(decision: Diagnosis, batch: NodeBatch) -> Iterator[_Bound]:
    volumes = decision.mirror.objects(PersistentVolume)
    binding, zones = decision.state_of(VolumeBinding.name), decision.state_of(VolumeZone.name)
    for named in islice(named_claims(decision.pod), MAX_CLAIMS):
        claim = find_claim(decision.mirror, decision.pod, named)
        volume = None if claim is None else volumes.get(claim.volume)
        if claim is None or volume is None:
            continue
        if isinstance(binding, BindingState) and volume.node_affinity is not None:
            refused = _out_of_reach(binding, volume, batch)
            keys = keys_of_terms(volume.node_affinity.terms)
            yield _Bound(VolumeBinding.name, claim, volume, selector_text(volume.node_affinity), keys, refused)
        topologies = volume_topologies(volume)
        if isinstance(zones, ZoneConstraints) and topologies:
            refused = zones.nodes.judged(batch, ZoneConstraints(zones.nodes, topologies).code) > 0
            needs = ", ".join(f"{key} in ({', '.join(sorted(values))})" for key, values in sorted(topologies))
            yield _Bound(VolumeZone.name, claim, volume, needs, {key for key, _ in topologies}, refused)


def _out_of_reach(state: BindingState, volume: PersistentVolume, batch: NodeBatch) -> BoolArray:
    bound = BoundVolume(volume)
    places, views = node_views(state.mirror, state.volumes, batch)
    refused = []
    for view in views:
        try:
            refused.append(not bound.reached_from(view))
        except TranslationError:
            refused.append(True)
    found: BoolArray = np.array(refused, np.bool_)[places]
    return found
