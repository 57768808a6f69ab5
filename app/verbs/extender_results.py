"""ExtenderFilterResult and HostPriorityList: the responses to kube-scheduler, as bytes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from app.objects.limits import error_json, reason_json
from app.verbs.extender_args import ABSENT, NodeList
from app.verbs.node_rows import rows
from core.framework.interface import MAX_NODE_SCORE, Verdicts
from core.framework.status import Code
from core.mirror.node_info import NameTexts, NodeBatch
from core.mirror.topology import Int64Array


class FailedNodes(NamedTuple):
    """Nodes that did not pass, `"NAME":"message"`, as in an ExtenderFilterResult."""

    resolvable: memoryview
    unresolvable: memoryview


NONE_FAILED: Final = FailedNodes(memoryview(b""), memoryview(b""))


def names_text(names: NameTexts) -> bytes:
    """Return names as a JSON array without its brackets."""
    return bytes(memoryview(rows(len(names), names, b","))[:-1])


def failed_nodes(names: NameTexts, verdicts: Verdicts) -> FailedNodes:
    """Return the nodes of the request that failed, with their reasons."""
    texts: dict[bool, list[bytes | bytearray]] = {True: [], False: []}
    for code in np.bincount(verdicts.codes).nonzero()[0].tolist():
        if not code:  # success
            continue
        status = verdicts.statuses[code]
        failing = names.take((verdicts.codes == code).nonzero()[0])
        message = b":" + reason_json(status.message) + b","
        texts[status.code is not Code.UNSCHEDULABLE].append(rows(len(failing), failing, message))
    resolvable, unresolvable = (memoryview(b"".join(texts[unresolvable]))[:-1] for unresolvable in (False, True))
    return FailedNodes(resolvable, unresolvable)


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
