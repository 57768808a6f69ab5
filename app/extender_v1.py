"""The wire of kube-scheduler's extender v1: ExtenderArgs in, ExtenderFilterResult and HostPriorityList out.

Source: k8s.io/kube-scheduler extender/v1/types.go. The Go structs have no JSON tags, so Go writes `NodeNames` and reads
keys in any case; we do the same. Requests and answers are handled as bytes: a model of every Node would cost many times
the decision. Answers to bad requests are HTTP 200 with an `Error`, because kube-scheduler throws away the body of any
other status.
"""

import codecs
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from app.limits import FEW_BYTES, MAX_NODES, error_json, refuse_too_many_elements
from app.logs import one_line
from app.nominations import Nominations
from app.recent_pods import RecentPods
from app.refused_nodes import RefusedNodes
from app.watch.decode import DecodeError, decoding
from app.watch.decode_node import decode_node
from app.watch.decode_pod import decode_pod
from core.equivalence.cache import EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import MAX_NODE_SCORE, Verdicts
from core.framework.status import Code
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.node_sample import ALL, NodeSample
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import filter_nodes, score_nodes

log = logging.getLogger(__name__)

_MAX_POD_BYTES: Final = 4 * 1024 * 1024  # etcd takes objects of up to 1.5 MiB

_NULL: Final = msgspec.Raw(b"null")
_ABSENT: Final = msgspec.Raw(b"")
_FIELDS: Final = {"pod": "Pod", "nodes": "Nodes", "nodenames": "NodeNames"}


class _Args(msgspec.Struct, forbid_unknown_fields=True):
    """ExtenderArgs in Go's spelling; the pod and each node stay raw until something of them is needed."""

    pod: msgspec.Raw = msgspec.field(default=_NULL, name="Pod")
    nodes: msgspec.Raw = msgspec.field(default=_NULL, name="Nodes")
    node_names: list[str] | None = msgspec.field(default=None, name="NodeNames")


class _NodeList(msgspec.Struct, rename="camel"):
    kind: msgspec.Raw = _ABSENT
    api_version: msgspec.Raw = _ABSENT
    metadata: msgspec.Raw = _ABSENT
    items: list[msgspec.Raw] | None = None


class _NameOnly(msgspec.Struct):
    name: str | None = None


class _NodeName(msgspec.Struct):
    metadata: _NameOnly | None = None


_args_decoder: Final = msgspec.json.Decoder(_Args)
_raw_fields_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_names_decoder: Final = msgspec.json.Decoder(list[str] | None)
_node_list_decoder: Final = msgspec.json.Decoder(_NodeList)
_node_name_decoder: Final = msgspec.json.Decoder(_NodeName)


class ExtenderArgs:
    """The nodes of one request in its order; `items` are the Node objects byte for byte when it came with objects."""

    __slots__ = ("items", "names", "node_list", "pod")

    def __init__(self, pod: msgspec.Raw, names: list[str], node_list: _NodeList | None) -> None:
        self.pod = pod
        self.names = names
        self.node_list = node_list
        self.items: list[msgspec.Raw] = (node_list.items or []) if node_list is not None else []


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The body of a response, and where its answers are from: see Evaluation.source; empty for an error.

    `doubtful` is one that may be another in a moment: see Nominations.
    """

    body: bytes
    source: str = ""
    doubtful: bool = False


class Extender:
    """The verbs, from request bytes to response bytes. They never raise for what a request holds."""

    def __init__(  # noqa: PLR0913  # what the verbs need
        self,
        profile: Profile,
        mirror: ClusterMirror,
        cache: EquivalenceCache | None = None,
        max_score: int = MAX_NODE_SCORE,
        *,
        refused_nodes: RefusedNodes | None = None,
        nominations: Nominations | None = None,
        percentage_of_nodes_to_score: int = ALL,
    ) -> None:
        """Answer from the mirror; `prioritize` spreads its scores over 0..max_score instead of 0..100.

        `refused_nodes` is told of what `filter` has found, where somebody wants to know; `nominations` doubt it, where
        the mirror follows a cluster. `filter` passes on a sample of the nodes that fit; see NodeSample.
        """
        self._profile = profile
        self._mirror = mirror
        self._cache = cache
        self._refused_nodes = refused_nodes
        self._nominations = nominations
        self._sample = NodeSample(percentage_of_nodes_to_score)
        self.recent_pods = RecentPods()
        """The pods of the questions, for whoever has to know one by its uid."""
        # What stands between one name and the next in a HostPriorityList, by score: `,"Score":7},{"Host":`.
        self._between_hosts = np.array(
            [b',"Score":%d},{"Host":' % (score * max_score // MAX_NODE_SCORE) for score in range(MAX_NODE_SCORE + 1)],
            np.object_,
        )

    def filter(self, body: bytes, *, cached: bool = True) -> Answer:
        """Answer ExtenderArgs with an ExtenderFilterResult; `Error` names the field of a bad request.

        With `cached` false, the equivalence cache is neither asked nor told.
        """
        try:
            args, pod, batch = self.question(body)
        except DecodeError as error:
            log.warning("filter: %s", one_line(str(error)))
            return Answer(filter_error(str(error)))
        evaluation = self._evaluation(pod, cached=cached)
        verdicts = filter_nodes(self._profile, evaluation, batch)
        fitting = np.flatnonzero(verdicts.codes == 0)
        passed = self._sample.of(self._profile, evaluation, batch, fitting, len(self._mirror.nodes.slots))
        source = self._finish(evaluation, cached=cached)
        doubt = self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None
        if doubt is not None and not doubt.told:
            return Answer(filter_error(doubt.reason), source, doubtful=True)
        if self._refused_nodes is not None:
            self._refused_nodes.note(pod, batch, verdicts)
        return Answer(_filter_result(args, batch, verdicts, passed), source, doubtful=doubt is not None)

    def prioritize(self, body: bytes, *, cached: bool = True) -> Answer:
        """Answer ExtenderArgs with a HostPriorityList for exactly the nodes asked, in their order.

        A bad request is answered with 0 for every node where its nodes can be read, else with {"Error": ...}, which the
        scheduler logs and ignores.
        """
        try:
            _, pod, batch = self.question(body)
        except DecodeError as error:
            log.warning("prioritize: %s", one_line(str(error)))
            return Answer(_neutral_list(body) or prioritize_error(str(error)))
        evaluation = self._evaluation(pod, cached=cached)
        scores = self._host_priority_list(batch, score_nodes(self._profile, evaluation, batch))
        return Answer(scores, self._finish(evaluation, cached=cached))

    def question(self, body: bytes) -> tuple[ExtenderArgs, Pod, NodeBatch]:
        """Decode what both verbs are asked. Raises DecodeError, which names the field."""
        args = decode_args(body)
        pod = decode_incoming_pod(args.pod)
        self.recent_pods.add(pod, len(bytes(args.pod)))
        return args, pod, self._batch(args)

    def _evaluation(self, pod: Pod, *, cached: bool) -> Evaluation:
        if self._cache is None or not cached:
            return FreshEvaluation(self._mirror, pod)
        return self._cache.evaluation(pod)

    def _finish(self, evaluation: Evaluation, *, cached: bool) -> str:
        if self._cache is None:
            return ""
        return self._cache.finish(evaluation) if cached else "off"

    def _batch(self, args: ExtenderArgs) -> NodeBatch:
        known = self._mirror.nodes.slots
        objects = {}
        for position, item in enumerate(args.items):
            if args.names[position] not in known:
                with _under(f"Nodes.items[{position}]"):
                    objects[position] = decode_node(item)
        batch = self._mirror.batch(args.names, objects)
        repeated = batch.repeated()
        if repeated >= 0:
            name = args.names[repeated]
            field = f"{_nodes_field(args)}[{repeated}]"
            raise DecodeError(field, f"{name} stands at position {args.names.index(name)} already")
        return batch

    def _host_priority_list(self, batch: NodeBatch, scores: Int64Array) -> bytes:
        pieces = np.empty(2 * len(batch), np.object_)
        pieces[0::2] = batch.name_json()
        pieces[1::2] = self._between_hosts[scores]
        text = b"".join(pieces.tolist())
        return b'[{"Host":' + text.removesuffix(b',{"Host":') + b"]"


def decode_args(body: bytes) -> ExtenderArgs:
    """Decode ExtenderArgs with keys in any case. Raises DecodeError, which names the field."""
    args = _spelled_as_in_go(body)
    if args.node_names is not None and args.nodes != _NULL:
        raise DecodeError("Nodes, NodeNames", "both given; kube-scheduler sends one, by nodeCacheCapable")
    if args.nodes != _NULL:
        with _under("Nodes"):
            if not body.isascii():  # 30 GB/s, and the API server's nodes hardly ever go further
                _refuse_other_than_utf_8(bytes(args.nodes))
            node_list = decoding(_node_list_decoder.decode, args.nodes)
            decoded = ExtenderArgs(args.pod, _node_names(node_list), node_list)
    elif args.node_names is not None:
        decoded = ExtenderArgs(args.pod, args.node_names, None)
    else:
        raise DecodeError("NodeNames", "required (or Nodes, where nodeCacheCapable is false)")
    if not decoded.names:
        raise DecodeError(_nodes_field(decoded), "is empty; there is no node to choose from")
    if len(decoded.names) > MAX_NODES:
        raise DecodeError(_nodes_field(decoded), f"more than {MAX_NODES} nodes")
    return decoded


def decode_incoming_pod(raw: msgspec.Raw) -> Pod:
    """Decode the pod of a request, whose every affinity term must be valid. Raises DecodeError."""
    if raw == _NULL:
        raise DecodeError("Pod", "required")
    if len(bytes(raw)) > _MAX_POD_BYTES:
        raise DecodeError("Pod", f"larger than {_MAX_POD_BYTES} bytes")
    with _under("Pod"):
        pod = decode_pod(raw)
    for error in pod.affinity.errors:
        raise DecodeError(f"Pod.spec.affinity.{error.field}", error.message)
    return pod


def filter_error(message: str) -> bytes:
    """Return an ExtenderFilterResult that fails the scheduling attempt with a message."""
    return (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":'
        + error_json(message)
        + b"}"
    )


def prioritize_error(message: str) -> bytes:
    """Return what takes the place of a HostPriorityList when not even a neutral one can be made."""
    return b'{"Error":' + error_json(message) + b"}"


def _spelled_as_in_go(body: bytes) -> _Args:
    refuse_too_many_elements(body)
    try:
        return _args_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass  # not what kube-scheduler writes: look again, field by field
    fields, unknown = _fields(body)
    for key in unknown:
        raise DecodeError(key, f"unknown field; ExtenderArgs has {', '.join(_FIELDS.values())}")
    return _Args(fields["Pod"], fields["Nodes"], _decoded_names(fields["NodeNames"]))


def _refuse_other_than_utf_8(raw: bytes) -> None:
    """Check what is given back as it came, or the whole answer could not be decoded: msgspec checks what it reads."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(raw), FEW_BYTES):  # in pieces, as text of 64 MiB may take 256
            decoder.decode(raw[start : start + FEW_BYTES], final=start + FEW_BYTES >= len(raw))
    except UnicodeDecodeError:
        raise DecodeError("", "malformed JSON: not UTF-8") from None


def _fields(body: bytes) -> tuple[dict[str, msgspec.Raw], list[str]]:
    """Return the fields of ExtenderArgs in Go's spelling, null where absent, and the keys that are none of them."""
    with _under("body"):
        found = decoding(_raw_fields_decoder.decode, body)
    fields = dict.fromkeys(_FIELDS.values(), _NULL)
    unknown = []
    for key, value in found.items():
        name = _FIELDS.get(key.lower())
        if name is None:
            unknown.append(key)
        else:
            fields[name] = value
    return fields, unknown


def _decoded_names(raw: msgspec.Raw) -> list[str] | None:
    with _under("NodeNames"):
        names: list[str] | None = decoding(_names_decoder.decode, raw)
    return names


def _node_names(node_list: _NodeList) -> list[str]:
    """Return the names of whole Node objects. Raises DecodeError, with the path inside the list."""
    if node_list.items is None:
        raise DecodeError("items", "required")
    names = []
    for position, item in enumerate(node_list.items):
        try:
            node = decoding(_node_name_decoder.decode, item)
        except DecodeError as error:
            raise error.under(f"items[{position}]") from None
        if node.metadata is None or not node.metadata.name:
            raise DecodeError(f"items[{position}].metadata.name", "required")
        names.append(node.metadata.name)
    return names


def _nodes_field(args: ExtenderArgs) -> str:
    return "NodeNames" if args.node_list is None else "Nodes.items"


@contextmanager
def _under(field: str) -> Iterator[None]:
    """Name the enclosing field in a DecodeError that is raised inside."""
    try:
        yield
    except DecodeError as error:
        raise error.under(field) from None


def _filter_result(args: ExtenderArgs, batch: NodeBatch, verdicts: Verdicts, passed: IntpArray) -> bytes:
    names = batch.name_json()
    failed: dict[bool, list[bytes]] = {True: [], False: []}  # unresolvable -> `"name":"message"`
    for code in np.unique(verdicts.codes[verdicts.codes != 0]).tolist():
        status = verdicts.statuses[code]
        message = b":" + msgspec.json.encode(status.message)
        unresolvable = status.code is not Code.UNSCHEDULABLE
        failed[unresolvable] += [name + message for name in names[verdicts.codes == code].tolist()]
    if args.node_list is None:
        fitting = [b'null,"NodeNames":[', b",".join(names[passed].tolist()), b"]"]
    else:
        fitting = [*_node_list_pieces(args.node_list, args.items, passed), b',"NodeNames":null']
    return b"".join(
        (
            b'{"Nodes":',
            *fitting,
            b',"FailedNodes":{',
            b",".join(failed[False]),
            b'},"FailedAndUnresolvableNodes":{',
            b",".join(failed[True]),
            b'},"Error":""}',
        )
    )


def _node_list_pieces(
    node_list: _NodeList, items: list[msgspec.Raw], passed: IntpArray
) -> Iterator[bytes | msgspec.Raw]:
    """Yield the NodeList of the nodes passed on, in pieces: 32 MB are to be joined once, each copy costs 30 ms."""
    envelope = {
        b"kind": node_list.kind,
        b"apiVersion": node_list.api_version,
        b"metadata": node_list.metadata,
    }
    yield b"{"
    for key, value in envelope.items():
        if value != _ABSENT:
            yield b'"%s":%s,' % (key, bytes(value))
    yield b'"items":['
    separator = b""
    for position in passed.tolist():
        yield separator
        yield items[position]
        separator = b","
    yield b"]}"


def _neutral_list(body: bytes) -> bytes:
    """Return a HostPriorityList of zeros for the nodes of a bad request; empty when they cannot be read."""
    try:
        refuse_too_many_elements(body)
        fields, _ = _fields(body)
        names = _decoded_names(fields["NodeNames"])
        if names is None:
            names = _node_names(decoding(_node_list_decoder.decode, fields["Nodes"]))
    except DecodeError:
        return b""
    if len(names) > MAX_NODES:
        return b""
    return msgspec.json.encode([{"Host": name, "Score": 0} for name in names])
