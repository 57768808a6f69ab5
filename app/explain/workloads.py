"""The one workload among the objects of a file: a pod, or an object with a pod template."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from app.explain.pod_names import pod_query
from app.explain.stored_pod import Json, elements, member, read_json, rendered
from app.explain.templates import pod_templates
from app.objects.decode import DecodeError

_MAX_LISTED: Final = 10  # objects that an error names
_DEEPEST: Final = 12  # Lists in Lists
_COMPANIONS: Final = (
    "DeviceClass",
    "LimitRange",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PriorityClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "RuntimeClass",
    "StorageClass",
)
"""Kinds of objects that count if the file has them beside the workload."""


_OF_CLUSTER: Final = frozenset({"DeviceClass", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass"})
"""Those of them that have no namespace."""


def one_workload(texts: Sequence[bytes], chosen: str = "", namespace: str = "") -> bytes:
    """Return the only pod, or object with a pod template, of some JSON texts, also inside of Lists.

    With `chosen`, the one of that name: [NAMESPACE/][TYPE/]NAME. If other objects of the texts count, it is a
    List with the workload first. Objects without a namespace are in `namespace`. Raises DecodeError, which names all
    workloads.
    """
    if len(texts) == 1 and not chosen and not _is_list(only := read_json(texts[0])):
        return texts[0] if (placed := _within(only, namespace)) is only else msgspec.json.encode(placed)
    found = [_within(each, namespace) for text in texts for each in flat(read_json(text))]
    workloads = [each for each in found if each.get("kind") == "Pod" or pod_templates(each)]
    matching = [each for each in workloads if not chosen or _is_named(each, chosen)]
    if len(matching) == 1:
        companions = [each for each in found if each.get("kind") in _COMPANIONS]
        return msgspec.json.encode({"kind": "List", "items": [*matching, *companions]} if companions else matching[0])
    if not workloads:
        raise DecodeError("", f"expected a pod or an object with a pod template, found {_listed(found)}")
    if not matching:
        raise DecodeError("", f"no pod or pod template is named {rendered(chosen)}: there is {_listed(workloads)}")
    several = f"expected one pod or pod template, found {len(matching)}: {_listed(matching)}"
    raise DecodeError("", f"{several}; keep one of them, or name it beside -f")


def _within(manifest: Json, namespace: str) -> Json:
    """Return an object with the namespace, as `kubectl create -n` sends one that has none."""
    metadata, kind = manifest.get("metadata") or {}, manifest.get("kind")
    is_object = bool(kind or metadata) and isinstance(metadata, dict)  # not ExtenderArgs: their pod has its namespace
    if not namespace or not is_object or kind in _OF_CLUSTER or metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def _is_named(manifest: Json, chosen: str) -> bool:
    query, names = pod_query(chosen), names_of(manifest)
    return chosen.lower() in names or (query.kind == manifest.get("kind") and query.key in names)


def split(text: bytes) -> tuple[Json, Sequence[Json]]:
    """Return the workload and the objects beside it, of what `one_workload` returned."""
    manifest = read_json(text)
    workload, *companions = elements(manifest, "items") if _is_list(manifest) else [manifest]
    return workload, companions


def _listed(manifests: Sequence[Json]) -> str:
    shortly = manifests[:_MAX_LISTED]
    names = [f"{each.get('kind') or 'an object without a kind'} {names_of(each)[-1]}".rstrip(" /") for each in shortly]
    more = f" and {len(manifests) - _MAX_LISTED} more" if manifests[_MAX_LISTED:] else ""
    return ", ".join(map(rendered, dict.fromkeys(names))) + more if names else "nothing"


def _is_list(manifest: Json) -> bool:
    return str(manifest.get("kind") or "").endswith("List") and isinstance(manifest.get("items"), list)


def flat(manifest: Json, depth: int = 0) -> Iterator[Json]:
    """Yield an object, or those in a list. The API server leaves out the kind of the items of a PodList."""
    if not _is_list(manifest) or depth > _DEEPEST:
        yield manifest
        return
    kind = str(manifest["kind"]).removesuffix("List")
    for each in elements(manifest, "items"):
        yield from flat({"kind": kind, **each} if kind else each, depth + 1)


def names_of(manifest: Json) -> tuple[str, ...]:
    """Return the names by which a person may choose an object, the clearest one last."""
    metadata = member(manifest, "metadata")
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    namespace = metadata.get("namespace")
    own = f"{namespace}/{name}" if namespace else name
    return f"{manifest.get('kind')}/{name}".lower(), f"default/{name}" if not namespace else own, name, own
