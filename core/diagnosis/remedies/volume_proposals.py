"""Proposals about claims and volumes: missing or unbound claims, and the topologies in which volumes may be created."""

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
"""If the claim of a pod is missing, all of these plugins reject the pod on every node."""
MAX_CLASSES: Final = 2
"""How many StorageClasses are tried for a missing claim, ordered by name."""
_LOOKED_AT: Final = 3
"""How many nodes are proposed."""
_MAX_NAME: Final = 253
"""Maximum length of the name of a node."""
_MEASURED: Final = 8
"""How many nodes are checked for capacity for volumes."""


def provide_claims(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to create missing claims, and to bind claims that cannot be bound.

    A missing claim is first tried with the StorageClasses that wait for the first consumer, then without a class.
    """
    positions = obstacles.some_of(obstacles.only(VOLUME_PLUGINS), _LOOKED_AT)
    variants = _variants(obstacles.decision) if positions else []
    for position in positions:
        for steps in variants if position == positions[0] else variants[-1:]:
            kind = Kind.CREATE_CLAIMS if isinstance(steps[0], CreateClaim) else Kind.PROVIDE_VOLUMES
            yield Proposal(kind, obstacles.decision.batch.names[position], steps)


def provide(obstacles: Obstacles, _position: int) -> Sequence[Step] | None:
    """Create or bind the missing or unbound claims. None if there are none."""
    variants = _variants(obstacles.decision)
    return variants[-1] if variants else None


def allow_topology(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to add the topology of a node to the StorageClasses of claims that wait for the pod."""
    positions = obstacles.only({VolumeBinding.name})
    if not len(positions):
        return
    classes = {each.storage_class: _class_of(obstacles.decision, each) for each in _waiting(obstacles.decision)}
    steps = [AllowTopology(name) for name, found in classes.items() if found is not None and found.allowed_topologies]
    if steps and len(steps) <= MAX_STEPS:
        for position in obstacles.some_of(positions, _LOOKED_AT):
            yield Proposal(Kind.ALLOW_TOPOLOGY, obstacles.decision.batch.names[position], steps)


def resize_claim(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose for each waiting claim to request at most the free capacity of the node with the most."""
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
    """Return the labels that a node needs to reach the volumes of the pod's bound claims, if they name values.

    For a volume with several terms, these are the labels of the first term.
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
    """Return the name that the pod or the volumes' labels require of a new node, or the empty text for any name."""
    names = decision.pod.node_affinity.node_names
    name = decision.pod.node_name or labels.get(HOSTNAME, "") or (min(names) if names else "")
    return name if len(name) <= _MAX_NAME else ""


def _variants(decision: Diagnosis) -> list[Sequence[Step]]:
    """Return the sets of claims to repair, smallest first: missing or unbound claims, then also waiting ones."""
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
    """Return the step that gives a claim a volume, or None if its volume exists or is being provisioned."""
    if claim.volume in decision.mirror.objects(PersistentVolume) or claim.selected_node is not None:
        return None
    return ProvideVolume(claim.full_name, claim.volume, claim.storage_class, claim.requested or 0)


def _claims(decision: Diagnosis) -> Mapping[str, PersistentVolumeClaim | None]:
    """Return the claims that the pod names itself, by NAMESPACE/NAME. A missing claim is None."""
    mirror, pod = decision.mirror, decision.pod
    named = islice(named_claims(pod), MAX_STEPS + 1)
    return {f"{pod.namespace}/{each.name}": find_claim(mirror, pod, each) for each in named}


def _waiting(decision: Diagnosis) -> Sequence[PersistentVolumeClaim]:
    """Return the claims whose volumes are chosen or created after the pod has a node."""
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
    """Return the largest volume of a class for which a node has capacity, in bytes."""
    node = decision.node(position)
    room = decision.mirror.derived(Offers).room(storage_class)
    largest = None if node is None else next(room.reached(node.labels), None)
    return 0 if largest is None else largest.limit or 0
