"""Proposals about claims and volumes: claims that are missing or unbound, and where their volumes may be made."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.obstacles import Obstacles
from core.diagnosis.remedies.proposal import MAX_STEPS, Proposal
from core.diagnosis.remedies.remedy import Kind, Step
from core.diagnosis.remedies.supposing import HOSTNAME
from core.diagnosis.remedies.volume_steps import AllowTopology, CreateClaim, ProvideVolume, ResizeClaim
from core.framework.volume_lookup import find_claim, named_claims
from core.objects.labels import Operator
from core.objects.volumes import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.volumebinding.claims import LOST
from core.plugins.volumebinding.offers import Offers
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions.plugin import VolumeRestrictions
from core.plugins.volumezone import WAIT_FOR_FIRST_CONSUMER, VolumeZone, volume_topologies

VOLUME_PLUGINS: Final = (VolumeBinding.name, VolumeZone.name, VolumeRestrictions.name, NodeVolumeLimits.name)
"""All of them refuse a pod on every node whose claim is missing."""
MAX_CLASSES: Final = 2
"""StorageClasses that are tried for a claim that is missing, by name."""
_LOOKED_AT: Final = 3
"""Nodes that are proposed."""
_MAX_NAME: Final = 253
"""Characters of the name of a node."""
_MEASURED: Final = 8
"""Nodes whose room for volumes is looked at."""


def provide_claims(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to create the missing claims, and to bind those that cannot be bound.

    Claims that are missing are tried with the StorageClasses that wait for the first consumer before they are tried
    without one.
    """
    positions = obstacles.some_of(obstacles.only(VOLUME_PLUGINS), _LOOKED_AT)
    variants = _variants(obstacles.decision) if positions else []
    for position in positions:
        for steps in variants if position == positions[0] else variants[-1:]:
            kind = Kind.CREATE_CLAIMS if isinstance(steps[0], CreateClaim) else Kind.PROVIDE_VOLUMES
            yield Proposal(kind, obstacles.decision.batch.names[position], steps)


def provide(obstacles: Obstacles, _position: int) -> Sequence[Step] | None:
    """Create or bind the claims that are missing or unbound; None where there are none."""
    variants = _variants(obstacles.decision)
    return variants[-1] if variants else None


def allow_topology(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to let the StorageClasses of claims that wait for the pod have the topology of a node."""
    positions = obstacles.only({VolumeBinding.name})
    if not len(positions):
        return
    classes = {each.storage_class: _class_of(obstacles.decision, each) for each in _waiting(obstacles.decision)}
    steps = [AllowTopology(name) for name, found in classes.items() if found is not None and found.allowed_topologies]
    if steps and len(steps) <= MAX_STEPS:
        for position in obstacles.some_of(positions, _LOOKED_AT):
            yield Proposal(Kind.ALLOW_TOPOLOGY, obstacles.decision.batch.names[position], steps)


def resize_claim(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each claim that waits to request no more than there is room for, on the node with the most room."""
    positions = obstacles.some_of(obstacles.only({VolumeBinding.name}), _MEASURED)
    decision = obstacles.decision
    for claim in _waiting(decision) if positions else ():
        storage_class = _class_of(decision, claim)
        driver = decision.mirror.objects(CSIDriver).get("" if storage_class is None else storage_class.provisioner)
        if driver is None or not driver.storage_capacity or not claim.requested:
            continue
        rooms = [(_room(decision, claim.storage_class, position), -position) for position in positions]
        room, place = max(rooms)
        if 0 < room < claim.requested:
            step = ResizeClaim(claim.full_name, claim.requested, room)
            yield Proposal(Kind.RESIZE_CLAIM, decision.batch.names[-place], [step])


def labels_of_volumes(decision: Diagnosis) -> Mapping[str, str]:
    """Return labels that a node needs to reach the volumes of the pod's bound claims, as far as they name values.

    For a volume with several terms, those of the first one.
    """
    found: dict[str, str] = {}
    volumes = decision.mirror.objects(PersistentVolume)
    for claim in _claims(decision).values():
        volume = None if claim is None else volumes.get(claim.volume)
        if volume is None:
            continue
        terms = () if volume.node_affinity is None else volume.node_affinity.terms[:1]
        for asked in (each for term in terms for each in term.requirements):
            if asked.operator is Operator.IN and asked.values:
                found.setdefault(asked.key, asked.values[0])
        for key, values in volume_topologies(volume):
            found.setdefault(key, min(values))
    return found


def name_in(labels: Mapping[str, str], decision: Diagnosis) -> str:
    """Return the name that a new node has to have for the pod or the volumes' labels; empty for any, or no name."""
    names = decision.pod.node_affinity.node_names
    name = decision.pod.node_name or labels.get(HOSTNAME, "") or (min(names) if names else "")
    return name if len(name) <= _MAX_NAME else ""


def _variants(decision: Diagnosis) -> list[Sequence[Step]]:
    """Return the sets of claims to repair, the smallest first: missing or unbound ones, then waiting ones, too."""
    bound: list[Step] = []
    missing: list[str] = []
    for name, claim in _claims(decision).items():
        if claim is None:
            missing.append(name)
        elif claim.phase == LOST or claim.deleting:
            return []
        elif not _waits(decision, claim) and (step := _provided(decision, claim)) is not None:
            bound.append(step)
    found: list[Sequence[Step]] = [
        [*(CreateClaim(name, storage_class) for name in missing), *bound]
        for storage_class in ((*_classes_for_new_claims(decision), "") if missing else ("",))
    ]
    waiting = [step for claim in _waiting(decision) if (step := _provided(decision, claim)) is not None]
    if waiting:
        found.append([*found[-1], *waiting])
    return [steps for steps in found if 0 < len(steps) <= MAX_STEPS]


def _provided(decision: Diagnosis, claim: PersistentVolumeClaim) -> ProvideVolume | None:
    """Return the step that gives a claim a volume; None for one whose volume is there, or being provisioned."""
    if claim.volume in decision.mirror.objects(PersistentVolume) or claim.selected_node is not None:
        return None
    return ProvideVolume(claim.full_name, claim.volume, claim.storage_class, claim.requested or 0)


def _claims(decision: Diagnosis) -> Mapping[str, PersistentVolumeClaim | None]:
    """Return the claims that the pod names itself, by NAMESPACE/NAME; None for one that is missing."""
    mirror, pod = decision.mirror, decision.pod
    named = islice(named_claims(pod), MAX_STEPS + 1)
    return {f"{pod.namespace}/{each.name}": find_claim(mirror, pod, each) for each in named}


def _waiting(decision: Diagnosis) -> Sequence[PersistentVolumeClaim]:
    """Return the claims whose volumes are to be chosen or made for the node that the pod gets."""
    claims = (claim for claim in _claims(decision).values() if claim is not None)
    return [claim for claim in claims if _waits(decision, claim)]


def _waits(decision: Diagnosis, claim: PersistentVolumeClaim) -> bool:
    storage_class = _class_of(decision, claim)
    waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return waits and not claim.volume


def _class_of(decision: Diagnosis, claim: PersistentVolumeClaim) -> StorageClass | None:
    return decision.mirror.objects(StorageClass).get(claim.storage_class)


def _classes_for_new_claims(decision: Diagnosis) -> Sequence[str]:
    classes = decision.mirror.objects(StorageClass)
    waiting = (each for each in classes.values() if each.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)
    return sorted(each.name for each in waiting)[:MAX_CLASSES]


def _room(decision: Diagnosis, storage_class: str, position: int) -> int:
    """Return the largest volume of a class that there is room for on a node, in bytes."""
    node = decision.node(position)
    room = decision.mirror.derived(Offers).room(storage_class)
    largest = None if node is None else next(room.reached(node.labels), None)
    return 0 if largest is None else largest.limit or 0
