"""Checks that kube-scheduler would accept a response, without knowing which nodes fit.

In every response, the number of nodes is checked, and that the passed nodes are in the request. The failed nodes, and
whole Node objects byte for byte, are checked only if `wholly` is true, because this takes longer than the response.
"""

from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from tests.load.questions import Nodes

MAX_SCORE: Final = 100
_MAX_LISTED: Final = 200  # characters of an unreadable response


class WrongResponseError(Exception):
    """A response that kube-scheduler would reject, or that would lose a node."""


class _Metadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _Metadata


class _NodeList(msgspec.Struct):
    items: list[_Node]


class _RawNodeList(msgspec.Struct):
    items: list[msgspec.Raw]


class _FilterResult(msgspec.Struct):
    """ExtenderFilterResult. Go writes every field, with null for an empty one."""

    nodes: _NodeList | None = msgspec.field(name="Nodes")
    node_names: list[str] | None = msgspec.field(name="NodeNames")
    failed: dict[str, str] | None = msgspec.field(name="FailedNodes")
    unresolvable: dict[str, str] | None = msgspec.field(name="FailedAndUnresolvableNodes")
    error: str = msgspec.field(name="Error")


class _RawResult(msgspec.Struct):
    nodes: _RawNodeList = msgspec.field(name="Nodes")


class _HostPriority(msgspec.Struct, gc=False):
    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


_decode_result: Final = msgspec.json.Decoder(_FilterResult).decode
_decode_raw_result: Final = msgspec.json.Decoder(_RawResult).decode
_decode_list: Final = msgspec.json.Decoder(list[_HostPriority]).decode
_decode_node: Final = msgspec.json.Decoder(_Node).decode


def check_status(status: int, body: bytes) -> None:
    """Raise WrongAnswerError for any status except 200, because kube-scheduler discards the body of other responses."""
    if status != HTTPStatus.OK:
        raise WrongResponseError(f"HTTP {status}: {_rendered(body)}")


def check_shed(verb: str, body: bytes) -> None:
    """Raise WrongAnswerError if the response to a shed request does not report the shedding, or has scores."""
    try:
        if verb == "filter":
            ok = _decode_result(body).error.startswith("shed: ")
        else:
            ok = not any(each.score for each in _decode_list(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        ok = False
    if not ok:
        raise WrongResponseError(f"shed, and then: {_rendered(body)}")


def passed_nodes(body: bytes, requested: Nodes, *, wholly: bool) -> list[str]:
    """Return the names of the nodes that passed `filter`, in the order of the response. Raises WrongAnswerError."""
    try:
        result = _decode_result(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongResponseError(f"no ExtenderFilterResult: {error}: {_rendered(body)}") from None
    if result.error:
        raise WrongResponseError(f"Error: {result.error[:_MAX_LISTED]}")
    passed = _passed(result, requested)
    named = [*passed, *(result.failed or ()), *(result.unresolvable or ())]
    if wholly or len(named) != len(requested.pieces) or not all(map(requested.pieces.__contains__, passed)):
        _check_names(named, requested.pieces.keys())
    if wholly and result.nodes is not None:
        _check_objects(body, requested.pieces)
    return passed


def check_scores(body: bytes, requested: Sequence[str], *, wholly: bool) -> None:
    """Raise WrongAnswerError unless a response of `prioritize` has one score of 0..100 for each requested node."""
    try:
        priorities = _decode_list(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WrongResponseError(f"no HostPriorityList: {error}: {_rendered(body)}") from None
    scores = [each.score for each in priorities]
    if wholly or len(scores) != len(requested):
        _check_names([each.host for each in priorities], set(requested))
    if not all(0 <= score <= MAX_SCORE for score in (min(scores), max(scores))):
        raise WrongResponseError(f"scores of {min(scores)}..{max(scores)}, not 0..{MAX_SCORE}")


def _passed(result: _FilterResult, requested: Nodes) -> list[str]:
    """Return the names that passed. They must have the form of the request."""
    if requested.form == "NodeNames":
        if result.node_names is None:
            raise WrongResponseError("NodeNames: null, though names were asked about")
        return result.node_names
    if result.nodes is None:
        raise WrongResponseError("Nodes: null, though objects were asked about")
    return [node.metadata.name for node in result.nodes.items]


def _check_names(named: Collection[str], requested: Collection[str]) -> None:
    reported = set(named)
    wrong = {
        "leaves out": sorted(set(requested) - reported),
        "names, without being asked,": sorted(reported - set(requested)),
    }
    for what, names in wrong.items():
        if names:
            raise WrongResponseError(f"{what} {len(names)} of {len(requested)} nodes, such as {names[0]}")
    if len(named) != len(reported):
        raise WrongResponseError(f"names {len(named) - len(reported)} of {len(requested)} nodes twice")


def _check_objects(body: bytes, requested: Mapping[str, bytes]) -> None:
    for item in _decode_raw_result(body).nodes.items:
        name = _decode_node(item).metadata.name
        if bytes(item) != requested[name]:
            raise WrongResponseError(f"gives back another object for {name}")


def _rendered(body: bytes) -> str:
    return body[:_MAX_LISTED].decode(errors="replace")
