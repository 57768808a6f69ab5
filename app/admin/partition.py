"""The scheduler's partition of the nodes as one rule, which a setting sets, and routes show and replace."""

from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from app.admin.explain_routes import TOO_MUCH, body_of
from app.admin.responses import JsonResponse
from app.objects.decode import DecodeError, LabelSelector, decoding, selector_of
from app.objects.plugin_args import strict
from app.process.long_work import LongWork
from core.mirror.cluster import ClusterMirror
from core.objects.labels import EVERYTHING, Selector, SelectorError


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which nodes are in: the nodes that the selector matches, and the named nodes regardless of their labels.

    No selector matches every node. A name may belong to a future node.
    """

    selector: LabelSelector | None = None
    inside: list[str] = msgspec.field(default_factory=list, name="in")
    outside: list[str] = msgspec.field(default_factory=list, name="out")


_decoder: Final = msgspec.json.Decoder(strict(Rule))


def decode_rule(text: bytes | str) -> Rule:
    """Read a rule from JSON. Raises DecodeError, also for a rule that contradicts itself."""
    rule = decoding(_decoder.decode, text.encode() if isinstance(text, str) else text)
    _checked(rule)
    return rule


class NodePartition:
    """A mirror's partition by one rule. No other code may change the partition. At first every node is in."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.rule = Rule()
        self._mirror = mirror

    def replace(self, rule: Rule) -> None:
        """Replace the rule, at once for all requests. Raises DecodeError for a rule that contradicts itself."""
        selector = _checked(rule)
        for name in {*self.rule.inside, *self.rule.outside} - {*rule.inside, *rule.outside}:
            self._mirror.clear_node_partition(name)
        for name in rule.inside:
            self._mirror.set_node_in_partition(name)
        for name in rule.outside:
            self._mirror.set_node_out_of_partition(name)
        self._mirror.set_partition_selector(selector)
        self.rule = rule

    def count(self) -> tuple[int, int]:
        """Return how many known nodes are in, and how many are out."""
        slots = list(self._mirror.nodes.slots.values())
        inside = int(self._mirror.nodes.in_partition[slots].sum())
        return inside, len(slots) - inside


def _checked(rule: Rule) -> Selector:
    """Return the selector of a rule. Raises DecodeError for a rule that contradicts itself."""
    for field, names in (("in", rule.inside), ("out", rule.outside)):
        if "" in names:
            raise DecodeError(f"{field}[{names.index('')}]", "empty")
    inside = set(rule.inside)
    for index, name in enumerate(rule.outside):
        if name in inside:
            raise DecodeError(f"out[{index}]", f"{name} is in[{rule.inside.index(name)}], too")
    try:
        return selector_of("selector", rule.selector, absent=EVERYTHING)
    except SelectorError as error:
        raise DecodeError(error.field, str(error)) from None


_MAX_BODY_BYTES: Final = 4 * 1024 * 1024  # 5,000 nodes with the longest names are 1.3 MB


class Nodes(msgspec.Struct, frozen=True):
    """Numbers of known nodes."""

    inside: int = msgspec.field(name="in")
    outside: int = msgspec.field(name="out")


class PartitionState(msgspec.Struct, frozen=True):
    """The last rule, and its present effect on the nodes."""

    rule: Rule
    nodes: Nodes


def partition_router(partition: NodePartition, work: LongWork) -> APIRouter:
    """Return the routes that show and replace the partition's rule."""
    router = APIRouter()

    @router.get("/debug/partition")
    async def show() -> Response:
        return JsonResponse(_state(partition))

    @router.put("/debug/partition")
    async def put(request: Request) -> Response:
        try:
            body = await body_of(request, _MAX_BODY_BYTES)
        except DecodeError as error:
            raise HTTPException(TOO_MUCH, str(error)) from None
        try:
            async with work.uncut_turn():  # the rule changes for all nodes at once
                partition.replace(decode_rule(body))
        except DecodeError as error:
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
        return JsonResponse(_state(partition))

    return router


def _state(partition: NodePartition) -> PartitionState:
    return PartitionState(partition.rule, Nodes(*partition.count()))
