"""Reads a cluster dump: output of `kubectl get nodes,pods,namespaces -A -o json` (or yaml)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from app.objects.decode import DecodeError, Metadata, WireObject, decoding
from app.objects.resources import RESOURCES, Resource
from app.objects.yaml_documents import DocumentsError, documents
from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod

_ALWAYS_COUNTED: Final = (Node, Pod, Namespace)


class SnapshotError(ValueError):
    """An unreadable dump, or an invalid object in it. The message names the object and the field."""


class DumpItem(NamedTuple):
    """One object of a dump: its place, its JSON, and its kind if the enclosing list states it."""

    place: str
    raw: bytes | msgspec.Raw
    kind: str


class _Type(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None

    def known_as(self) -> str:
        """Return the kind, with its API group unless that is the core group. Other groups have a Node, too."""
        return _known_as(self.kind or "", self.api_version or "")


def _known_as(kind: str, api_version: str) -> str:
    return kind if api_version in ("", "v1") else f"{kind} of {api_version}"


# The kind alone is enough for a hand-written object without an apiVersion.
_RESOURCES: Final[Mapping[str, Resource]] = {
    name: resource
    for kind, resource in RESOURCES.items()
    for name in (
        *(() if resource.kind_name else (kind.__name__,)),
        *(_known_as(each.api_kind, each.api_version) for each in resource.versions()),
    )
}


class _Document(_Type, rename="camel"):
    items: list[msgspec.Raw] | None = None


_document_decoder: Final = msgspec.json.Decoder(_Document)


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
        self.kubelet_versions: set[str] = set()

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
        if self.other_kinds:
            text += f"; skipped: {', '.join(f'{n} {kind}' for kind, n in sorted(self.other_kinds.items()))}"
        if self.invalid:
            text += f"; invalid: {len(self.invalid)}"
        return text


def read_items(text: bytes) -> list[DumpItem]:
    """Return the objects of a dump: a List, lists of one kind (a PodList), and single objects.

    Raises SnapshotError.
    """
    found: list[DumpItem] = []
    try:
        texts = documents(text)
    except DocumentsError as error:
        raise SnapshotError(str(error)) from None
    if not texts:
        raise SnapshotError("empty: nothing was dumped")  # for example, kubectl failed in a pipe
    for number, raw in enumerate(texts):
        place = f"document {number + 1} " if len(texts) > 1 else ""
        try:
            document = decoding(_document_decoder.decode, raw)
        except DecodeError as error:
            raise SnapshotError(f"{place}{error}") from None
        kind = document.kind or ""
        if document.items is not None:
            # The API server leaves out the kind of the items of a PodList.
            item_kind = _Type(kind.removesuffix("List"), document.api_version).known_as() if kind != "List" else ""
            found += [DumpItem(f"{place}items[{index}]", item, item_kind) for index, item in enumerate(document.items)]
        elif document.known_as() in _RESOURCES:
            found.append(DumpItem(place.strip() or "the object", raw, document.known_as()))
        else:
            raise SnapshotError(
                f"{place}items: required; a dump is what `kubectl get nodes,pods,namespaces -A -o json` prints"
            )
    return found


def load_items(items: Iterable[DumpItem], mirror: ClusterMirror, *, skip_invalid: bool) -> SnapshotSummary:
    """Load the objects of a dump into a mirror.

    An invalid object raises SnapshotError. With `skip_invalid` it is counted and left out. A pod with only invalid
    affinity terms then stays without that list of terms, as in kube-scheduler.
    """
    summary = SnapshotSummary()
    seen: dict[tuple[str, str], str] = {}
    for item in items:
        try:
            _load(item, mirror, seen, summary)
        except DecodeError as error:
            problem = f"{item.place} ({_identity(item)}): {error}"
            if not skip_invalid:
                raise SnapshotError(problem) from None
            summary.invalid.append(problem)
    return summary


def _load(item: DumpItem, mirror: ClusterMirror, seen: dict[tuple[str, str], str], summary: SnapshotSummary) -> None:
    kind = item.kind or decoding(lambda raw: msgspec.json.decode(raw, type=_Type), item.raw).known_as()
    if not kind:
        raise DecodeError("kind", "required")
    if kind not in _RESOURCES:
        summary.other_kinds[kind] += 1
        return
    decoded = _RESOURCES[kind].decode(item.raw)
    _refuse_repetition(decoded, item.place, seen)
    mirror.apply(ClusterEvent("Add", decoded))
    if isinstance(decoded, Pod):
        for error in decoded.affinity.errors:
            raise DecodeError(f"spec.affinity.{error.field}", error.message)
    summary.taken[type(decoded).__name__] += 1
    if isinstance(decoded, Node):
        summary.kubelet_versions.update(_kubelet_version(item))
    if isinstance(decoded, Pod) and not decoded.assigned:
        summary.unassigned_pods += 1
        summary.nominated_pods += decoded.uid in mirror.pending.nominated_for(decoded.nominated_node_name)


def _refuse_repetition(decoded: Object, place: str, seen: dict[tuple[str, str], str]) -> None:
    kind = type(decoded).__name__
    identities = {(kind, decoded.full_name): "metadata.name"}
    if isinstance(decoded, Pod):
        identities["uid", decoded.uid] = "metadata.uid"
    for identity, field in identities.items():
        if identity in seen:
            raise DecodeError(field, f"already used by the {kind} at {seen[identity]}")
    seen.update(dict.fromkeys(identities, place))


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
    return f"{item.kind or identity.kind or '?'} {namespace}{metadata.name or '?'}"
