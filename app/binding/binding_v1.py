"""The wire of `bind`: ExtenderBindingArgs in, ExtenderBindingResult out.

Source: k8s.io/kube-scheduler extender/v1/types.go; as everywhere, Go reads keys in any case.
"""

import re
from typing import Final

import msgspec

from app.limits import Body
from app.logs import one_line
from app.watch.decode import DecodeError, decoding

_FIELDS: Final = {"podname": "PodName", "podnamespace": "PodNamespace", "poduid": "PodUID", "node": "Node"}
_MOST_BYTES: Final = 64 * 1024  # four names are not longer, and a million keys would take a gigabyte when decoded
_LONGEST_NAME: Final = 253
# RFC 1123, as the API server has it; what is no name must not get into a path.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_args_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text_decoder: Final = msgspec.json.Decoder(str | None)


class BindingArgs(msgspec.Struct, frozen=True, gc=False):
    """Which pod is to be bound to which node."""

    namespace: str
    name: str
    uid: str
    node: str

    @property
    def full_name(self) -> str:
        """The pod as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


def decode_binding_args(body: Body) -> BindingArgs:
    """Decode ExtenderBindingArgs with keys in any case. Raises DecodeError, which names the field."""
    if len(body) > _MOST_BYTES:
        raise DecodeError("body", f"larger than {_MOST_BYTES} bytes")
    try:
        found = decoding(_args_decoder.decode, body)
    except DecodeError as error:
        raise error.under("body") from None
    fields: dict[str, str | None] = {}
    for key, raw in found.items():
        name = _FIELDS.get(key.lower())
        if name is None:
            raise DecodeError(key, f"unknown field; ExtenderBindingArgs has {', '.join(_FIELDS.values())}")
        try:
            fields[name] = decoding(_text_decoder.decode, raw)
        except DecodeError as error:
            raise error.under(name) from None
    return BindingArgs(
        _checked_name("PodNamespace", fields),
        _checked_name("PodName", fields),
        _required("PodUID", fields),
        _required("Node", fields),
    )


def binding_result(error: str = "") -> bytes:
    """Return an ExtenderBindingResult; an error, on one line, makes the scheduler forget the binding and try anew."""
    return b'{"Error":' + msgspec.json.encode(one_line(error)) + b"}"


def _required(field: str, fields: dict[str, str | None]) -> str:
    text = fields.get(field)
    if not text:
        raise DecodeError(field, "required")
    return text


def _checked_name(field: str, fields: dict[str, str | None]) -> str:
    name = _required(field, fields)
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise DecodeError(field, f"{name!r} is no name that an object can have")
    return name
