"""Requests of people: a pod in one of several forms, some nodes or all, and suppositions.

The body has one of three forms: ExtenderArgs of kube-scheduler, a manifest of a pod or of an object with a pod
template, or an ExplainRequestBody.
"""

from collections.abc import Sequence
from math import inf
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.explain.made_claims import made_claims
from app.explain.made_objects import made_objects
from app.explain.pod_names import pod_query
from app.explain.stored_pod import Completion, Notes, Objects, complete, is_stored, member, no_objects
from app.explain.templates import AtHand, made_pod
from app.explain.valid_pod import note_unknown_fields, refuse_invalid, refuse_other_labels
from app.explain.workloads import names_of, one_workload, split
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
from app.objects.decode_devices import decode_resource_slice
from app.objects.decode_node import decode_node
from app.verbs.wire_in import decode_args, decode_incoming_pod
from core.events import Object
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.devices import ResourceSlice
from core.objects.node import Node
from core.objects.pod import Pod

MAX_CHANGES: Final = 1000
"""Limit of each list of suppositions. Each item costs some microseconds, in which no other request is served."""

MAX_MANIFESTS: Final = 2**20
"""Bytes of the manifests of pods in a request to a service: they take some tenths of a second to decode, in which no
other request is served. etcd takes objects of up to 1.5 MiB."""

_SLICE: Final = msgspec.Raw(b'"ResourceSlice"')

PodText: TypeAlias = str
"""[NAMESPACE/][TYPE/]NAME or uid of a known pod."""


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


class WhatIf(NamedTuple):
    """Suppositions, in this order: further nodes with their devices, fewer pods, further pods."""

    add_nodes: Sequence[Node | ResourceSlice] = ()
    remove: Sequence[PodText] = ()
    assume: Sequence[Placing] = ()


NOTHING: Final = WhatIf()


class Manifest(NamedTuple):
    """The pod of a manifest as the API server would store it, its JSON, and what was added."""

    pod: Pod
    json: bytes
    notes: Notes
    replaced: Sequence[Pod] = ()
    """Pods that its controller deletes before it makes the pod."""
    made: Sequence[Object] = ()
    """Claims that its controllers make for it, and objects of its file."""

    def completion(self, *, fits: bool) -> Completion:
        """Return what was added, and what is unknown and matters."""
        return Completion(self.notes.done, [*self.notes.unknown, *(() if fits else self.notes.of_priority)])


class ExplainRequest(NamedTuple):
    """A pod, decoded or by name, the names of the nodes (None: all), and the suppositions."""

    pod: Pod | PodText
    names: Sequence[str] | None = None
    what_if: WhatIf = NOTHING
    batch: NodeBatch | None = None
    """The nodes of ExtenderArgs, in place of names. May have node objects. Invalid after the next event."""
    manifest: "Manifest | None" = None
    """The pod as a manifest that was completed. None for a name, for ExtenderArgs, and for a pod that was stored."""


class PlacingBody(msgspec.Struct, forbid_unknown_fields=True):
    """A pod that is supposed to be on a node."""

    pod: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)  # a default that a schema need not show
    """[NAMESPACE/][TYPE/]NAME or uid of a known pod, or a manifest."""
    node: str = ""
    """The name of a known or supposed node."""


class ExplainRequestBody(msgspec.Struct, forbid_unknown_fields=True):
    """A request in Kindred's own form. ExtenderArgs and manifests alone are requests, too."""

    pod: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)
    """A known pod, or a manifest of a pod or of an object with a pod template.

    A known pod is NAMESPACE/NAME, NAME if only one has it, a uid, or the pending pod of a workload that has waited
    longest: `deploy/web` or `shop/deploy/web`."""
    node_names: list[str] | None = None
    """The names of the nodes. Without it: all nodes."""
    add_nodes: list[msgspec.Raw] = []
    """Manifests of supposed nodes, and of the ResourceSlices that list their devices."""
    remove: list[str] = []
    """[NAMESPACE/][TYPE/]NAME or uid of pods that are supposed to be deleted."""
    assume: list[PlacingBody] = []
    """Pods that are supposed to be placed on nodes before this pod."""


_question_decoder: Final = msgspec.json.Decoder(ExplainRequestBody)
_text_decoder: Final = msgspec.json.Decoder(str)


def decode_explain_request(
    body: Body, mirror: ClusterMirror, objects: Objects = no_objects, *, most: float = inf
) -> ExplainRequest:
    """Decode a request in any of its forms. Raises DecodeError that names the field.

    `objects` are those that controllers and admission read, beside the mirror. `most` bytes may be manifests of pods.
    """
    refuse_too_many_elements(body)
    members = members_of(body)
    if EXTENDER_ARGS.fields_of(members).keys() & {"Nodes", "NodeNames"}:
        args = decode_args(body, mirror)
        return ExplainRequest(decode_incoming_pod(args.pod), batch=args.batch)
    if "kind" in members:
        _refuse_large(len(body), most)
        return _of_pod(decode_manifest(bytes(body), AtHand(mirror, objects)))
    query = decoding(_question_decoder.decode, body)
    _refuse_large(sum(memoryview(each).nbytes for each in (query.pod, *(each.pod for each in query.assume))), most)
    return _of_own_form(query, AtHand(mirror, objects))


def _refuse_large(size: int, most: float) -> None:
    if size > most:
        raise DecodeError("body", f"manifests of pods larger than {most} bytes")


def _of_own_form(query: ExplainRequestBody, at_hand: AtHand) -> ExplainRequest:
    for field, given in (("add_nodes", query.add_nodes), ("remove", query.remove), ("assume", query.assume)):
        if len(given) > MAX_CHANGES:
            raise DecodeError(field, f"at most {MAX_CHANGES}, got {len(given)}")
    what_if = WhatIf(
        tuple(_node(raw, f"add_nodes[{place}]") for place, raw in enumerate(query.add_nodes)),
        tuple(query.remove),
        tuple(_placing(each, f"assume[{place}]", at_hand) for place, each in enumerate(query.assume)),
    )
    pod = _pod(query.pod, "pod", at_hand)
    return _of_pod(pod)._replace(names=_checked_names(query.node_names), what_if=what_if)


def _of_pod(pod: Manifest | PodText) -> ExplainRequest:
    if isinstance(pod, str):
        return ExplainRequest(pod)
    return ExplainRequest(pod.pod, manifest=pod if any((*pod.notes, pod.replaced, pod.made)) else None)


def _pod(raw: msgspec.Raw, field: str, at_hand: AtHand) -> Manifest | PodText:
    """Decode a pod's name, or a manifest."""
    text = bytes(raw).lstrip()
    if not text or text == b"null":
        raise DecodeError(field, "required: a pod's name, a uid, or a manifest")
    if text.startswith(b'"'):
        name = decoding_field(_text_decoder.decode, raw, field)
        return _next_of(name, at_hand) or name
    with under(field):
        return decode_manifest(bytes(raw), at_hand)


def _next_of(text: PodText, at_hand: AtHand) -> Manifest | None:
    """Return the next pod of a workload that is at hand; None if a pod of it is pending."""
    query = pod_query(text)
    found = [each for each in at_hand.objects(query.kind) if query.key in names_of({**each})] if query.kind else []
    if len(found) != 1 or any(map(query.has, at_hand.mirror.pending)):  # last, as it visits every pending pod
        return None
    return decode_manifest(msgspec.json.encode(found[0]), at_hand)


def decode_manifest(raw: bytes, at_hand: AtHand, again: Pod | None = None) -> Manifest:
    """Decode a Pod, or the first pod that a controller would make of a template, as the API server would store it.

    With `again`, it is the one in the place of that pod. A List of one is that one. A pod that was stored already is
    unchanged.
    """
    notes, of_cluster = Notes([], [], []), at_hand.objects
    text = one_workload([raw])
    workload, companions = split(text)
    if companions:
        at_hand, text = at_hand.with_objects(companions), msgspec.json.encode(workload)
    made = made_pod(workload, at_hand, notes, again)
    others: Sequence[Object] = ()
    if made.path or not is_stored(made.pod):
        note_unknown_fields(workload, made.path, made.pod, notes)
        refuse_other_labels(workload, member(workload, *made.path.split(".")))
        with under(made.path):
            complete(made.pod, at_hand.mirror.rules, at_hand.objects, notes, of_cluster=of_cluster)
            refuse_invalid(member(made.pod, "spec"))
        others = [
            *made_objects(made.pod, made.claim_templates, companions, at_hand, notes),
            *made_claims(made.pod, companions, at_hand.mirror, at_hand.objects, notes),
        ]
        text = msgspec.json.encode(made.pod)
    with under(made.path):
        return Manifest(_without_prefix(msgspec.Raw(text)), text, notes, made.replaced, others)


def _without_prefix(raw: msgspec.Raw) -> Pod:
    try:
        return decode_incoming_pod(raw)
    except DecodeError as error:  # the field name is from ExtenderArgs, but the body has another form
        raise DecodeError(error.field.removeprefix("Pod").removeprefix("."), error.message) from None


def _node(raw: msgspec.Raw, field: str) -> Node | ResourceSlice:
    with under(field):
        is_slice = members_of(raw).get("kind") == _SLICE
        return decode_resource_slice(raw) if is_slice else decode_node(raw)


def _placing(given: PlacingBody, field: str, at_hand: AtHand) -> Placing:
    if not given.node:
        raise DecodeError(f"{field}.node", "required")
    pod = _pod(given.pod, f"{field}.pod", at_hand)
    return Placing(pod if isinstance(pod, str) else pod.pod, given.node)


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
