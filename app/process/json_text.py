"""JSON for people and their tools: responses of the admin port, input and output of commands, log lines.

Names of pods become text here; the admin port encodes what it may hide itself (app/admin/access.py).
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from core.explaining.pod_names import NamesPods

T = TypeVar("T")


def encode(value: object, *, unknown: Callable[[object], object] | None = None) -> bytes:
    """Return JSON in one line. `unknown` replaces a value without a JSON form, such as a pod name.

    Raises TypeError for such a value without `unknown`, and UnicodeEncodeError for half of a surrogate pair.
    """
    return msgspec.json.encode(value, enc_hook=unknown or (lambda found: str(naming(found))))


def naming(value: object) -> NamesPods:
    """Return a value with pod names that an encoder does not know. Raises TypeError for any other value."""
    if isinstance(value, NamesPods):
        return value
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def indented(value: object) -> str:
    """Return JSON for people to read. Raises the errors of `encode`."""
    return msgspec.json.format(encode(value), indent=2).decode()


@overload
def decode(text: bytes) -> Any: ...  # noqa: ANN401  # JSON of any shape
@overload
def decode(text: bytes, kind: type[T]) -> T: ...
def decode(text: bytes, kind: Any = Any) -> Any:
    """Return a value from JSON. Raises msgspec.DecodeError, also for JSON of another kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from None
