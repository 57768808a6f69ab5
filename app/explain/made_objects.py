"""The objects that come with a new pod: claims that controllers make for it, and what its file has beside it.

Controllers make claims of volumeClaimTemplates and of generic ephemeral volumes. They are not bound yet, so the pod is
the first consumer of each.

Source: k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go (getPersistentVolumeClaims) and
pkg/controller/volume/ephemeral/controller.go (handleVolume); for the class
plugin/pkg/admission/storage/storageclass/setdefault/admission.go and pkg/volume/util/storageclass.go (GetDefaultClass).
A class with Immediate binding has its volume made before a pod is tried: persistentvolume/pv_controller.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.explain.stored_pod import Json, Notes, elements, member, rendered
from app.objects.decode import under
from app.objects.decode_storage import decode_persistent_volume_claim
from app.objects.resources import RESOURCES
from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.objects.volumes import NO_PROVISIONER, PersistentVolume, PersistentVolumeClaim, StorageClass

_OF_FILES: Final = {kind.__name__: RESOURCES[kind].decode for kind in (PersistentVolume, StorageClass, DeviceClass)}
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_IMMEDIATE: Final = "Immediate"


def made_objects(
    pod: Json, templates: Sequence[Json], companions: Sequence[Json], mirror: ClusterMirror, notes: Notes
) -> Sequence[Object]:
    """Return the claims of a pod, and volumes and classes of its file, that the mirror lacks. Raises DecodeError.

    `templates` are the volumeClaimTemplates of its StatefulSet, `companions` the other objects of its file. The pod
    loses its volumes of claims whose volumes exist, nobody knows where, before it is tried.
    """
    stored = mirror.objects(PersistentVolumeClaim)
    found = _of_file_alone(companions, mirror)
    for field, claim in (*_of_templates(pod, templates), *_of_volumes(pod), *_of_file(pod, companions)):
        with under(field):
            decoded = _decoded(claim, mirror)
        if decoded.full_name in stored or decoded.full_name in found:
            continue
        found[decoded.full_name] = decoded
        named = decoded.storage_class
        of_class = f"of class {rendered(named)}" if named else "without a class"
        if _wants_default(claim) and not mirror.objects(StorageClass):
            of_class = "of the default class, which is not known: no StorageClass is at hand"
        notes.done.append(f"claim {rendered(decoded.name)} {of_class}")
        storage_class = found.get(f"StorageClass {named}") or mirror.objects(StorageClass).get(named)
        early = made_early(decoded, storage_class)
        if early and not decoded.volume:
            notes.unknown.append(early)
            _drop_volume(pod, decoded.name)
    return [*found.values()]


def _of_file_alone(companions: Sequence[Json], mirror: ClusterMirror) -> dict[str, Object]:
    """Return the volumes and classes of a file that the mirror lacks, by kind and name."""
    found: dict[str, Object] = {}
    for each in companions:
        decode = _OF_FILES.get(str(each.get("kind")))
        if decode is not None:
            with under(f"{each['kind']} {rendered(member(each, 'metadata').get('name'))}"):
                other = decode(msgspec.json.encode(each))
            if other.full_name not in mirror.objects(type(other)):
                found[f"{each['kind']} {other.full_name}"] = other
    return found


def _decoded(claim: Json, mirror: ClusterMirror) -> PersistentVolumeClaim:
    spec = claim["spec"]
    if _wants_default(claim):
        spec = {**spec, "storageClassName": _default_class(mirror)}
    return decode_persistent_volume_claim(msgspec.json.encode({**claim, "spec": spec}))


def _wants_default(claim: Json) -> bool:
    """Source: pkg/apis/core/helper/helpers.go (PersistentVolumeClaimHasClass). The empty text is a class: none."""
    annotated = _BETA_CLASS in member(claim, "metadata", "annotations")
    return claim["spec"].get("storageClassName") is None and not annotated


def made_early(claim: PersistentVolumeClaim, of: Object | None) -> str:
    """Return what is not known of the volume of a claim if its class makes it before a pod is scheduled, else ""."""
    if not isinstance(of, StorageClass) or of.volume_binding_mode != _IMMEDIATE or of.provisioner in NO_PROVISIONER:
        return ""
    made = f"class {rendered(of.name)} makes its volume before the pod is scheduled; where is not known"
    return f"claim {rendered(claim.name)}: {made}"


def _drop_volume(pod: Json, claim: str) -> None:
    """Drop the volumes of a claim, also of one that the pod would own."""
    pod_name, spec = _name(pod), member(pod, "spec")
    spec["volumes"] = [
        each
        for each in elements(spec, "volumes")
        if member(each, "persistentVolumeClaim").get("claimName") != claim
        and not ("ephemeral" in each and f"{pod_name}-{each.get('name') or ''}" == claim)
    ]


def _of_templates(pod: Json, templates: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for place, each in enumerate(templates):
        metadata = member(each, "metadata")
        name = f"{metadata.get('name') or ''}-{pod['metadata']['name']}"
        own = {"name": name, "namespace": pod["metadata"]["namespace"]}
        claim = {"metadata": {**own, "annotations": metadata.get("annotations")}, "spec": member(each, "spec")}
        yield f"spec.volumeClaimTemplates[{place}]", claim


def _of_volumes(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the claims that the pod would own. Without a uid, its full name identifies it, as for the decoder."""
    metadata, name = member(pod, "metadata"), _name(pod)
    namespace = metadata.get("namespace") or "default"
    owner = {"kind": "Pod", "name": name, "uid": f"{namespace}/{name}", "controller": True}
    for place, volume in enumerate(elements(member(pod, "spec"), "volumes")):
        template = member(volume, "ephemeral", "volumeClaimTemplate")
        if template:
            own = {"name": f"{name}-{volume.get('name') or ''}", "namespace": namespace, "ownerReferences": [owner]}
            own["annotations"] = member(template, "metadata").get("annotations")
            field = f"spec.volumes[{place}].ephemeral.volumeClaimTemplate"
            yield field, {"metadata": own, "spec": member(template, "spec")}


def _name(pod: Json) -> str:
    metadata = member(pod, "metadata")
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _of_file(pod: Json, companions: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for each in of_namespace(pod, companions, "PersistentVolumeClaim"):
        name = rendered(member(each, "metadata").get("name"))
        yield f"PersistentVolumeClaim {name}", {**each, "spec": member(each, "spec")}


def of_namespace(pod: Json, objects: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a kind in the pod's namespace. What another one has is not to be learnt by a manifest."""
    namespace = member(pod, "metadata").get("namespace") or "default"
    for each in objects:
        if each.get("kind") == kind and (member(each, "metadata").get("namespace") or "default") == namespace:
            yield each


def _default_class(mirror: ClusterMirror) -> str | None:
    """Return the newest default class; of several of one time, the first by name."""
    defaults = [each for each in mirror.objects(StorageClass).values() if each.default_since is not None]
    newest = max((each.default_since or "" for each in defaults), default="")
    return min((each.name for each in defaults if each.default_since == newest), default=None)
