"""Types of a checked expression."""

from typing import Final

from core.plugins.dynamicresources import checked_expression
from core.plugins.dynamicresources.cel_functions import UnknownResultError
from core.plugins.dynamicresources.checked_expression import Node

PACKAGE: Final = "kubernetes"
_BYTES: Final = 6
_TIMES: Final = (2, 3)


def dynamic(kind: Node) -> bool:
    """Return whether a value may be of any type."""
    return bool(kind.HasField("dyn")) or kind.well_known == checked_expression.ANY


def scalar(kind: Node) -> bool:
    """Return whether the type is a bool, a number or a text."""
    return bool(kind.HasField("primitive"))


def message_name(kind: Node) -> str:
    """Return the name of a type of Kubernetes, or an empty text."""
    return str(kind.message_type.removeprefix(f"{PACKAGE}."))


def inner(kind: Node) -> list[Node]:
    """Return the types of which a type is made."""
    match kind.WhichOneof("kind"):
        case "list_type":
            return [kind.list_type.elem_type]
        case "map_type":
            return [kind.map_type.key_type, kind.map_type.value_type]
        case "abstract_type":
            return list(kind.abstract_type.parameter_types)
    return []


def messages(kind: Node) -> bool:
    """Return whether the type is one of Kubernetes, or has one inside."""
    return message_name(kind) != "" or any(map(messages, inner(kind)))


def deep(kind: Node) -> bool:
    """Return whether values of the type may have attributes inside."""
    return any(dynamic(each) or deep(each) for each in inner(kind))


def plain(kind: Node) -> bool:
    """Return whether values of the type are like those of attributes."""
    primitives = (checked_expression.BOOL, checked_expression.INT, checked_expression.STRING)
    return dynamic(kind) or kind.primitive in primitives or (bool(inner(kind)) and all(map(plain, inner(kind))))


def has_parameters(kind: Node) -> bool:
    """Return whether the type is made of others."""
    return bool(inner(kind)) or bool(kind.type_param)


def unwrapped(kind: Node) -> Node:
    """Return the type of the value of an optional."""
    inner = kind.abstract_type.parameter_types
    return inner[0] if len(inner) == 1 else kind


def refuse_type(kind: Node) -> None:
    """Raise UnknownResultError for a type that Kindred does not compare with cel-go."""
    found = kind.WhichOneof("kind")
    if kind.primitive == _BYTES or kind.well_known in _TIMES or found in ("null", "wrapper", "type", "error"):
        names = {_BYTES: "bytes"}
        raise UnknownResultError(f"values of type {names.get(kind.primitive, 'time' if kind.well_known else found)}")
    for each in inner(kind):
        refuse_type(each)
