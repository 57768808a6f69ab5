"""The wire of `bind`: ExtenderBindingArgs in, ExtenderBindingResult out.

Source: k8s.io/kube-scheduler extender/v1/types.go. Go reads keys in any case.
"""

import re
from typing import Final

import msgspec

from app.logs import one_line
from app.objects.decode import DecodeError, decoding
from app.objects.go_struct import GoStruct
from app.objects.limits import Body

_ARGS: Final = GoStruct("ExtenderBindingArgs", "PodName", "PodNamespace", "PodUID", "Node")
_MAX_BYTES: Final = 64 * 1024  # four names fit, while a body of a million keys would take a gigabyte when decoded
_MAX_NAME_LENGTH: Final = 253
# RFC 1123, as the API server checks it. An invalid name must not become part of a URL path.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_text_decoder: Final = msgspec.json.Decoder(str | None)


class BindingArgs(msgspec.Struct, frozen=True, gc=False):
    """The pod of a binding, and its node."""

    namespace: str
    name: str
    uid: str
    node: str

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME of the pod."""
        return f"{self.namespace}/{self.name}"


def decode_binding_args(body: Body) -> BindingArgs:
    """Decode ExtenderBindingArgs with keys in any case. Raises DecodeError that names the field."""
    if len(body) > _MAX_BYTES:
        raise DecodeError("body", f"larger than {_MAX_BYTES} bytes")
    fields: dict[str, str | None] = {}
    for name, raw in _ARGS.decode(body).items():
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


def is_name(text: str) -> bool:
    """Return whether an object of the API server can have a name."""
    return len(text) <= _MAX_NAME_LENGTH and _NAME.fullmatch(text) is not None


def binding_result(error: str = "") -> bytes:
    """Return an ExtenderBindingResult. With an error, on one line, the scheduler drops the binding and tries again."""
    return b'{"Error":' + msgspec.json.encode(one_line(error)) + b"}"


def _required(field: str, fields: dict[str, str | None]) -> str:
    text = fields.get(field)
    if not text:
        raise DecodeError(field, "required")
    return text


def _checked_name(field: str, fields: dict[str, str | None]) -> str:
    name = _required(field, fields)
    if not is_name(name):
        raise DecodeError(field, f"{name!r} is not a valid object name")
    return name
