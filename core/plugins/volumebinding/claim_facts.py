"""What keeps a claim of the pod from a volume, in words: its phase, class, driver, capacities, topology and node.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (GetPodVolumeClaims,
FindPodVolumes, findMatchingVolumes, checkVolumeProvisions, hasEnoughCapacity).
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from core.explaining.bound_claims import MAX_CLAIMS
from core.explaining.decision import Decision
from core.explaining.node_labels import nodes_text, selector_text
from core.explaining.typos import mistaken
from core.framework.claims import find_claim
from core.objects.pod import PodClaim
from core.objects.quantity import quantity_text
from core.objects.volumes import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.claims import LOST, Offers, selected_nodes
from core.plugins.volumebinding.filtering import NAME, Wish
from core.plugins.volumezone import NAME as VOLUME_ZONE

_MAX_REPORTED: Final = 4
"""How many claims are told with all facts. Each may cost a pass over the volumes of its class."""
_MAX_LISTED: Final = 3
_MAX_CLASSES: Final = 5
_STORAGE: Final = "ephemeral-storage"
"""A resource in bytes, for the notation."""


class ClaimFact(msgspec.Struct, frozen=True, gc=False):
    """A claim of the pod without a usable volume, and why."""

    claim: str
    """NAMESPACE/NAME"""
    why: str

    @property
    def text(self) -> str:
        """The claim in words."""
        return f"claim {self.claim}: {self.why}"


def claims_without_volume(decision: Decision) -> Sequence[ClaimFact]:
    """Return the claims that have no volume, with the facts that decide. Empty if no volume rule rejects a node."""
    if not decision.refusing.keys() & {NAME, VOLUME_ZONE}:
        return ()
    named = islice((each for each in decision.pod.volumes if isinstance(each, PodClaim)), MAX_CLAIMS)
    claims = ((each, find_claim(decision.mirror, decision.pod, each)) for each in named)
    facts = (
        ClaimFact(
            f"{decision.pod.namespace}/{each.name}",
            "; ".join(_why(decision, claim)) if claim is not None else _absent(decision, each),
        )
        for each, claim in claims
    )
    return [*islice((each for each in facts if each.why), _MAX_REPORTED)]


def _absent(decision: Decision, claim: PodClaim) -> str:
    if claim.ephemeral:
        return "it does not exist: the ephemeral volume controller makes it"
    namespace, claims = decision.pod.namespace, decision.mirror.objects(PersistentVolumeClaim)
    there = (each.name for each in claims.values() if each.namespace == namespace)
    first = sorted(there, key=lambda each: (not mistaken(claim.name, each), each))[:_MAX_CLASSES]
    return f"it does not exist; claims of the namespace: {', '.join(first) or 'none'}"


def _why(decision: Decision, claim: PersistentVolumeClaim) -> Iterator[str]:
    volumes, classes = decision.mirror.objects(PersistentVolume), decision.mirror.objects(StorageClass)
    name, storage_class = claim.storage_class, classes.get(claim.storage_class)
    if claim.phase == LOST:
        yield f"in phase Lost: its PersistentVolume {claim.volume} is gone"
    elif claim.volume:
        if claim.volume not in volumes:
            yield f"its PersistentVolume {claim.volume} does not exist"
        elif not claim.bind_completed:
            yield f"it names the PersistentVolume {claim.volume}, but is not bound to it yet"
    elif not name:
        yield "it names no StorageClass, so only a PersistentVolume without a class can be bound to it"
        yield from _free(decision, claim)
    elif storage_class is None:
        there = ", ".join(sorted(classes)[:_MAX_CLASSES]) or "none"
        yield f"its StorageClass {name} does not exist; StorageClasses of the cluster: {there}"
    elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        yield f"StorageClass {name} binds at once, before the pod is scheduled, and it is not bound yet"
        yield from _source_of(decision, claim, storage_class)
    else:
        yield from _selected(decision, claim)
        yield from _source_of(decision, claim, storage_class)


def _selected(decision: Decision, claim: PersistentVolumeClaim) -> Iterator[str]:
    if claim.selected_node is not None:
        there = claim.selected_node in decision.mirror.nodes.slots
        text = f"a volume for it is being made for node {claim.selected_node} (volume.kubernetes.io/selected-node)"
        yield (
            f"{text}, and only there" if there else f"{text}, which does not exist: remove this annotation of the claim"
        )


def _source_of(decision: Decision, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Iterator[str]:
    """Yield where a new volume could be made, or which existing ones there are."""
    name, driver = storage_class.name, storage_class.provisioner
    if driver in NO_PROVISIONER:
        yield f"StorageClass {name} makes no volumes ({driver or 'no provisioner'})"
        yield from _free(decision, claim)
        return
    yield f"StorageClass {name} is of driver {driver}"
    if storage_class.allowed_topologies is not None:
        where = nodes_text(decision, storage_class.allowed_topologies)
        yield f"its volumes may be for {selector_text(storage_class.allowed_topologies)} ({where})"
    publishes = decision.mirror.objects(CSIDriver).get(driver)
    if publishes is None or not publishes.storage_capacity or claim.requested is None:
        return
    found = [*islice(decision.mirror.derived(Offers).room(name), _MAX_LISTED + 1)]
    needs = f"it needs {_size(claim.requested)}"
    if not found:
        yield f"{needs}, and the driver has reported no capacity for this class (no CSIStorageCapacity)"
        return
    reported = []
    for each in found[:_MAX_LISTED]:
        topology = selected_nodes(each.topology)
        where = "any node" if topology is None else selector_text(topology) or "none"
        reported.append(f"{_size(each.limit or 0)} for {where} ({nodes_text(decision, topology)})")
    more = " and more" if len(found) > _MAX_LISTED else ""
    yield f"{needs}; largest capacities that the driver has reported (CSIStorageCapacity): {'; '.join(reported)}{more}"


def _free(decision: Decision, claim: PersistentVolumeClaim) -> Iterator[str]:
    """Yield the free PersistentVolumes of the claim's class, and why none of them is taken."""
    offers = decision.mirror.derived(Offers)
    reserved = [*islice(offers.reserved(claim), _MAX_LISTED)]
    free = offers.free(claim.storage_class)
    suiting = [*filter(Wish(free, claim, decision.mirror.work).accepts, free.by_topology)]
    large = [each for each in suiting if each.capacity >= (claim.requested or 0)]
    facts = " ".join((_size(claim.requested or 0), *sorted(claim.access_modes)))
    if reserved:
        yield f"PersistentVolume {', '.join(each.name for each in reserved)} is reserved for it"
    elif not len(free):
        yield "no PersistentVolume of the class is Available"
    elif not suiting:
        yield f"{len(free):,} Available, none with its access modes, volume mode and selector ({facts})"
    elif not large:
        yield f"{len(suiting):,} Available, but it needs {facts}, and the largest has {_size(suiting[-1].capacity)}"
    for each in (reserved or large)[:_MAX_LISTED]:
        if each.node_affinity is not None:
            where = nodes_text(decision, each.node_affinity)
            yield f"{each.name} ({_size(each.capacity)}) is for {selector_text(each.node_affinity)} ({where})"


def _size(amount: int) -> str:
    return quantity_text(_STORAGE, amount)
