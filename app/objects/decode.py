"""Common parts of decoding for all kinds: errors that name the field, metadata, label selectors, and quantities.

As in Go, unknown fields of an object are ignored, because every Kubernetes release adds some. As in Go, JSON null means
an absent field.

The size limits are those of Kubernetes itself, checked in every input: from the API server, in dumps and in requests.
They reject only objects that no API server stores, so they never drop an object of a real cluster. Source:
k8s.io/apimachinery pkg/api/validation/objectmeta.go and pkg/util/validation/validation.go, and k8s.io/kubernetes
pkg/apis/core/validation/validation.go. Only sizes are checked, not characters. An API server has no limit for the
`values` of a node affinity or, in objects of older releases, of a label selector. It also has none for a constraint's
`topologyKey`, for names of images, claims, owners and schedulers, and for `spec.nodeName`, which a Binding sets.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from sys import intern
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np

from core.objects.kinds import ControllerRef
from core.objects.labels import NOTHING, Operator, Selector, SelectorError, parse_selector, requirement
from core.objects.pod_requests import Amounts
from core.objects.quantity import QuantityError, nanos

T = TypeVar("T")

Json: TypeAlias = bytes | bytearray | msgspec.Raw
NULL: Final = msgspec.Raw(b"null")
"""The value of an absent field that is read as bytes."""
MAX_NAME_BYTES: Final = 253  # a DNS subdomain
MAX_NAMESPACE_BYTES: Final = 63  # a DNS label
MAX_UID_BYTES: Final = 317  # the API server makes UUIDs of 36 bytes, but in a manifest a uid may be NAMESPACE/NAME
MAX_LABEL_KEY_BYTES: Final = 317  # of labels, taints and topologies: a DNS subdomain, a slash, and a name of 63
MAX_LABEL_VALUE_BYTES: Final = 63
_MEMO_ENTRIES: Final = 8192


class Unread(NamedTuple):
    """The type of a field that is kept as bytes until it is needed. The test of the table of judges reads it."""

    kind: Any


Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class DecodeError(ValueError):
    """Malformed JSON, or a field that is missing or has the wrong type.

    `field` is the path of the field (`spec.nodeName`). Empty if the error concerns the whole text.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message

    def under(self, prefix: str) -> "DecodeError":
        """Return the same error with the path of the enclosing field in front."""
        dot = "." if prefix and self.field and not self.field.startswith("[") else ""
        return DecodeError(f"{prefix}{dot}{self.field}", self.message)


class MalformedError(DecodeError):
    """A text that is not JSON, or not UTF-8. `field` is empty."""

    def __init__(self, message: str) -> None:
        super().__init__("", f"malformed JSON: {_lower_first(message.removeprefix('JSON is malformed: '))}")


TextMap: TypeAlias = dict[str, str | None]
"""A map of texts. As in Go, null stands for the empty text, such as a label in YAML with nothing behind the colon."""


class Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the wire structs: camelCase names."""


class OwnerReference(Wire):
    """An owner of an object. One owner may be the controller."""

    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    api_version: str | None = None
    controller: bool | None = None


class Metadata(Wire):
    """The metadata of every object. Fields that not every kind needs stay bytes."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Annotated[msgspec.Raw, Unread(dict[str, str])] = NULL
    owner_references: Annotated[msgspec.Raw, Unread(list[OwnerReference])] = NULL


class AnnotatedMetadata(Metadata):
    """Metadata of kinds whose annotations or deletion affect a result."""

    annotations: TextMap | None = None
    deletion_timestamp: str | None = None


class Expression(Wire, omit_defaults=True):
    """A requirement of a label selector or node selector. The admin port shows it unchanged."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(Wire, omit_defaults=True):
    """A v1 LabelSelector."""

    match_labels: TextMap | None = None
    match_expressions: list[Expression] | None = None


class WireObject(Wire):
    """The members of every object. Each kind adds its own."""

    kind: str | None = None
    metadata: Metadata | None = None


class AnnotatedObject(WireObject):
    """The members of an object with AnnotatedMetadata."""

    metadata: AnnotatedMetadata | None = None


Quantity: TypeAlias = (
    Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,3})?(m|k|M|G|Ki|Mi|Gi)?$")]
    | Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
)
"""A quantity as written in a manifest. JSON Schema cannot express every form that `nanos` reads."""
WireAmounts: TypeAlias = Annotated[msgspec.Raw, Unread(dict[str, Quantity])]
"""A v1.ResourceList."""


def nullable(wire: type[T]) -> msgspec.json.Decoder[T | None]:
    """Return the decoder of a value that may be null."""
    return msgspec.json.Decoder(wire | None)


amounts_decoder: Final = nullable(dict[str, msgspec.Raw])
_text_decoder: Final = msgspec.json.Decoder(str)
_text_map_decoder: Final = nullable(TextMap)
_owners_decoder: Final = nullable(list[OwnerReference])


def decoding(decode: Callable[[Json], T], raw: Json) -> T:
    """Run a msgspec decoder and turn its errors into a DecodeError that names the field."""
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        message = _lower_first(message.replace("`", ""))
        raise DecodeError(_with_key(_field(path), raw, message), message) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(str(error)) from None
    except RecursionError:
        raise MalformedError("nested too deeply") from None


def decoding_field(decode: Callable[[Json], T], raw: Json, field: str) -> T:
    """Decode a field that was left as bytes; errors have its path in front."""
    try:
        return decoding(decode, raw)
    except MalformedError:
        raise
    except DecodeError as error:
        raise error.under(field) from None


def texts(found: TextMap | None) -> dict[str, str]:
    """Return a map of texts with the empty text for null, and the empty map for null."""
    return {key: text or "" for key, text in found.items()} if found else {}


def text_map_of(raw: Json, field: str) -> dict[str, str]:
    """Return a map of texts that was left as bytes, as `texts`. Raises DecodeError."""
    return texts(decoding_field(_text_map_decoder.decode, raw, field))


@contextmanager
def under(field: str) -> Iterator[None]:
    """Name the enclosing field in a DecodeError that is raised inside."""
    try:
        yield
    except DecodeError as error:
        raise error.under(field) from None


def memoised(parse: Callable[[bytes], T], longest: int = 2 * 1024) -> Callable[[Json], T]:
    """Return `parse` with a memo: objects with equal bytes, such as the pods of a controller, mostly share one value.

    Texts of more than `longest` bytes are parsed each time, so a memo has at most `longest` * 8192 bytes of keys.
    """
    remembered = lru_cache(maxsize=_MEMO_ENTRIES)(parse)

    def shared(raw: Json) -> T:
        text = bytes(raw)
        return remembered(text) if len(text) <= longest else parse(text)

    return shared


def is_longer(text: str, limit: int) -> bool:
    """Return whether a text has more than `limit` bytes of UTF-8, which Go's len counts."""
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)


def refuse_longer(text: str | None, limit: int, field: str) -> None:
    """Raise DecodeError for a text of more than `limit` bytes."""
    if text and is_longer(text, limit):
        raise DecodeError(field, f"longer than {limit} bytes")


def refuse_long_labels(labels: Mapping[str, str], field: str) -> None:
    """Reject labels, or a selector by label values, that no object can have. Raises DecodeError."""
    for key, value in labels.items():
        if is_longer(key, MAX_LABEL_KEY_BYTES):
            raise DecodeError(field, f"a key longer than {MAX_LABEL_KEY_BYTES} bytes")
        if is_longer(value, MAX_LABEL_VALUE_BYTES):
            raise DecodeError(field, f"the value of {key} is longer than {MAX_LABEL_VALUE_BYTES} bytes")


def checked_name(kind: str, found: str | None, metadata: Metadata) -> str:
    """Return the name of an object. Raises DecodeError, also if the object states another kind.

    All kinds use this function, so it also checks the namespace and the uid.
    """
    if found and found != kind:
        raise DecodeError("kind", f"expected {kind}, got {found}")
    name = metadata.name or metadata.generate_name
    if not name:
        raise DecodeError("metadata.name", "required")
    namespace, uid = metadata.namespace or "", metadata.uid or ""
    # Almost always, this is the only check that runs.
    if len(name) + len(namespace) + len(uid) > MAX_NAMESPACE_BYTES or not name.isascii():
        refuse_longer(name, MAX_NAME_BYTES, "metadata.name" if metadata.name else "metadata.generateName")
        refuse_longer(namespace, MAX_NAMESPACE_BYTES, "metadata.namespace")
        refuse_longer(uid, MAX_UID_BYTES, "metadata.uid")
    return name


def names_of(kind: str, wire: WireObject) -> dict[str, str]:
    """Return the name, the uid and the resource version of an object, as arguments of the core's value.

    Raises DecodeError, as checked_name.
    """
    metadata = wire.metadata or Metadata()
    return {
        "name": checked_name(kind, wire.kind, metadata),
        "uid": metadata.uid or "",
        "resource_version": metadata.resource_version or "",
    }


def names_in_namespace(kind: str, wire: WireObject) -> dict[str, str]:
    """Return the same for a kind with namespaces, with the namespace."""
    metadata = wire.metadata or Metadata()
    return {"namespace": metadata.namespace or "default", **names_of(kind, wire)}


def _parse_labels(raw: bytes) -> Mapping[str, str]:
    labels = text_map_of(raw, "metadata.labels")
    refuse_long_labels(labels, "metadata.labels")
    return {intern(key): intern(value) for key, value in labels.items()}  # most texts are in many labels


def _parse_controller(raw: bytes) -> ControllerRef | None:
    """Source: k8s.io/apimachinery pkg/apis/meta/v1/controller_ref.go (GetControllerOf)."""
    for owner in decoding_field(_owners_decoder.decode, raw, "metadata.ownerReferences") or ():
        if owner.controller:
            return ControllerRef(owner.kind or "", owner.name or "", owner.uid or "", owner.api_version or "")
    return None


labels_of: Final = memoised(_parse_labels)
controller_of: Final = memoised(_parse_controller)
"""Returns the first owner in `metadata.ownerReferences` with `controller: true`."""


def selector_of(path: str, selector: LabelSelector | None, absent: Selector = NOTHING) -> Selector:
    """Return a label selector, or `absent` for null. Raises SelectorError with `path` in front of its field."""
    if selector is None:
        return absent
    expressions = [
        (expression.key or "", expression.operator or "", expression.values or ())
        for expression in selector.match_expressions or ()
    ]
    try:
        return parse_selector(texts(selector.match_labels), expressions)
    except SelectorError as error:
        raise SelectorError(f"{path}.{error.field}", str(error)) from None


def selector_and_error(selector: LabelSelector | None, absent: Selector = NOTHING) -> tuple[Selector, str]:
    """Return a label selector, or `absent` for null, and its error. An invalid selector matches nothing."""
    try:
        return selector_of("", selector, absent), ""
    except SelectorError as error:
        return NOTHING, str(error)


def selector_or_nothing(selector: LabelSelector | None) -> Selector:
    """Return a label selector. An invalid one matches nothing, like null. For use where upstream ignores the error."""
    return selector_and_error(selector)[0]


def selector_of_labels(labels: Mapping[str, str] | None) -> Selector:
    """Return the selector of a Service or ReplicationController, without validation. Without labels: NOTHING."""
    if not labels:  # an API server does not store `{}`, so `{}` means the same as null
        return NOTHING
    return Selector(tuple(requirement(key, Operator.IN, [labels[key]]) for key in sorted(labels)))


def quantity_of(raw: msgspec.Raw, field: str) -> int:
    """Return the exact quantity, as `nanos` does. As in Go, null is 0. Raises DecodeError."""
    text = bytes(raw)
    if text == b"null":
        return 0
    try:
        # A number is read from its text, because a float would lose digits.
        return nanos(decoding_field(_text_decoder.decode, raw, field).strip() if text[:1] == b'"' else text.decode())
    except QuantityError as error:
        raise DecodeError(field, str(error)) from None


def amounts_of(raw: msgspec.Raw | bytes, field: str) -> Amounts:
    """Return the exact amounts of a v1.ResourceList. Raises DecodeError."""
    quantities = decoding_field(amounts_decoder.decode, raw, field) or {}
    return {name: quantity_of(quantity, f"{field}.{name}") for name, quantity in quantities.items()}


def _field(path: str) -> str:
    """`$.spec.nodeName` (msgspec's path, in backticks) -> spec.nodeName."""
    return re.sub(r"^\$\.?", "", path.strip("`").removeprefix("key in ").strip("`"))


_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([0-9]+)\]")
_OF_BYTE: Final = {b'"': "str", b"{": "object", b"[": "array", b"n": "null", b"t": "bool", b"f": "bool"}
_ANY_KEY: Final = "[...]"


def _with_key(field: str, raw: Json, message: str) -> str:
    """Return the path of a wrong value in a map with its key, for which msgspec writes `[...]`.

    The key is the first one with a value of the type that the message names.
    """
    if not field.endswith(_ANY_KEY):
        return field
    head, got = field.removesuffix(_ANY_KEY), message.rpartition(" ")[2].replace("float", "int")
    try:
        for name, index in _STEP.findall(head):
            raw = msgspec.json.decode(raw, type=list[msgspec.Raw])[int(index)] if index else _members(raw)[name]
        wrong = (key for key, value in _members(raw).items() if _OF_BYTE.get(bytes(value)[:1], "int") == got)
        return f"{head}[{next(wrong)}]"
    except (msgspec.DecodeError, LookupError, StopIteration, RecursionError):
        return field


def _members(raw: Json) -> dict[str, msgspec.Raw]:
    return _members_decoder.decode(raw)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


_members_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class GoStruct:
    """The fields of one Go struct without JSON tags, as in the extender's messages. Their values stay raw.

    Their keys match in any case. Of keys that differ only in case, the last one counts. Source: Go's encoding/json
    (Unmarshal).
    """

    def __init__(self, name: str, *fields: str) -> None:
        """`name` and `fields` have Go's spelling."""
        self._name = name
        self._fields = fields
        self._spellings = {**{field.lower(): field for field in fields}, **{field: field for field in fields}}

    def fields_of(self, members: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """Return the fields in an object, by their names in Go's spelling. Other members are ignored."""
        fields = {}
        for key, raw in members.items():
            field = self._spellings.get(key) or self._spellings.get(key.lower())
            if field is not None:
                fields[field] = raw
        return fields

    def decode(self, body: Json) -> dict[str, msgspec.Raw]:
        """Return the fields in a body, by names in Go's spelling. Raises DecodeError, also for an unknown field."""
        try:
            members = members_of(body)
        except DecodeError as error:
            raise error.under("body") from None
        for key in members:
            if key not in self._spellings and key.lower() not in self._spellings:
                raise DecodeError(key, f"unknown field; {self._name} has {', '.join(self._fields)}")
        return self.fields_of(members)


EXTENDER_ARGS: Final = GoStruct("ExtenderArgs", "Pod", "Nodes", "NodeNames")


def members_of(raw: Json) -> dict[str, msgspec.Raw]:
    """Return the members of an object. Raises DecodeError."""
    return decoding(_members_decoder.decode, raw)


Body: TypeAlias = bytes | bytearray
"""The body of a request. A bytearray saves a copy, which takes up to 10 ms for 32 MB."""
MAX_NODES: Final = 100_000
"""Nodes in one request. The largest supported cluster has 5,000."""
FEW_BYTES: Final = 1024 * 1024
"""The elements of a smaller body are not counted."""
_MAX_ELEMENTS: Final = 5_000_000
"""JSON elements in one body. A decoded element takes up to 80 bytes, even if its JSON has only 3 bytes (`{},`). So a
body of 64 MiB could take 3 GB. The limit is 1,000 elements for each of 5,000 whole nodes."""
_COUNTED_AT_ONCE: Final = 256 * 1024  # bytes; this much fits in the cache of the CPU


def refuse_too_many_elements(body: Body) -> None:
    """Raise DecodeError for a body that would take too much memory when decoded."""
    if len(body) > FEW_BYTES and _commas(body) > _MAX_ELEMENTS:
        raise DecodeError("body", f"more than {_MAX_ELEMENTS} elements")


def _commas(body: Body) -> int:
    """Count the commas. 30 MB of whole nodes take 3.5 ms. `bytes.count` takes 15 ms, because it stops at each comma."""
    characters = np.frombuffer(body, np.uint8)
    return sum(
        int(np.count_nonzero(characters[start : start + _COUNTED_AT_ONCE] == ord(",")))
        for start in range(0, len(characters), _COUNTED_AT_ONCE)
    )
