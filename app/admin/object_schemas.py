"""v1.Pod and v1.Node for the OpenAPI description, made from the structs that decode them.

A field that is kept as bytes at first is described by its later type (`Unread`). This module adds the rules that types
cannot express: the required fields of an object, and the values that upstream allows. As in Go, unknown fields are
ignored, and null means an absent field.
"""

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec

from app.objects.decode import Unread
from app.objects.decode_node import WireNode
from app.objects.decode_pod import WirePod
from app.objects.strict import with_structs

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Weight: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100)]


class LabelSelectorRequirement(msgspec.Struct):
    """metav1.LabelSelectorRequirement."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None


class NodeSelectorRequirement(msgspec.Struct):
    """v1.NodeSelectorRequirement."""

    key: Name
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None


_REQUIRED: Final = frozenset(
    {
        "WirePod.metadata",
        "WireNode.metadata",
        "_WeightedTerm.pod_affinity_term",
        "_PreferredTerm.preference",
        "WireNodeSelector.node_selector_terms",
    }
)
_NARROWED: Final[Mapping[str, Any]] = {
    "Metadata.name": Name,
    "LabelSelector.match_expressions": list[LabelSelectorRequirement] | None,
    "WireNodeSelectorTerm.match_expressions": list[NodeSelectorRequirement] | None,
    "WireNodeSelectorTerm.match_fields": list[NodeSelectorRequirement] | None,
    "_Term.topology_key": Name,
    "_Term.namespaces": list[Name] | None,
    "_WeightedTerm.weight": Weight,
    "_PreferredTerm.weight": Weight,
    "WireContainer.name": Name,
    "_ContainerPort.host_port": Annotated[int, msgspec.Meta(ge=0, le=65535)] | None,
    "_ContainerPort.protocol": Literal["TCP", "UDP", "SCTP"] | None,
    "WireSpreadConstraint.max_skew": Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)],
    "WireSpreadConstraint.topology_key": Name,
    "WireSpreadConstraint.when_unsatisfiable": Literal["DoNotSchedule", "ScheduleAnyway"],
    "_PodSpec.preemption_policy": Literal["PreemptLowerPriority", "Never"] | None,
    "WirePod.kind": Literal["Pod"] | None,
    "WireNode.kind": Literal["Node"] | None,
    "_Taint.key": Name,
    "_Taint.effect": Name,
    "_Image.size_bytes": Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None,
}
"""Field -> its allowed values. A field whose values have no null is required."""


@cache
def described(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a struct, with the name of the object, whose schema has every field that Kindred reads of the object."""
    return _merged(kind)


def _merged(*kinds: type[msgspec.Struct]) -> type[msgspec.Struct]:
    names = [kind.__name__.removeprefix("_").removeprefix("Wire") for kind in kinds]
    text = (kinds[0].__doc__ or "") if len(kinds) == 1 else None
    fields = [field for kind in kinds for field in _fields(kind)]
    return msgspec.defstruct("And".join(names), fields, namespace={"__doc__": text}, kw_only=True)


def _fields(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(kind):
        places = {f"{owner.__name__}.{field.name}" for owner in kind.__mro__}
        narrowed = [_NARROWED[place] for place in places & _NARROWED.keys()]
        found = narrowed[0] if narrowed else _readable(field.type)
        if narrowed and type(None) not in get_args(found):
            yield field.name, found, msgspec.field(name=field.encode_name)
        elif places & _REQUIRED:
            yield field.name, _without_null(found), msgspec.field(name=field.encode_name)
        else:
            yield field.name, found | None, msgspec.field(default=None, name=field.encode_name)


def _readable(found: Any) -> Any:  # noqa: ANN401  # a type, of any form
    """Return a type without bytes and with described structs, at every depth."""
    unread = [each.kind for each in get_args(found) if isinstance(each, Unread)]
    if unread:
        return _merged(*unread[0]) if isinstance(unread[0], tuple) else _readable(unread[0])
    if found is msgspec.Raw:
        raise TypeError("a field that is left as bytes has no Unread, so that nothing is said of it")
    return with_structs(found, described)


def _without_null(found: Any) -> Any:  # noqa: ANN401  # a type, of any form
    return reduce(or_, (each for each in get_args(found) if each is not type(None)))


PodSchema: Final = described(WirePod)
NodeSchema: Final = described(WireNode)
