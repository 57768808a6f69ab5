"""The claims that controllers make for a new pod: of volumeClaimTemplates, and of generic ephemeral volumes.

They are not bound yet, so the pod is the first consumer of each.

Source: k8s.io/kubernetes pkg/controller/statefulset/stateful_set_utils.go (getPersistentVolumeClaims) and
pkg/controller/volume/ephemeral/controller.go (handleVolume); for the class
plugin/pkg/admission/storage/storageclass/setdefault/admission.go and pkg/volume/util/storageclass.go (GetDefaultClass).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from app.explain.stored_pod import Json, Notes, elements, member, shown
from app.objects.decode import under
from app.objects.decode_storage import decode_persistent_volume_claim
from core.mirror.cluster import ClusterMirror
from core.objects.volumes import PersistentVolumeClaim, StorageClass

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def made_claims(
    pod: Json, templates: Sequence[Json], mirror: ClusterMirror, notes: Notes
) -> Sequence[PersistentVolumeClaim]:
    """Return the claims that a pod names, or would own, and that the mirror lacks. Raises DecodeError.

    `templates` are the volumeClaimTemplates of its StatefulSet.
    """
    held = mirror.objects(PersistentVolumeClaim)
    found: dict[str, PersistentVolumeClaim] = {}
    for field, claim in (*_of_templates(pod, templates), *_of_volumes(pod)):
        spec = claim["spec"]
        if "storageClassName" not in spec and not member(claim, "metadata", "annotations").get(_BETA_CLASS):
            spec = {**spec, "storageClassName": _default_class(mirror)}
        with under(field):
            decoded = decode_persistent_volume_claim(msgspec.json.encode({**claim, "spec": spec}))
        if decoded.full_name not in held:
            found[decoded.full_name] = decoded
            of_class = f"of class {shown(decoded.storage_class)}" if decoded.storage_class else "without a class"
            notes.done.append(f"claim {shown(decoded.name)} {of_class}")
    return [*found.values()]


def _of_templates(pod: Json, templates: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    for place, each in enumerate(templates):
        metadata = member(each, "metadata")
        name = f"{metadata.get('name') or ''}-{pod['metadata']['name']}"
        own = {"name": name, "namespace": pod["metadata"]["namespace"]}
        claim = {"metadata": {**own, "annotations": metadata.get("annotations")}, "spec": member(each, "spec")}
        yield f"spec.volumeClaimTemplates[{place}]", claim


def _of_volumes(pod: Json) -> Iterator[tuple[str, Json]]:
    """Yield the claims that the pod would own. Without a uid, its full name identifies it, as for the decoder."""
    metadata = member(pod, "metadata")
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    namespace = metadata.get("namespace") or "default"
    owner = {"kind": "Pod", "name": name, "uid": f"{namespace}/{name}", "controller": True}
    for place, volume in enumerate(elements(member(pod, "spec"), "volumes")):
        template = member(volume, "ephemeral", "volumeClaimTemplate")
        if template:
            own = {"name": f"{name}-{volume.get('name') or ''}", "namespace": namespace, "ownerReferences": [owner]}
            own["annotations"] = member(template, "metadata").get("annotations")
            field = f"spec.volumes[{place}].ephemeral.volumeClaimTemplate"
            yield field, {"metadata": own, "spec": member(template, "spec")}


def _default_class(mirror: ClusterMirror) -> str | None:
    """Return the newest default class; of several of one time, the first by name."""
    defaults = [each for each in mirror.objects(StorageClass).values() if each.default_since is not None]
    newest = max((each.default_since or "" for each in defaults), default="")
    return min((each.name for each in defaults if each.default_since == newest), default=None)
