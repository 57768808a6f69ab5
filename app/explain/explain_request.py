"""Requests of people: a pod in one of several forms, some nodes or all, and suppositions.

The body has one of three forms: ExtenderArgs of kube-scheduler, a manifest of a pod or of an object with a pod
template, or an ExplainRequestBody.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from app.objects.decode import (
    EXTENDER_ARGS,
    MAX_NODES,
    NULL,
    Body,
    DecodeError,
    decoding,
    decoding_field,
    members_of,
    refuse_too_many_elements,
    under,
)
from app.objects.decode_node import decode_node
from app.verbs.wire_in import decode_args, decode_incoming_pod
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod

MAX_SUPPOSED: Final = 1000
"""Limit of each list of suppositions. Each item costs some microseconds, in which no other request is served."""

PodText: TypeAlias = str
"""NAMESPACE/NAME or uid of a known pod."""


class ExplainError(Exception):
    """An error in a request. `field` is the place of the error."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnknownError(ExplainError):
    """The request names an unknown object."""


class TooMuchWorkError(ExplainError):
    """The pod of the request takes more work than allowed."""


class ContradictionError(ExplainError):
    """A supposition contradicts the cluster, or another supposition."""


class Placing(NamedTuple):
    """A pod that is supposed to be on a node."""

    pod: Pod | PodText
    node: str


class Supposed(NamedTuple):
    """Suppositions, in this order: further nodes, fewer pods, further pods."""

    add_nodes: Sequence[Node] = ()
    remove: Sequence[PodText] = ()
    assume: Sequence[Placing] = ()


NOTHING: Final = Supposed()


class ExplainRequest(NamedTuple):
    """A pod, decoded or by name, the names of the nodes (None: all), and the suppositions."""

    pod: Pod | PodText
    names: Sequence[str] | None = None
    supposed: Supposed = NOTHING
    batch: NodeBatch | None = None
    """The nodes of ExtenderArgs, in place of names. May have node objects. Invalid after the next event."""


class PlacingBody(msgspec.Struct, forbid_unknown_fields=True):
    """A pod that is supposed to be on a node."""

    pod: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)  # a default that a schema need not show
    """NAMESPACE/NAME or uid of a known pod, or a manifest."""
    node: str = ""
    """The name of a known or supposed node."""


class ExplainRequestBody(msgspec.Struct, forbid_unknown_fields=True):
    """A request in Kindred's own form. ExtenderArgs and manifests alone are requests, too."""

    pod: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    """NAMESPACE/NAME or uid of a known pod, or a manifest of a pod or of an object with a pod template."""
    node_names: list[str] | None = None
    """The names of the nodes. Without it: all nodes."""
    add_nodes: list[msgspec.Raw] = []
    """Manifests of supposed nodes."""
    remove: list[str] = []
    """NAMESPACE/NAME or uid of pods that are supposed to be deleted."""
    assume: list[PlacingBody] = []
    """Pods that are supposed to be placed on nodes before this pod."""


class _Manifest(msgspec.Struct):
    kind: str | None = None
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


_question_decoder: Final = msgspec.json.Decoder(ExplainRequestBody)
_manifest_decoder: Final = msgspec.json.Decoder(_Manifest)
_text_decoder: Final = msgspec.json.Decoder(str)


def decode_explain_request(body: Body, mirror: ClusterMirror) -> ExplainRequest:
    """Decode a request in any of its forms. Raises DecodeError that names the field."""
    refuse_too_many_elements(body)
    members = members_of(body)
    if EXTENDER_ARGS.fields_of(members).keys() & {"Nodes", "NodeNames"}:
        args = decode_args(body, mirror)
        return ExplainRequest(decode_incoming_pod(args.pod), batch=args.batch)
    if "kind" in members:
        return ExplainRequest(_of_manifest(msgspec.Raw(body)))
    return _of_own_form(body)


def _of_own_form(body: Body) -> ExplainRequest:
    asked = decoding(_question_decoder.decode, body)
    for field, given in (("add_nodes", asked.add_nodes), ("remove", asked.remove), ("assume", asked.assume)):
        if len(given) > MAX_SUPPOSED:
            raise DecodeError(field, f"at most {MAX_SUPPOSED}, got {len(given)}")
    supposed = Supposed(
        tuple(_node(raw, f"add_nodes[{place}]") for place, raw in enumerate(asked.add_nodes)),
        tuple(asked.remove),
        tuple(_placing(each, f"assume[{place}]") for place, each in enumerate(asked.assume)),
    )
    return ExplainRequest(_pod(asked.pod, "pod"), _checked_names(asked.node_names), supposed)


def _pod(raw: msgspec.Raw, field: str) -> Pod | PodText:
    """Decode a pod's name, or a manifest."""
    text = bytes(raw).lstrip()
    if not text or text == b"null":
        raise DecodeError(field, "required: NAMESPACE/NAME, a uid, or a manifest")
    if text.startswith(b'"'):
        return decoding_field(_text_decoder.decode, raw, field)
    with under(field):
        return _of_manifest(raw)


def _of_manifest(raw: msgspec.Raw) -> Pod:
    """Decode a Pod, or the first pod that a controller would make of its template."""
    manifest = decoding(_manifest_decoder.decode, raw)
    if manifest.kind in {None, "Pod"}:
        return _without_prefix(raw)
    template, path = _template(manifest)
    metadata = {"namespace": "default", **_named(manifest), **(template.get("metadata") or {})}
    pod = {"kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
    with under(path):
        return _without_prefix(msgspec.Raw(msgspec.json.encode(pod)))


def _without_prefix(raw: msgspec.Raw) -> Pod:
    try:
        return decode_incoming_pod(raw)
    except DecodeError as error:  # the field name is from ExtenderArgs, but the body has another form
        raise DecodeError(error.field.removeprefix("Pod").removeprefix("."), error.message) from None


def _template(manifest: _Manifest) -> tuple[dict[str, Any], str]:
    spec = manifest.spec or {}
    path = "spec.template"
    if isinstance(spec.get("jobTemplate"), dict):
        inner = spec["jobTemplate"].get("spec")
        spec, path = inner if isinstance(inner, dict) else {}, "spec.jobTemplate.spec.template"
    template = spec.get("template")
    if not isinstance(template, dict):
        raise DecodeError("kind", f"expected Pod, or a kind that has a pod template, got {manifest.kind} without one")
    return template, path


def _named(manifest: _Manifest) -> dict[str, Any]:
    metadata = manifest.metadata or {}
    name = metadata.get("name") or metadata.get("generateName") or manifest.kind
    named = {"name": f"{name}-0"}
    return {**named, "namespace": metadata["namespace"]} if metadata.get("namespace") else named


def _node(raw: msgspec.Raw, field: str) -> Node:
    with under(field):
        return decode_node(raw)


def _placing(given: PlacingBody, field: str) -> Placing:
    if not given.node:
        raise DecodeError(f"{field}.node", "required")
    return Placing(_pod(given.pod, f"{field}.pod"), given.node)


def _checked_names(names: list[str] | None) -> list[str] | None:
    if names is None:
        return None
    if not names:
        raise DecodeError("node_names", "empty; omit it for all nodes")
    if len(names) > MAX_NODES:
        raise DecodeError("node_names", f"at most {MAX_NODES}, got {len(names)}")
    seen: dict[str, int] = {}
    for place, name in enumerate(names):
        if seen.setdefault(name, place) != place:
            raise DecodeError(f"node_names[{place}]", f"{name} is at position {seen[name]} already")
    return names
