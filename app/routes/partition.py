"""The scheduler's partition of the nodes, to be looked at and replaced while the service runs."""

from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from app.watch.decode import DecodeError, decoding
from core.mirror.cluster import ClusterMirror
from core.objects.labels import EVERYTHING, Selector, SelectorError, parse_selector

_MAX_BODY_BYTES: Final = 4 * 1024 * 1024  # 5,000 nodes with names of the greatest length are 1.3 MB


class Expression(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A requirement of a LabelSelector."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A v1 LabelSelector."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Expression] = []

    def parsed(self) -> Selector:
        """Return the selector. Raises SelectorError."""
        expressions = [(each.key, each.operator, each.values) for each in self.match_expressions]
        return parse_selector(self.match_labels, expressions)


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which nodes are in: those that the selector matches, and those named, whatever their labels are.

    No selector matches every node; a name may be that of a node to come.
    """

    selector: LabelSelector | None = None
    inside: list[str] = msgspec.field(default_factory=list, name="in")
    outside: list[str] = msgspec.field(default_factory=list, name="out")


class Nodes(msgspec.Struct, frozen=True):
    """Numbers of known nodes."""

    inside: int = msgspec.field(name="in")
    outside: int = msgspec.field(name="out")


class PartitionState(msgspec.Struct, frozen=True):
    """The rule that was put last, and what it makes of the nodes now."""

    rule: Rule
    nodes: Nodes


_decoder: Final = msgspec.json.Decoder(Rule)


def partition_router(mirror: ClusterMirror) -> APIRouter:
    """Return the routes that show and replace the partition's rule. Nobody else may change it meanwhile."""
    router = APIRouter()
    rule = Rule()

    @router.get("/debug/partition")
    async def show() -> Response:
        return _answer(mirror, rule)

    @router.put("/debug/partition")
    async def put(request: Request) -> Response:
        nonlocal rule
        try:
            wanted = decoding(_decoder.decode, await _body(request))
            selector = _checked(wanted)
        except DecodeError as error:
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        _replace(mirror, rule, wanted, selector)
        rule = wanted
        return _answer(mirror, rule)

    return router


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"body: larger than {_MAX_BODY_BYTES} bytes")
    return bytes(body)


def _checked(rule: Rule) -> Selector:
    """Return the selector of a rule that is free of contradictions. Raises DecodeError."""
    for field, names in (("in", rule.inside), ("out", rule.outside)):
        if "" in names:
            raise DecodeError(f"{field}[{names.index('')}]", "empty")
    inside = set(rule.inside)
    for index, name in enumerate(rule.outside):
        if name in inside:
            raise DecodeError(f"out[{index}]", f"{name} is in[{rule.inside.index(name)}], too")
    if rule.selector is None:
        return EVERYTHING
    try:
        return rule.selector.parsed()
    except SelectorError as error:
        raise DecodeError(f"selector.{error.field}", str(error)) from None


def _replace(mirror: ClusterMirror, before: Rule, rule: Rule, selector: Selector) -> None:
    """Change the mirror's partition from one rule to another, at once for all who ask."""
    for name in {*before.inside, *before.outside} - {*rule.inside, *rule.outside}:
        mirror.clear_node_partition(name)
    for name in rule.inside:
        mirror.set_node_in_partition(name)
    for name in rule.outside:
        mirror.set_node_out_of_partition(name)
    mirror.set_partition_selector(selector)


def _answer(mirror: ClusterMirror, rule: Rule) -> Response:
    slots = list(mirror.nodes.slots.values())
    inside = int(mirror.nodes.in_partition[slots].sum())
    state = PartitionState(rule, Nodes(inside, len(slots) - inside))
    return Response(msgspec.json.encode(state), media_type="application/json")
