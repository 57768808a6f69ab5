"""JSON for people and their tools, by orjson: responses of the admin port, input and output of commands, log lines.

The verbs, the watch, dumps and requests to the API server use msgspec instead. It decodes only the fields that they
need, and writes structs without a copy.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

import msgspec
import orjson

from core.explaining.pod_names import NamesPods

T = TypeVar("T")

_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


def encode(value: object, *, unknown: Callable[[object], object] | None = None) -> bytes:
    """Return JSON in one line. `unknown` replaces a value without a JSON form, such as a pod name.

    Raises TypeError for such a value without `unknown`, and UnicodeEncodeError for half of a surrogate pair.
    """
    return _dumped(value, _OPTIONS, unknown)


def naming(value: object) -> NamesPods:
    """Return a value with pod names that an encoder does not know. Raises TypeError for any other value."""
    if isinstance(value, NamesPods):
        return value
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def indented(value: object) -> str:
    """Return JSON for people to read. Raises the errors of `encode`."""
    return _dumped(value, _OPTIONS | orjson.OPT_INDENT_2, None).decode()


@overload
def decode(text: bytes) -> Any: ...  # noqa: ANN401  # JSON of any shape
@overload
def decode(text: bytes, kind: type[T]) -> T: ...
def decode(text: bytes, kind: Any = Any) -> Any:
    """Return a value from JSON. Only for JSON that Kindred wrote: an integer of more than 64 bits becomes a float.

    Raises msgspec.DecodeError, also for JSON of another kind.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None
    return msgspec.convert(value, kind)


def _dumped(value: object, options: int, unknown: Callable[[object], object] | None) -> bytes:
    unknown = unknown or (lambda found: str(naming(found)))

    def plain(found: object) -> object:
        if isinstance(found, msgspec.Raw):
            return orjson.Fragment(bytes(found))
        if isinstance(found, msgspec.Struct) and not options & orjson.OPT_INDENT_2:
            # msgspec.to_builtins would copy each struct: 5,000 structs took 1.4 ms that way, and take 0.5 ms this way.
            return orjson.Fragment(msgspec.json.encode(found, enc_hook=unknown))
        return msgspec.to_builtins(found, builtin_types=(msgspec.Raw,), enc_hook=unknown)

    try:
        return orjson.dumps(value, default=plain, option=options)
    except orjson.JSONEncodeError:  # orjson is limited to 64-bit integers and 254 levels, msgspec is not
        text = msgspec.json.encode(value, enc_hook=unknown)
        return msgspec.json.format(text, indent=2) if options & orjson.OPT_INDENT_2 else text
