"""The engine asked as a scheduler asks it: v1 objects as JSON in, an answer in the shape of the golden data out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from app.objects.decode_node import decode_namespace, decode_node
from app.objects.decode_pod import decode_pod
from app.objects.resources import RESOURCES
from core.events import ClusterEvent, Kind, Object
from core.framework.interface import Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.releases.release import Rules
from tests.reference.answer import NO_NODES, NOT_RUN, Response, Scores, Verdict

V1Object: TypeAlias = Mapping[str, Any]
Requested: TypeAlias = dict[str, Node | None]  # node name -> the whole node, where the mirror does not know it
Scored: TypeAlias = tuple[str, Scores, Scores]  # PreScore's code, raw scores, normalised scores

_SUCCESS: Final[Verdict] = ("Success", ())
_VOLUMES: Final[Mapping[str, Kind]] = {
    "pvs": PersistentVolume,
    "pvcs": PersistentVolumeClaim,
    "storageclasses": StorageClass,
    "csinodes": CSINode,
    "csidrivers": CSIDriver,
    "csistoragecapacities": CSIStorageCapacity,
    "volumeattachments": VolumeAttachment,
}
"""Member of a case -> kind of its objects."""


def load(
    namespaces: Iterable[V1Object],
    nodes: Iterable[V1Object],
    pods: Iterable[V1Object],
    *,
    rules: Rules | None = None,
) -> ClusterMirror:
    """Make a mirror of a cluster: one Add event for each object, decoded from JSON."""
    mirror = ClusterMirror(rules=rules)
    kinds: list[tuple[Callable[[bytes], Object], Iterable[V1Object]]] = [
        (decode_namespace, namespaces),
        (decode_node, nodes),
        (decode_pod, pods),
    ]
    for decode, objects in kinds:
        for v1_object in objects:
            mirror.apply(ClusterEvent("Add", decode(msgspec.json.encode(v1_object))))
    return mirror


def add_volumes(mirror: ClusterMirror, case: Mapping[str, Any]) -> None:
    """Add the objects about volumes of a golden case."""
    for member, kind in _VOLUMES.items():
        for v1_object in case.get(member, ()):
            mirror.apply(ClusterEvent("Add", RESOURCES[kind].decode(msgspec.json.encode(v1_object))))


def ask(
    plugin: InterPodAffinity,
    mirror: ClusterMirror,
    pod: V1Object,
    names: Iterable[str],
    unmirrored: Iterable[V1Object] = (),
) -> Response:
    """Run InterPodAffinity for a pod over the named nodes and over whole nodes that the mirror does not know."""
    incoming = decoded_pod(pod)
    requested: Requested = dict.fromkeys(names)
    for node in unmirrored:
        requested[node["metadata"]["name"]] = decode_node(msgspec.json.encode(node))
    status, verdicts = _filter(plugin, mirror, incoming, requested)
    if status.code not in {Code.SUCCESS, Code.SKIP}:
        return _response(status, verdicts, (NOT_RUN, {}, {}), (NO_NODES, {}, {}))
    feasible = {name: node for name, node in requested.items() if verdicts[name] == _SUCCESS}
    scored = _score(plugin, mirror, incoming, feasible) if feasible else (NO_NODES, {}, {})
    return _response(status, verdicts, _score(plugin, mirror, incoming, requested), scored)


def decoded_pod(pod: V1Object) -> Pod:
    """Decode a pod as a scheduler sends it."""
    return decode_pod(msgspec.json.encode(pod))


def _filter(
    plugin: InterPodAffinity, mirror: ClusterMirror, pod: Pod, requested: Requested
) -> tuple[Status, Mapping[str, Verdict]]:
    status, state = plugin.pre_filter(mirror, pod)
    if state is None:
        verdict = _SUCCESS if status.code is Code.SKIP else (status.code.label, status.reasons)
        return status, dict.fromkeys(requested, verdict)
    verdicts = plugin.filter(state, _batch(mirror, requested))
    found = [verdicts.statuses[code] for code in verdicts.codes.tolist()]
    return status, {name: (one.code.label, one.reasons) for name, one in zip(requested, found, strict=True)}


def _score(plugin: InterPodAffinity, mirror: ClusterMirror, pod: Pod, requested: Requested) -> Scored:
    status, state = plugin.pre_score(mirror, pod, _batch(mirror, requested))
    if state is None:
        return status.code.label, {}, {}
    raw = plugin.score(state, _batch(mirror, requested))
    normalized = plugin.normalize(raw)
    return (
        status.code.label,
        dict(zip(requested, raw.tolist(), strict=True)),
        dict(zip(requested, normalized.tolist(), strict=True)),
    )


def _batch(mirror: ClusterMirror, requested: Requested) -> NodeBatch:
    objects = {position: node for position, node in enumerate(requested.values()) if node is not None}
    return mirror.batch(list(requested), objects)


def _response(prefilter: Status, verdicts: Mapping[str, Verdict], over_all: Scored, over_feasible: Scored) -> Response:
    return Response(
        prefilter=prefilter.code.label,
        prefilter_reasons=prefilter.reasons,
        filter=verdicts,
        prescore_all=over_all[0],
        raw_scores_all=over_all[1],
        normalized_all=over_all[2],
        prescore_feasible=over_feasible[0],
        raw_scores_feasible=over_feasible[1],
        normalized_feasible=over_feasible[2],
    )
