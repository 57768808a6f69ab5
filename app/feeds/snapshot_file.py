"""Loads the objects of a dump into a mirror, and says what the dump has and what it lacks."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from app.feeds.dump_text import RESOURCE_OF, DumpItem, SnapshotError, kind_of
from app.objects.decode import DecodeError, Metadata, WireObject
from app.objects.resources import OF_MANIFESTS, RESOURCES
from core.events import ClusterEvent, Kind, Object
from core.framework.claims import named_claims
from core.mirror.cluster import ClusterMirror
from core.objects.devices import ResourceClaim, ResourceSlice
from core.objects.groups import SchedulingGroup
from core.objects.kinds import NAMESPACE_NAME, DeviceClass, Namespace, ReplicaSet, ReplicationController, StatefulSet
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, VolumeAttachment

_MAX_VERSION_LENGTH: Final = 20
_ALWAYS_COUNTED: Final = (Node, Pod, Namespace)
_OPTIONAL: Final[Mapping[Kind, Kind]] = {
    CSIDriver: CSINode,
    VolumeAttachment: CSINode,
    CSIStorageCapacity: CSIDriver,
    StatefulSet: ReplicaSet,
    ReplicationController: ReplicaSet,
    ResourceSlice: ResourceClaim,
}
"""Kinds of which many clusters have no object. A dump with the other kind has these, too, if there are any."""


class _NodeInfo(msgspec.Struct, rename="camel"):
    kubelet_version: str | None = None


class _NodeStatus(msgspec.Struct, rename="camel"):
    node_info: _NodeInfo | None = None


class _Kubelet(msgspec.Struct):
    status: _NodeStatus | None = None


class SnapshotSummary:
    """The result of a load: loaded objects by kind, pods without a node, objects of other kinds, and invalid objects.

    `kubelet_versions` are the versions in node objects.
    Nominated pods among the pods without a node count on their nominated node for other pods.
    """

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.unassigned_pods = 0
        self.nominated_pods = 0
        self.other_kinds: Counter[str] = Counter()
        self.invalid: list[str] = []
        self.superseded: set[str] = set()
        """Places of objects that the dump has once more, as they are or newer."""
        self.stated: set[Kind] = set()
        """Kinds of which the dump says that there is no other object, such as by an empty list of the kind."""
        self.namespaces_of_pods: set[str] = set()
        self.namespaces_of_claims: set[str] = set()
        self.claiming: set[str] = set()
        """The namespaces of pods that name claims."""
        self.unnamed: set[str] = set()
        """Names of namespaces that have pods and no Namespace in the dump."""
        self.kubelet_versions: set[str] = set()

    @property
    def placed_pods(self) -> int:
        """Number of pods that count on a node."""
        return self.taken["Pod"] - self.unassigned_pods

    def lacking(self) -> list[Kind]:
        """Return the kinds of which the cluster may have objects that the dump lacks.

        A file does not say what was not asked for. Nodes and pods are not among these kinds: no node, or no pod, is a
        cluster to be tried. Nor are kinds that few servers have, but for those that pods name: the groups of
        kube-scheduler, and devices.
        """
        with_devices = any(self._has(kind) for kind in (ResourceSlice, ResourceClaim))
        kinds = (
            kind
            for kind, resource in RESOURCES.items()
            if not resource.optional
            or resource.absence_is_unknown
            or kind is SchedulingGroup
            or (kind is DeviceClass and with_devices)
        )
        lacks = [kind for kind in kinds if kind not in _ALWAYS_COUNTED and not self._has(kind)]
        return [Namespace, *lacks] if self.unnamed else lacks

    def _has(self, kind: Kind) -> bool:
        others = _OPTIONAL.get(kind)
        known = self.taken[kind.__name__] > 0 or kind in self.stated
        return known or (others is not None and self._has(others))

    def __str__(self) -> str:
        """Return the summary as one line for people."""
        text = ", ".join(
            f"{self.taken[kind.__name__]} {resource.name}"
            for kind, resource in RESOURCES.items()
            if kind in _ALWAYS_COUNTED or self.taken[kind.__name__]
        )
        if self.unassigned_pods:
            nominated = f" but for {self.nominated_pods} nominated" if self.nominated_pods else ""
            text += f" ({self.unassigned_pods} pods pending or ended: not counted{nominated})"
        others = {kind: n for kind, n in self.other_kinds.items() if kind.partition(" of ")[0] not in OF_MANIFESTS}
        if others:
            text += f"; skipped: {', '.join(f'{n} {kind}' for kind, n in sorted(others.items()))}"
        if self.superseded:
            text += f"; {len(self.superseded)} there more than once (the newest counts)"
        if self.invalid:
            text += f"; invalid: {len(self.invalid)}"
        return text


def load_items(
    items: Iterable[DumpItem], mirror: ClusterMirror, *, skip_invalid: bool, stated: Collection[Kind] = ()
) -> SnapshotSummary:
    """Load the objects of a dump into a mirror. `stated` are the kinds of which the dump says that it has all objects.

    An invalid object raises SnapshotError. With `skip_invalid` it is counted and left out. A pod with only invalid
    affinity terms then stays without that list of terms, as in kube-scheduler.
    """
    loading = _Loading(mirror)
    summary = loading.summary
    for item in items:
        try:
            loading.load(item)
        except DecodeError as error:
            problem = f"{item.place} ({_identity(item)}): {error}"
            if not skip_invalid:
                raise SnapshotError(problem) from None
            summary.invalid.append(problem)
    loading.finish()
    summary.stated.update(stated)
    return summary


class _Loading:
    """A load of objects into a mirror."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.summary: Final = SnapshotSummary()
        self._mirror = mirror
        self._places: dict[tuple[str, str], str] = {}  # kind and full name, or "uid" and the uid of a pod -> place
        self._objects: dict[tuple[str, str], Object] = {}  # kind and full name -> the loaded object

    def load(self, item: DumpItem) -> None:
        """Load one object. Raises DecodeError."""
        kind, summary = item.kind or kind_of(item.raw), self.summary
        if not kind:
            raise DecodeError("kind", "required")
        if kind not in RESOURCE_OF:
            summary.other_kinds[kind] += 1
            return
        decoded = RESOURCE_OF[kind].decode(item.raw)
        if not self._is_news(decoded, item.place):
            return
        self._mirror.apply(ClusterEvent("Add", decoded))
        if isinstance(decoded, Pod):
            for error in decoded.affinity.errors:
                raise DecodeError(f"spec.affinity.{error.field}", error.message)
        if isinstance(decoded, Node):
            summary.kubelet_versions.update(_kubelet_version(item))
        self._objects[type(decoded).__name__, decoded.full_name] = decoded

    def _is_news(self, decoded: Object, place: str) -> bool:
        """Return whether an object is new, or newer than the one of its name, which is then removed.

        Files of several commands have objects twice. Versions grow with each change of an object of a kind: Kubernetes
        Enhancement 5504, and k8s.io/apimachinery pkg/util/resourceversion. Raises DecodeError for another object of the
        same name whose versions do not tell which one is newer, and for another pod with the same uid.
        """
        kind = type(decoded).__name__
        key, places, summary = (kind, decoded.full_name), self._places, self.summary
        before = self._objects.get(key)
        if before is not None:
            if decoded != before and not (_version(decoded) and _version(before)):
                raise DecodeError("metadata.name", f"already used by the {kind} at {places[key]}")
            if decoded == before or _version(decoded) <= _version(before):
                summary.superseded.add(place)
                return False
            summary.superseded.add(places[key])
            self._mirror.apply(ClusterEvent("Delete", before))
            places.pop(("uid", before.uid), None)
        elif key in places:
            raise DecodeError("metadata.name", f"already used by the {kind} at {places[key]}")
        if isinstance(decoded, Pod):
            if ("uid", decoded.uid) in places:
                raise DecodeError("metadata.uid", f"already used by the {kind} at {places['uid', decoded.uid]}")
            places["uid", decoded.uid] = place
        places[key] = place
        return True

    def finish(self) -> None:
        """Count what was loaded, and name the namespaces of pods."""
        summary, mirror = self.summary, self._mirror
        for (kind, _), loaded in self._objects.items():
            summary.taken[kind] += 1
            if isinstance(loaded, Pod):
                summary.namespaces_of_pods.add(loaded.namespace)
                summary.claiming |= {loaded.namespace} if named_claims(loaded) else set()
                if not loaded.assigned:
                    summary.unassigned_pods += 1
                    summary.nominated_pods += loaded.uid in mirror.pending.nominated_for(loaded.nominated_node_name)
            elif isinstance(loaded, PersistentVolumeClaim):
                summary.namespaces_of_claims.add(loaded.namespace)
        summary.unnamed = summary.namespaces_of_pods - mirror.namespaces.keys()
        # The one label that is known. Source: k8s.io/kubernetes pkg/apis/core/v1/defaults.go (SetDefaults_Namespace).
        for name in summary.unnamed:
            mirror.apply(ClusterEvent("Add", Namespace(name=name, labels={NAMESPACE_NAME: name})))


def _version(loaded: Object) -> int:
    """Return the resource version as a number. 0 if it has none."""
    text = loaded.resource_version
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_VERSION_LENGTH else 0


def _kubelet_version(item: DumpItem) -> Iterator[str]:
    """Yield the version of a node's kubelet, if it is readable. It affects no result for the node."""
    with suppress(msgspec.DecodeError):
        status = msgspec.json.decode(item.raw, type=_Kubelet).status
        if status is not None and status.node_info is not None and status.node_info.kubelet_version:
            yield status.node_info.kubelet_version


def _identity(item: DumpItem) -> str:
    try:
        identity = msgspec.json.decode(item.raw, type=WireObject)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "unreadable"
    metadata = identity.metadata or Metadata()
    namespace = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"{item.kind.partition(' ')[0] or identity.kind or '?'} {namespace}{metadata.name or '?'}"
