"""The arguments of a plugin as people write them: upstream's *Args. See app/objects/plugin_args.py.

Source: k8s.io/kube-scheduler config/v1/types_pluginargs.go. Upstream decodes arguments strictly. So an unknown field is
an error, at any depth. JSON null means an absent field.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias

import msgspec

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
NotNegative: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Keywords: TypeAlias = dict[str, Any]
ReadQuantity: TypeAlias = Callable[[msgspec.Raw, str], int]
"""Reads a quantity at a path, in nanos."""
NULL: Final = msgspec.Raw(b"null")
"""The value of an absent field that is read as bytes."""


class Strict(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of arguments and of their parts."""

    def parsed(self) -> object:
        """Return the value that the constructor takes. Raises ValueError."""
        return self


class Args(Strict):
    """The fields of every *Args."""

    api_version: str | None = None
    kind: str | None = None

    def keywords(self, _quantity: ReadQuantity, /) -> Keywords:
        """Return the arguments of the constructor. As in Go, an empty text, list or map is none. Raises ValueError."""
        own = (name for name in self.__struct_fields__ if name not in {"api_version", "kind"})
        given = ((name, value) for name in own if (value := getattr(self, name)) not in (None, "", [], {}, NULL))
        return {name: value.parsed() if isinstance(value, Strict) else value for name, value in given}
