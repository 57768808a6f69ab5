"""The objects that come with a new pod: claims that controllers make for it, and what its file has beside it.

Controllers make claims of volumeClaimTemplates and of generic ephemeral volumes. They are not bound yet, so the pod is
the first consumer of each.

Source: k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go (getPersistentVolumeClaims) and
pkg/controller/volume/ephemeral/controller.go (handleVolume); for the class
plugin/pkg/admission/storage/storageclass/setdefault/admission.go and pkg/volume/util/storageclass.go (GetDefaultClass).
A class with Immediate binding has its volume made before a pod is tried: persistentvolume/pv_controller.go.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from app.explain.stored_pod import Json, Notes, Objects, elements, is_stored, member, refuse_outside, rendered
from app.explain.templates import AtHand, namespace_of
from app.objects.decode import under
from app.objects.decode_storage import decode_persistent_volume_claim
from app.objects.resources import RESOURCES
from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.objects.volumes import (
    AVAILABLE,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

_OF_FILES: Final = {kind.__name__: RESOURCES[kind].decode for kind in (PersistentVolume, StorageClass, DeviceClass)}
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MODE: Final = "volumeBindingMode"
_IMMEDIATE: Final = "Immediate"
_MOST_LIMITS: Final = 16
"""How many limits each claim is held against. A namespace has one or two."""
_MOST_BOUND: Final = 16
"""For how many claims of a file a free volume is looked for: each visits all of them."""


def made_objects(
    pod: Json, templates: Sequence[Json], companions: Sequence[Json], at_hand: AtHand, notes: Notes
) -> Sequence[Object]:
    """Return the claims of a pod, and volumes and classes of its file, that the mirror lacks. Raises DecodeError.

    `templates` are the volumeClaimTemplates of its StatefulSet, `companions` the other objects of its file. The pod
    loses its volumes of claims whose volumes exist, nobody knows where, before it is tried.
    """
    for volume in elements(member(pod, "spec"), "volumes"):
        _default_source(volume)
    mirror = at_hand.mirror
    stored = mirror.objects(PersistentVolumeClaim)
    found = _of_file_alone(companions, mirror)
    new = {each.name: each for each in found.values() if isinstance(each, StorageClass)}
    classes = {**mirror.objects(StorageClass), **new}
    default = _default_class(new) or _default_class(classes)
    own, of_file = [*_of_templates(pod, templates), *_of_volumes(pod)], [*_of_file(pod, companions)]
    free, dropped = _free_volumes(mirror, found) if of_file else {}, set[str]()
    limits = [*_limits(pod, at_hand.objects)] if own or of_file else []
    for place, (field, claim) in enumerate((*own, *of_file)):
        with under(field):
            decoded = _decoded(claim, default)
        if decoded.full_name in stored or decoded.full_name in found:
            continue
        if not is_stored(claim):
            _refuse_outside(field, member(claim, "spec", "resources", "requests"), limits)
        of = classes.get(decoded.storage_class)
        if len(own) <= place < len(own) + _MOST_BOUND:
            decoded = _bound_early(decoded, of, free)
        found[decoded.full_name] = decoded
        of_class = f"of class {rendered(decoded.storage_class)}" if decoded.storage_class else "without a class"
        if _wants_default(claim) and not classes:
            of_class = "of the default class, which is not known: no StorageClass is at hand"
        bound = f", bound to PersistentVolume {rendered(decoded.volume)}" if decoded.bind_completed else ""
        notes.done.append(f"claim {rendered(decoded.name)} {of_class}{bound}")
        early = made_early(decoded, of)
        if early and not decoded.volume:
            notes.unknown.append(early)
            dropped.add(decoded.name)
    if dropped:
        _drop_volumes(pod, dropped)
    return [*found.values()]


def _of_file_alone(companions: Sequence[Json], mirror: ClusterMirror) -> dict[str, Object]:
    """Return the volumes and classes of a file that the mirror lacks, by kind and name."""
    found: dict[str, Object] = {}
    for each in companions:
        decode = _OF_FILES.get(str(each.get("kind")))
        if decode is not None:
            with under(f"{each['kind']} {rendered(member(each, 'metadata').get('name'))}"):
                other = decode(msgspec.json.encode(each if is_stored(each) else _as_stored(each)))
            if other.full_name not in mirror.objects(type(other)):
                found[f"{each['kind']} {other.full_name}"] = other
    return found


def _as_stored(new: Json) -> Json:
    """Return a volume or class as it would be stored, and a volume as its controller then marks it.

    Source: pkg/apis/storage/v1/defaults.go (SetDefaults_StorageClass), pkg/registry/core/persistentvolume/strategy.go
    (PrepareForCreate) and persistentvolume/pv_controller.go (syncVolume).
    """
    if new["kind"] == "PersistentVolume":
        _default_source(member(new, "spec"))
        return {**new, "status": {"phase": AVAILABLE}}
    if new["kind"] == "StorageClass" and new.get(_MODE) is None:
        return {**new, _MODE: _IMMEDIATE}
    return new


def _default_source(volume: Json) -> None:
    """Complete an image of Ceph or a disk of Azure, of a pod or a PersistentVolume (zz_generated.defaults.go)."""
    for kind, field, default in (("rbd", "pool", "rbd"), ("azureDisk", "kind", "Shared")):
        source = volume.get(kind)
        if isinstance(source, dict):
            source[field] = source.get(field) or default


def _decoded(claim: Json, default: str | None) -> PersistentVolumeClaim:
    spec = claim["spec"]
    if _wants_default(claim):
        spec = {**spec, "storageClassName": default}
    return decode_persistent_volume_claim(msgspec.json.encode({**claim, "spec": spec}))


def _wants_default(claim: Json) -> bool:
    """Source: pkg/apis/core/helper/helpers.go (PersistentVolumeClaimHasClass). The empty text is a class: none."""
    annotated = _BETA_CLASS in member(claim, "metadata", "annotations")
    return claim["spec"].get("storageClassName") is None and not annotated


def _limits(pod: Json, objects: Objects) -> Iterator[tuple[str, Json]]:
    """Yield the bounds of a claim's storage in the pod's namespace, each with the name of its LimitRange."""
    for each in objects("LimitRange"):
        if namespace_of(each) == namespace_of(pod):
            for item in elements(member(each, "spec"), "limits"):
                if item.get("type") == "PersistentVolumeClaim":
                    bounds = {bound: member(item, bound).get("storage") for bound in ("min", "max")}
                    yield (
                        rendered(member(each, "metadata").get("name")),
                        {bound: {"storage": amount} for bound, amount in bounds.items() if amount is not None},
                    )


def _refuse_outside(field: str, requests: Json, limits: Sequence[tuple[str, Json]]) -> None:
    """Source: limitranger/admission.go (PersistentVolumeClaimValidateLimitFunc)."""
    for name, item in limits[:_MOST_LIMITS]:
        refuse_outside(f"{field}: requests", {"requests": requests, "limits": requests}, item, name, "claim")


def _free_volumes(mirror: ClusterMirror, found: Mapping[str, Object]) -> dict[str, PersistentVolume]:
    """Return the volumes of the cluster and of the file that no claim of the cluster has, by name."""
    stored = mirror.objects(PersistentVolumeClaim)
    return {
        each.name: each
        for each in (*mirror.objects(PersistentVolume).values(), *found.values())
        if isinstance(each, PersistentVolume)
        and (each.claim is None or f"{each.claim.namespace}/{each.claim.name}" not in stored)
    }


def _bound_early(
    claim: PersistentVolumeClaim, of: StorageClass | None, free: dict[str, PersistentVolume]
) -> PersistentVolumeClaim:
    """Return a claim of the file as its controller leaves it before a pod is tried: with a free volume, if one suits.

    The volume is no longer free then. A claim whose class waits for the pod is unchanged, unless it names a volume.
    Source: persistentvolume/pv_controller.go (syncUnboundClaim) and index.go (findByClaim).
    """
    waits = not claim.volume and of is not None and of.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    found = min(
        (each for each in free.values() if _suits(each, claim)) if not (waits or claim.bind_completed) else (),
        key=lambda each: (len(each.access_modes), each.claim is None, each.capacity, each.name),
        default=None,
    )
    return claim if found is None else replace(claim, volume=free.pop(found.name).name, bind_completed=True)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Source: pv_controller.go (checkVolumeSatisfyClaim), component-helpers pv_helpers.go (FindMatchingVolume)."""
    if claim.volume not in ("", volume.name) or (volume.claim is not None and not volume.is_reserved_for(claim)):
        return False
    if volume.claim is None and volume.storage_class != claim.storage_class:
        return False
    is_open = volume.phase == AVAILABLE and claim.selector.matches(volume.labels)
    return (
        (is_open or volume.claim is not None or bool(claim.volume))
        and volume.is_alike(claim)
        and claim.access_modes <= volume.access_modes
        and volume.capacity >= (claim.requested or 0)
        and not volume.deleting
    )


def made_early(claim: PersistentVolumeClaim, of: StorageClass | None) -> str:
    """Return what is not known of the volume of a claim if its class makes it before a pod is scheduled, else ""."""
    if of is None or of.volume_binding_mode != _IMMEDIATE or of.provisioner in NO_PROVISIONER:
        return ""
    made = f"class {rendered(of.name)} makes its volume before the pod is scheduled; where is not known"
    return f"claim {rendered(claim.name)}: {made}"


def _drop_volumes(pod: Json, claims: Collection[str]) -> None:
    """Drop the volumes of some claims, also of those that the pod would own."""
    pod_name, spec = _name(pod), member(pod, "spec")
    spec["volumes"] = [
        each
        for each in elements(spec, "volumes")
        if str(member(each, "persistentVolumeClaim").get("claimName")) not in claims
        and not ("ephemeral" in each and f"{pod_name}-{each.get('name') or ''}" in claims)
    ]


def _of_templates(pod: Json, templates: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for place, each in enumerate(templates):
        metadata = member(each, "metadata")
        name = f"{metadata.get('name') or ''}-{pod['metadata']['name']}"
        own = {"name": name, "namespace": pod["metadata"]["namespace"]}
        claim = {"metadata": {**own, "annotations": metadata.get("annotations")}, "spec": member(each, "spec")}
        yield f"spec.volumeClaimTemplates[{place}]", claim


def _of_volumes(pod: Json) -> Iterator[tuple[str, Json]]:
    for place, volume in enumerate(elements(member(pod, "spec"), "volumes")):
        template = member(volume, "ephemeral", "volumeClaimTemplate")
        if template:
            own = {**owned_by(pod, volume), "annotations": member(template, "metadata").get("annotations")}
            field = f"spec.volumes[{place}].ephemeral.volumeClaimTemplate"
            yield field, {"metadata": own, "spec": member(template, "spec")}


def owned_by(pod: Json, named: Json) -> Json:
    """Return the metadata of the claim that the pod would own for one of its own names.

    Without a uid, the pod's full name identifies it, as for the decoder.
    """
    name, namespace = _name(pod), namespace_of(pod)
    owner = {"kind": "Pod", "name": name, "uid": f"{namespace}/{name}", "controller": True}
    return {"name": f"{name}-{named.get('name') or ''}", "namespace": namespace, "ownerReferences": [owner]}


def _name(of: Mapping[str, Any]) -> str:
    metadata = member(of, "metadata")
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _of_file(pod: Json, companions: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the claims of the file, first those of the pod, because only for some a volume is looked for."""
    volumes = elements(member(pod, "spec"), "volumes")
    named = {str(member(each, "persistentVolumeClaim").get("claimName")) for each in volumes}
    claims = [*of_namespace(pod, companions, "PersistentVolumeClaim")]
    for each in sorted(claims, key=lambda each: _name(each) not in named):
        name = rendered(member(each, "metadata").get("name"))
        yield f"PersistentVolumeClaim {name}", {**each, "spec": member(each, "spec")}


def of_namespace(pod: Json, objects: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a kind in the pod's namespace. What another one has is not to be learnt by a manifest."""
    for each in objects:
        if each.get("kind") == kind and namespace_of(each) == namespace_of(pod):
            yield each


def _default_class(classes: Mapping[str, StorageClass]) -> str | None:
    """Return the newest default class; of several of one time, the first by name."""
    defaults = [each for each in classes.values() if each.default_since is not None]
    newest = max((each.default_since or "" for each in defaults), default="")
    return min((each.name for each in defaults if each.default_since == newest), default=None)
