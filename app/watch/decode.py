"""JSON of v1 objects to the core's values, reading only the fields that scheduling needs.

Unknown fields inside an object are passed over, as Go does: every Kubernetes release adds some. JSON null is an absent
field everywhere, again as in Go.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Final, TypeVar

import msgspec

from core.objects.affinity import (
    NO_AFFINITY,
    AffinityTerm,
    PodAffinity,
    PodMatcher,
    TermError,
    WeightedAffinityTerm,
)
from core.objects.labels import NOTHING, Selector, SelectorError, parse_selector
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod

T = TypeVar("T")

_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
_MEMO_ENTRIES: Final = 8192
_MEMO_BYTES: Final = 16 * 1024  # a longer affinity is parsed each time, so that the memo is bounded (128 MiB)

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class DecodeError(ValueError):
    """JSON that is malformed, or a field that has the wrong type or is missing.

    `field` is the path of the field (`spec.nodeName`), empty when the text as a whole is at fault.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field
        self.message = message

    def under(self, prefix: str) -> "DecodeError":
        """Give the same error with the path of the enclosing field in front."""
        dot = "." if self.field and not self.field.startswith("[") else ""
        return DecodeError(f"{prefix}{dot}{self.field}", self.message)


class _Wire(msgspec.Struct, rename="camel", gc=False):
    """Base of the wire structs: camelCase names."""


class _Expression(_Wire):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _LabelSelector(_Wire):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None


class _Term(_Wire):
    label_selector: _LabelSelector | None = None
    namespaces: list[str] | None = None
    topology_key: str | None = None
    namespace_selector: _LabelSelector | None = None


class _WeightedTerm(_Wire):
    weight: Int32 | None = None
    pod_affinity_term: _Term | None = None


class _Terms(_Wire):
    required: list[_Term] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[_WeightedTerm] | None = msgspec.field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _Affinity(_Wire):
    pod_affinity: _Terms | None = None
    pod_anti_affinity: _Terms | None = None


class _Metadata(_Wire):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None


class _PodSpec(_Wire):
    node_name: str | None = None
    affinity: msgspec.Raw = msgspec.Raw(b"null")


class _PodStatus(_Wire):
    phase: str | None = None


class _Pod(_Wire):
    kind: str | None = None
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None
    status: _PodStatus | None = None


class _Object(_Wire):
    kind: str | None = None
    metadata: _Metadata | None = None


_pod_decoder = msgspec.json.Decoder(_Pod)
_object_decoder = msgspec.json.Decoder(_Object)
_affinity_decoder = msgspec.json.Decoder(_Affinity)
_EMPTY_METADATA: Final = _Metadata()
_EMPTY_SPEC: Final = _PodSpec()


def decode_pod(raw: bytes | msgspec.Raw) -> Pod:
    """Decode a v1.Pod. Without a uid (a hand-written manifest) NAMESPACE/NAME identifies it.

    Broken affinity terms do not raise: they are in `Pod.affinity.errors`, for the caller to refuse or to tolerate.
    Raises DecodeError.
    """
    wire = decoding(_pod_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    name = _checked_name("Pod", wire.kind, metadata)
    spec = wire.spec or _EMPTY_SPEC
    namespace = metadata.namespace or "default"
    return Pod(
        uid=metadata.uid or f"{namespace}/{name}",
        namespace=namespace,
        name=name,
        labels=metadata.labels or {},
        node_name=spec.node_name or "",
        terminal=wire.status is not None and wire.status.phase in _TERMINAL_PHASES,
        affinity=_affinity(namespace, bytes(spec.affinity)),
    )


def decode_node(raw: bytes | msgspec.Raw) -> Node:
    """Decode a v1.Node. Raises DecodeError."""
    wire = decoding(_object_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    return Node(_checked_name("Node", wire.kind, metadata), metadata.labels or {})


def decode_namespace(raw: bytes | msgspec.Raw) -> Namespace:
    """Decode a v1.Namespace. Raises DecodeError."""
    wire = decoding(_object_decoder.decode, raw)
    metadata = wire.metadata or _EMPTY_METADATA
    return Namespace(_checked_name("Namespace", wire.kind, metadata), metadata.labels or {})


def decoding(decode: Callable[[bytes | msgspec.Raw], T], raw: bytes | msgspec.Raw) -> T:
    """Run a msgspec decoder and turn what it raises into a DecodeError that names the field."""
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise DecodeError(_field(path), _lower_first(message.replace("`", ""))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(
            "", f"malformed JSON: {_lower_first(str(error).removeprefix('JSON is malformed: '))}"
        ) from None
    except RecursionError:
        raise DecodeError("", "malformed JSON: nested too deeply") from None


def _field(path: str) -> str:
    """`$.spec.nodeName` (msgspec's path, in backticks) -> spec.nodeName."""
    return re.sub(r"^\$\.?", "", path.strip("`").removeprefix("key in ").strip("`"))


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _checked_name(kind: str, found: str | None, metadata: _Metadata) -> str:
    if found and found != kind:
        raise DecodeError("kind", f"expected {kind}, got {found}")
    name = metadata.name or metadata.generate_name
    if not name:
        raise DecodeError("metadata.name", "required")
    return name


def _affinity(namespace: str, raw: bytes) -> PodAffinity:
    if raw == b"null":
        return NO_AFFINITY
    # The pods of one controller carry the same bytes: parsing once also makes them share one value.
    return _memoised_affinity(namespace, raw) if len(raw) <= _MEMO_BYTES else _parse_affinity(namespace, raw)


@lru_cache(maxsize=_MEMO_ENTRIES)
def _memoised_affinity(namespace: str, raw: bytes) -> PodAffinity:
    return _parse_affinity(namespace, raw)


def _parse_affinity(namespace: str, raw: bytes) -> PodAffinity:
    try:
        wire = decoding(_affinity_decoder.decode, raw)
    except DecodeError as error:
        raise error.under("spec.affinity") from None
    errors: list[TermError] = []

    def parsed(group: str, path: str, parse: Callable[[], list[T]]) -> tuple[T, ...]:
        try:
            return tuple(parse())
        except SelectorError as error:
            errors.append(TermError(group, f"{path}{error.field}", str(error)))
            return ()

    attract, repel = wire.pod_affinity or _Terms(), wire.pod_anti_affinity or _Terms()
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    affinity = PodAffinity(
        required_affinity=parsed(
            "requiredAffinityTerms", f"podAffinity.{required}", lambda: _required(namespace, attract)
        ),
        required_anti_affinity=parsed(
            "requiredAntiAffinityTerms", f"podAntiAffinity.{required}", lambda: _required(namespace, repel)
        ),
        preferred_affinity=parsed(
            "preferredAffinityTerms", f"podAffinity.{preferred}", lambda: _preferred(namespace, attract)
        ),
        preferred_anti_affinity=parsed(
            "preferredAntiAffinityTerms", f"podAntiAffinity.{preferred}", lambda: _preferred(namespace, repel)
        ),
    )
    if errors:
        return msgspec.structs.replace(affinity, errors=tuple(errors))
    return NO_AFFINITY if affinity == NO_AFFINITY else affinity


def _required(namespace: str, terms: _Terms) -> list[AffinityTerm]:
    return [_term(namespace, f"[{index}]", term) for index, term in enumerate(terms.required or ())]


def _preferred(namespace: str, terms: _Terms) -> list[WeightedAffinityTerm]:
    return [
        WeightedAffinityTerm(
            _term(namespace, f"[{index}].podAffinityTerm", weighted.pod_affinity_term or _Term()),
            weighted.weight or 0,
        )
        for index, weighted in enumerate(terms.preferred or ())
    ]


def _term(namespace: str, path: str, term: _Term) -> AffinityTerm:
    """Upstream newAffinityTerm: the term's own namespaces, or the pod's when it names none at all."""
    selector = _selector(f"{path}.labelSelector", term.label_selector)
    namespace_selector = _selector(f"{path}.namespaceSelector", term.namespace_selector)
    namespaces = term.namespaces or []
    if not namespaces and term.namespace_selector is None:
        namespaces = [namespace]
    matcher = PodMatcher(frozenset(namespaces), namespace_selector, selector)
    return AffinityTerm(matcher, term.topology_key or "")


def _selector(path: str, selector: _LabelSelector | None) -> Selector:
    if selector is None:
        return NOTHING
    expressions = [
        (expression.key or "", expression.operator or "", expression.values or ())
        for expression in selector.match_expressions or ()
    ]
    try:
        return parse_selector(selector.match_labels or {}, expressions)
    except SelectorError as error:
        raise SelectorError(f"{path}.{error.field}", str(error)) from None
