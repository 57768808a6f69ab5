"""The objects in the text of a dump, in the forms in which people have dumps.

These are a List, lists of one kind, lists of lists, and objects, one after another, in JSON or YAML; an export of
kube-scheduler-simulator; and the output of `kubectl cluster-info dump`, which has logs of pods between its lists.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from app.objects.decode import NULL, DecodeError, decoding, decoding_field, members_of
from app.objects.resources import DUMP_COMMAND, RESOURCES, Resource
from app.objects.yaml_documents import DocumentsError, Json, form_of, is_json, views_of_documents
from core.events import Kind


class SnapshotError(ValueError):
    """An unreadable dump, or an invalid object in it. The message names the object and the field."""


class CutOffError(SnapshotError):
    """The text is JSON without its end, such as that of a full disk."""


class DumpItem(NamedTuple):
    """One object of a dump: its place, its JSON, and its kind, with the API group unless that is the core group.

    The kind is empty if it cannot be read.
    """

    place: str
    raw: Json
    kind: str


class Dump(NamedTuple):
    """The objects of a dump, and the kinds of which it says that there are no others."""

    items: list[DumpItem]
    stated: set[Kind]


class _Type(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None

    def known_as(self) -> str:
        """Return the kind, with its API group unless that is the core group. Other groups have a Node, too."""
        return _known_as(self.kind or "", self.api_version or "")


def _known_as(kind: str, api_version: str) -> str:
    return kind if api_version in ("", "v1") else f"{kind} of {api_version}"


# The kind alone is enough for a hand-written object without an apiVersion.
RESOURCE_OF: Final[Mapping[str, Resource]] = {
    name: resource
    for kind, resource in RESOURCES.items()
    for name in (
        *(() if resource.kind_name else (kind.__name__,)),
        *(_known_as(each.api_kind, each.api_version) for each in resource.versions()),
    )
}
"""The kind of an object, as in a DumpItem -> its resource."""


class _Document(_Type, rename="camel"):
    items: msgspec.Raw = NULL
    message: Any = None


_document_decoder: Final = msgspec.json.Decoder(_Document)
_any_document_decoder: Final = msgspec.json.Decoder(_Document | list[msgspec.Raw])
_type_decoder: Final = msgspec.json.Decoder(_Type)
_items_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)
_LIST: Final = "List"
_DEEPEST: Final = 4
"""How deep lists may be in lists. Each level is read once more."""
_MOST_NAMED: Final = 5
_INSTEAD: Final = f"a dump is what `{DUMP_COMMAND}` prints"
_LONGEST_FORM: Final = 4096
"""Bytes that say what a text is that has no objects."""

_OF_EXPORT: Final[Mapping[str, str]] = {
    "pods": "Pod",
    "nodes": "Node",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "priorityClasses": "PriorityClass of scheduling.k8s.io/v1",
    "namespaces": "Namespace",
}
"""Member of an export of kube-scheduler-simulator -> kind of its objects.

Source: kubernetes-sigs/kube-scheduler-simulator simulator/snapshot/snapshot.go (ResourcesForSnap). Other members are
counted by their names, as objects of other kinds."""


def read_dump(text: bytes, file: str = "") -> Dump:
    """Return the objects of a text. `file` names it in places, if there are several. Raises SnapshotError."""
    dump, prefix = Dump([], set()), f"{file}: " if file else ""
    try:
        texts = views_of_documents(_separated(b"".join(_without_logs(text))))
    except DocumentsError as error:
        raise SnapshotError(f"{prefix}{form_of(text) or error}") from None
    if not texts:
        # kubectl failed in a pipe, or the API server has none of one kind (k8s.io/cli-runtime resource/builder.go).
        raise SnapshotError(f"{prefix}empty: nothing was dumped; kubectl prints nothing if it does not know a kind")
    for number, raw in enumerate(texts):
        place = f"{prefix}document {number + 1} " if len(texts) > 1 else prefix
        try:
            _add_document(dump, raw, place)
        except DecodeError as error:
            instead = f"; {_INSTEAD}" if error.field == "kind" and not file else ""
            # kubectl may print a message after the objects.
            form = form_of(text) or form_of(bytes(memoryview(raw)[:_LONGEST_FORM]).lstrip())
            kind = CutOffError if not form and error.message.endswith("truncated") else SnapshotError
            raise kind(f"{place}{form or f'{error}{instead}'}") from None
    return dump


def _add_document(dump: Dump, raw: Json, place: str) -> None:
    document = decoding(_any_document_decoder.decode, raw)
    if isinstance(document, list):  # `jq .items` prints one
        if document and not _kind_or_nothing(document[0]):
            raise DecodeError("[0].kind", "required")
        return _add_items(dump, document, "", place, 1)
    kind = document.kind or ""
    if _is_list(document):
        _add_list(dump, document, place, 1)
    elif kind == "Status":
        raise DecodeError("", f"an error of the API server: {document.message}")
    elif kind == "Table":
        raise DecodeError("kind", "a Table has rows instead of objects")
    elif kind:
        dump.items.append(DumpItem(place.strip() or "the object", raw, document.known_as()))
    else:
        _add_export(dump, raw, place)
    return None


def _is_list(document: _Document) -> bool:
    kind = document.kind or _LIST
    return kind.endswith(_LIST) and (document.items is not NULL or _item_kind(document) in RESOURCE_OF)


def _item_kind(document: _Document) -> str:
    """Return the kind of the items of a list of one kind, such as a PodList: the API server leaves it out."""
    return _Type((document.kind or "").removesuffix(_LIST), document.api_version).known_as()


def _add_list(dump: Dump, document: _Document, place: str, depth: int) -> None:
    items = decoding_field(_items_decoder.decode, document.items, "items") or []
    item_kind = _item_kind(document) if document.kind != _LIST else ""
    if not items and item_kind in RESOURCE_OF:
        dump.stated.add(RESOURCE_OF[item_kind].kind)
    _add_items(dump, items, item_kind, f"{place}items", depth)


def _add_items(dump: Dump, items: Sequence[msgspec.Raw], item_kind: str, place: str, depth: int) -> None:
    for index, item in enumerate(items):
        where = f"{place}[{index}]"
        known_as = item_kind or _kind_or_nothing(item)
        if known_as.partition(" ")[0].endswith(_LIST) and _is_list(inner := decoding(_document_decoder.decode, item)):
            if depth == _DEEPEST:
                raise DecodeError("items", f"lists more than {_DEEPEST} levels deep")
            _add_list(dump, inner, f"{where}.", depth + 1)
        else:
            dump.items.append(DumpItem(where, item, known_as))


def kind_of(raw: Json) -> str:
    """Return the kind of an object, as in a DumpItem. Empty if the object states none. Raises DecodeError."""
    return decoding(_type_decoder.decode, raw).known_as()


def _kind_or_nothing(raw: Json) -> str:
    try:
        return kind_of(raw)
    except DecodeError:
        return ""  # an error of this object, once it is loaded


def _add_export(dump: Dump, raw: Json, place: str) -> None:
    """Add the objects of an export of kube-scheduler-simulator, which is all that its scheduler sees."""
    members = members_of(raw)
    if not members.keys() >= {"nodes", "pods"}:
        named = ", ".join([*members][:_MOST_NAMED])
        raise DecodeError("kind", f"required, found {named or 'nothing'}")
    for name, value in members.items():
        if bytes(value)[:1] == b"[" or name in _OF_EXPORT:
            items = decoding_field(_items_decoder.decode, value, name) or []
            kind = _OF_EXPORT.get(name, name)
            dump.items.extend(DumpItem(f"{place}{name}[{index}]", item, kind) for index, item in enumerate(items))
        elif bytes(value) not in _SAYS_NOTHING:
            dump.items.append(DumpItem(f"{place}{name}", value, name))
    dump.stated.update(RESOURCES)


_SAYS_NOTHING: Final = {b"null", b"{}"}


def refuse_foreign(dump: Dump) -> None:
    """Raise SnapshotError for a dump that has objects, but none that a rule reads, such as a manifest."""
    if dump.items and all(item.kind and item.kind not in RESOURCE_OF for item in dump.items):
        kinds = dict.fromkeys(item.kind for item in dump.items)
        raise SnapshotError(f"no object that a rule reads, but {', '.join([*kinds][:_MOST_NAMED])}; {_INSTEAD}")


# Logs between the lists of `kubectl cluster-info dump`.
#
# Source: k8s.io/kubectl pkg/cmd/clusterinfo/clusterinfo_dump.go (Run). A log need not end with a line feed.

_LOGS: Final = b"==== START logs for container "
_END_OF_LOGS: Final = b"==== END logs for container "


def _without_logs(text: bytes) -> Iterator[bytes]:
    start = 0
    while (logs := text.find(_LOGS, start)) >= 0 and (end := text.find(_END_OF_LOGS, logs)) >= 0:
        yield text[start:logs]
        line_end = text.find(b"\n", end)
        start = len(text) if line_end < 0 else line_end
    yield text[start:]


# YAML of several commands in one file, which has no marks between the documents.

_BEGINNING: Final = re.compile(rb"^(?:---|apiVersion:|\{)", re.MULTILINE)


def _separated(text: bytes) -> bytes:
    """Return YAML with a mark before each document: kubectl begins one with apiVersion, and JSON may follow."""
    if is_json(text):
        return text
    pieces, start, is_begun = [], 0, False
    for found in _BEGINNING.finditer(text):
        if is_begun and found[0] != b"---":
            pieces += [text[start : found.start()], b"---\n"]
            start = found.start()
        is_begun = found[0] == b"apiVersion:"
    return b"".join([*pieces, text[start:]]) if pieces else text
