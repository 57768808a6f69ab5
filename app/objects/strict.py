"""Wire structs for hand-written files: an unknown field is an error, and not a field of a later release."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def strict(wire: type[S]) -> type[S]:
    """Return a subclass of a wire struct that forbids unknown fields, at every depth."""
    fields = []
    for each in msgspec.structs.fields(wire):
        wanted = with_structs(each.type, strict)
        if wanted is not each.type:
            as_before: Any = {
                "default": each.default,
                "default_factory": each.default_factory,
                "name": each.encode_name,
            }
            fields.append((each.name, wanted, msgspec.field(**as_before)))
    derived: Any = msgspec.defstruct(wire.__name__, fields, bases=(wire,), forbid_unknown_fields=True)
    return derived  # type: ignore[no-any-return]  # of dynamic bases


def with_structs(wanted: Any, replace: Callable[[Any], Any]) -> Any:  # noqa: ANN401  # any annotation
    """Return a type with each struct in it replaced. A type without structs is returned unchanged."""
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return replace(wanted)
    parts = get_args(wanted)
    derived = tuple(with_structs(part, replace) for part in parts)
    if derived == parts:
        return wanted
    origin = get_origin(wanted)
    return reduce(or_, derived) if origin in {Union, UnionType} else origin[derived]
