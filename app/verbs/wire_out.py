"""ExtenderFilterResult and HostPriorityList: the responses to kube-scheduler, as bytes."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.verbs.wire_in import ABSENT, NodeList
from core.framework.interface import Code, Status, Verdicts, reasons_text
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.node_info import NameTexts, NodeBatch
from core.mirror.topology import Int64Array

_MAX_ERROR_LENGTH: Final = 8192  # characters; a message may quote the request
_MAX_REASON_LENGTH: Final = 1024
"""Characters of the reason for a rejected node. The response has it once for each node, and it may quote a name of any
length. With the name of a claim of 30 KB, the response for 5,000 nodes had 150 MB."""


def error_json(message: str) -> bytes:
    """Return a message as JSON, cut to the length of a log line."""
    return msgspec.json.encode(message[:_MAX_ERROR_LENGTH])


def reason_json(message: str) -> bytes:
    """Return the reason for a rejected node as JSON, cut so that a response can have it once for each node."""
    return msgspec.json.encode(message[:_MAX_REASON_LENGTH])


# Makes text for thousands of nodes without a Python loop over the nodes.

Piece: TypeAlias = bytes | NDArray[np.bytes_ | np.object_]
"""One value for every node, or an array with a value for each. An array is padded with NUL, which no JSON text has, or
has bytes objects if it would be mostly padding."""

_FEW: Final = 3
"""Up to this number of NULs a node, `replace`, at 12 ns each, removes them faster than a mask over the whole text."""


def rows(count: int, *pieces: Piece) -> bytearray | bytes:
    """Return the joined pieces of the first node, then of the second, and so on, without padding.

    5,000 objects `{"Host":"NAME","Score":7}` take 0.04 ms if the names have one length, and 0.15 ms otherwise. With
    names in a list of bytes they take 0.2 ms.
    """
    if not count:
        return b""
    blanks = []  # a loop, because a generator would take longer than most rows of a small request
    for piece in pieces:
        if isinstance(piece, bytes):
            blanks.append(piece)
        elif piece.dtype.hasobject:
            return _joined(count, pieces)
        else:
            blanks.append(bytes(piece.itemsize))
    row = b"".join(blanks)
    text = bytearray(row) * count
    offset = 0
    for piece in pieces:
        if isinstance(piece, bytes):
            offset += len(piece)
        else:
            column = np.ndarray((count,), piece.dtype, text, offset, (len(row),))
            column[:] = piece
            offset += piece.itemsize
    return _without_padding(text, count)


def _joined(count: int, pieces: Sequence[Piece]) -> bytes:
    """Return the result of `rows`. Time and memory depend on the bytes of the pieces, not on the longest piece."""
    columns: list[Iterable[bytes]] = [
        repeat(piece, count) if isinstance(piece, bytes) else piece.tolist() for piece in pieces
    ]
    return b"".join(chain.from_iterable(zip(*columns, strict=True)))


def _without_padding(text: bytearray, count: int) -> bytearray | bytes:
    if 0 not in text:
        return text
    characters = np.frombuffer(text, np.uint8)
    is_padding = characters == 0
    few = np.count_nonzero(is_padding) <= _FEW * count
    return text.replace(b"\0", b"") if few else characters[~is_padding].tobytes()


class FailedNodes(NamedTuple):
    """Nodes that did not pass, `"NAME":"message"`, as in an ExtenderFilterResult."""

    resolvable: memoryview
    unresolvable: memoryview


_MAX_TEXTS: Final = 256
_SHORT: Final = 512
"""Characters of the reasons whose text is kept. A reason may quote a request, and be as long as a pod."""
NONE_FAILED: Final = FailedNodes(memoryview(b""), memoryview(b""))


def names_text(names: NameTexts) -> bytes:
    """Return names as a JSON array without its brackets."""
    return bytes(memoryview(rows(len(names), names, b","))[:-1])


def failed_nodes(names: NameTexts, verdicts: Verdicts) -> FailedNodes:
    """Return the nodes of the request that failed, with their reasons."""
    texts: dict[bool, list[bytes | bytearray]] = {True: [], False: []}
    for code in verdicts.found():
        if not code:  # success
            continue
        status = verdicts.statuses[code]
        failing = names.take((verdicts.codes == code).nonzero()[0])
        texts[status.code is not Code.UNSCHEDULABLE].append(rows(len(failing), failing, _behind_name(status)))
    return FailedNodes(memoryview(b"".join(texts[False]))[:-1], memoryview(b"".join(texts[True]))[:-1])


def _behind_name(status: Status) -> bytes:
    """Return the text behind the name of a node that failed. The statuses of a class are the same at each request."""
    return _memoized_text(status) if sum(map(len, status.reasons)) <= _SHORT else _text(status)


def _text(status: Status) -> bytes:
    return b":" + reason_json(status.message) + b","


_memoized_text: Final = lru_cache(_MAX_TEXTS)(_text)


def result_of_names(passing: bytes, failed: FailedNodes) -> bytes:
    """Return an ExtenderFilterResult that passes on names. `passing` has the form of `names_text`."""
    return _filter_result((b'null,"NodeNames":[', passing, b"]"), failed)


def result_of_objects(node_list: NodeList, passed: Iterable[int], failed: FailedNodes) -> bytes:
    """Return an ExtenderFilterResult that passes on node objects, byte for byte. `passed` has their positions."""
    return _filter_result((*_node_list_pieces(node_list, passed), b',"NodeNames":null'), failed)


def filter_error(message: str) -> bytes:
    """Return an ExtenderFilterResult that fails the scheduling attempt with a message."""
    return (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":'
        + error_json(message)
        + b"}"
    )


class HostPriorities:
    """Makes HostPriorityLists whose scores are spread over 0..max_score."""

    def __init__(self, max_score: int) -> None:
        texts = [b"%d" % (score * max_score // MAX_NODE_SCORE) for score in range(MAX_NODE_SCORE + 1)]
        # Score -> its text. All scores of a response have the width of the widest, padded with spaces, which JSON
        # allows. Scores without padding would cost more than the rest of the response.
        self._texts: list[NameTexts] = [
            np.array([text.rjust(len(widest)) for text in texts], f"S{len(widest)}") for widest in texts
        ]

    def of(self, batch: NodeBatch, scores: Int64Array) -> bytes:
        """Return the HostPriorityList of a batch, in its order, with the scores 0..MAX_NODE_SCORE of its nodes."""
        texts = self._texts[scores.max(initial=0)].take(scores)
        text = rows(len(batch), b'{"Host":', batch.name_json(), b',"Score":', texts, b"},")
        return b"".join((b"[", memoryview(text)[:-1], b"]"))


def neutral_priorities(names: Sequence[str]) -> bytes:
    """Return a HostPriorityList of zeros."""
    return msgspec.json.encode([{"Host": name, "Score": 0} for name in names])


def prioritize_error(message: str) -> bytes:
    """Return the response in place of a HostPriorityList if the nodes of the request cannot be read."""
    return b'{"Error":' + error_json(message) + b"}"


def _filter_result(fitting: Iterable[bytes | msgspec.Raw], failed: FailedNodes) -> bytes:
    return b"".join(
        (
            b'{"Nodes":',
            *fitting,
            b',"FailedNodes":{',
            failed.resolvable,
            b'},"FailedAndUnresolvableNodes":{',
            failed.unresolvable,
            b'},"Error":""}',
        )
    )


def _node_list_pieces(node_list: NodeList, passed: Iterable[int]) -> Iterator[bytes | msgspec.Raw]:
    """Yield the NodeList of the nodes passed on, in pieces. Each further copy of 32 MB would cost 10 ms."""
    envelope = {
        b"kind": node_list.kind,
        b"apiVersion": node_list.api_version,
        b"metadata": node_list.metadata,
    }
    yield b"{"
    for key, value in envelope.items():
        if value != ABSENT:
            yield b'"%s":%s,' % (key, bytes(value))
    yield b'"items":['
    items = node_list.items or []
    separator = b""
    for position in passed:
        yield separator
        yield items[position]
        separator = b","
    yield b"]}"


# The responses to kube-scheduler for a decision: one node, or none that fits.
#
# The scheduler takes a single node without scoring (schedule_one.go, schedulePod). From a response with `Nodes` alone
# it reads only the names, whether or not they were in its request (extender.go, Filter). For its message it counts
# reasons by node (framework/types.go, FitError). So 5,000 nodes would need 5,000 entries: 300 KB for each attempt of
# each pod that fits nowhere. The scheduler does not check the names in FailedNodes, so one entry is enough for all
# nodes.

MAX_NODES_SINGLY: Final = 100
"""Up to this number of nodes each node has its own reason, so that the scheduler's message is the in-tree one."""


def any_node(name: bytes) -> bytes:
    """Return an ExtenderFilterResult with a node that the request may not name. `name` is the JSON of its name."""
    return (
        b'{"Nodes":{"metadata":{},"items":[{"metadata":{"name":%s}}]},"NodeNames":null,'
        b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}' % name
    )


def reasons(
    requested: NodeBatch, judged: NodeBatch, verdicts: Verdicts, nominated: str = "", *, all_resolvable: bool = True
) -> FailedNodes:
    """Return why a pod fits on none of the judged nodes: one entry per node, or one entry for all.

    One entry per node if these are the nodes of the request, because the scheduler counts by node.

    A single entry is for the pod's nominated node, if that was judged, and is resolvable if that node is.
    kube-scheduler treats a node without an entry as unresolvable. If that is the nominated node, kube-scheduler does
    not wait for the victims there, and clears the nomination (default_preemption.go, PodEligibleToPreemptOthers).

    With `all_resolvable` false, no other node is resolvable, and kube-scheduler tries no preemption. Without filters,
    preemption finds no victim, takes as long as the rest of the attempt, and adds a line for each node to the message.
    """
    position = judged.position(nominated) if nominated else -1
    if judged is requested and len(judged) <= MAX_NODES_SINGLY:
        return failed_nodes(judged.name_json(), verdicts if all_resolvable else _unresolvable_but(position, verdicts))
    if position >= 0:
        name = judged.name_json_at(position)
        resolvable = verdicts.status(position).code is Code.UNSCHEDULABLE
    else:
        name = requested.name_json_at(0)
        resolvable = all_resolvable and any(
            verdicts.statuses[code].code is Code.UNSCHEDULABLE for code in verdicts.found()
        )
    entry, nothing = _entry(name, reasons_text(verdicts)), memoryview(b"")
    return FailedNodes(entry, nothing) if resolvable else FailedNodes(nothing, entry)


def reason_of_all(requested: NodeBatch, reason: str) -> FailedNodes:
    """Return the one entry for all nodes, with a reason that no node causes and no preemption resolves."""
    return FailedNodes(memoryview(b""), _entry(requested.name_json_at(0), reason))


def _entry(name: bytes, reason: str) -> memoryview:
    """Return the one entry for all nodes, under the JSON of a node's name.

    kube-scheduler makes of it `0/5000 nodes are available: 1 decision of kindred: Insufficient cpu, node(s) were
    unschedulable.`
    """
    return memoryview(bytes(name) + b":" + reason_json(f"decision of kindred: {reason}"))


def _unresolvable_but(position: int, verdicts: Verdicts) -> Verdicts:
    """Return verdicts in which preemption helps at most on the node at `position`."""
    statuses = tuple(
        Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, status.reasons) if status.code is Code.UNSCHEDULABLE else status
        for status in verdicts.statuses
    )
    codes = verdicts.codes.astype(np.int64)
    if position >= 0:
        codes[position] = len(statuses)
        statuses += (verdicts.status(position),)
    return Verdicts(codes, statuses)
