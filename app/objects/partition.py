"""The rule of the setting `partition`: which nodes the scheduler may use."""

from typing import Final

import msgspec

from app.objects.decode import DecodeError, LabelSelector, decoding, selector_of
from app.objects.plugin_args import strict
from core.mirror.cluster import ClusterMirror
from core.objects.labels import EVERYTHING, SelectorError


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which nodes are in: the nodes that the selector matches, and the named nodes regardless of their labels.

    No selector matches every node. A name may belong to a future node.
    """

    selector: LabelSelector | None = None
    inside: list[str] = msgspec.field(default_factory=list, name="in")
    outside: list[str] = msgspec.field(default_factory=list, name="out")


_decoder: Final = msgspec.json.Decoder(strict(Rule))


def set_partition(mirror: ClusterMirror, text: str) -> None:
    """Set the partition of a mirror by a rule in JSON. Raises DecodeError, also for a rule that contradicts itself."""
    rule = decoding(_decoder.decode, text.encode())
    for field, names in (("in", rule.inside), ("out", rule.outside)):
        if "" in names:
            raise DecodeError(f"{field}[{names.index('')}]", "empty")
    inside = set(rule.inside)
    for index, name in enumerate(rule.outside):
        if name in inside:
            raise DecodeError(f"out[{index}]", f"{name} is in[{rule.inside.index(name)}], too")
    try:
        mirror.set_partition_selector(selector_of("selector", rule.selector, absent=EVERYTHING))
    except SelectorError as error:
        raise DecodeError(error.field, str(error)) from None
    for name in rule.inside:
        mirror.set_node_in_partition(name)
    for name in rule.outside:
        mirror.set_node_out_of_partition(name)
