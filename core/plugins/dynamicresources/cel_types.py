"""Types of a checked expression."""

import re
from typing import Final

from core.plugins.dynamicresources import checked_expression
from core.plugins.dynamicresources.cel_functions import UnknownResultError
from core.plugins.dynamicresources.checked_expression import Node

PACKAGE: Final = "kubernetes"
_BYTES: Final = 6
_TIMES: Final = (2, 3)
_ALLOWED: Final = {
    "type": "_==_ _!=_ type",
    "null": "_==_ _!=_",
    "bytes": "_==_ _!=_ size string bytes",
    "time": "_==_ _!=_ _<_ _<=_ _>_ _>=_",
}
"""Kinds of values that are no values of devices -> what was compared of them. Of times, there are getters, too."""
FORMATTED: Final = {
    "s": (checked_expression.BOOL, checked_expression.INT, checked_expression.STRING),
    "d": (checked_expression.INT,),
}
"""Clause of a format -> the types that it takes."""
_day: Final = "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31"
_times: Final = {
    "duration": re.compile(r"-?(?:[0-9]{1,6}(?:\.[0-9]{1,3})?(?:h|m|s|ms))+"),
    "timestamp": re.compile(
        rf"[1-9][0-9]{{3}}-(?:{_day})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z"
    ),
}


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


def versions(kind: Node) -> bool:
    """Return whether the type is that of versions or of any value, or a list of such a type."""
    elements = inner(kind) if kind.HasField("list_type") else []
    return dynamic(kind) or message_name(kind) == "Semver" or any(map(versions, elements))


def special(kind: Node) -> str:
    """Return what kind of values it is, if devices have none of it: "type", "null", "bytes" or "time"."""
    if kind.primitive == _BYTES:
        return "bytes"
    if kind.well_known in _TIMES:
        return "time"
    return kind.WhichOneof("kind") if kind.WhichOneof("kind") in _ALLOWED else ""


def allows(kind: Node, function: str) -> bool:
    """Return whether a function of such values does the same in both engines."""
    of = special(kind)
    return not of or function in _ALLOWED[of].split() or (of == "time" and function.startswith("get"))


def is_time(function: str, text: str) -> bool:
    """Return whether both engines read the text as the same duration or timestamp."""
    return _times[function].fullmatch(text) is not None


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
    found = str(kind.WhichOneof("kind"))
    if found in ("wrapper", "error"):
        raise UnknownResultError(f"values of type {found}")
    for each in inner(kind):
        if special(each):
            raise UnknownResultError(f"a type, null, bytes or a time in a value of {found}")
        refuse_type(each)
