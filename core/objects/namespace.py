"""The namespace as scheduling sees it."""

from collections.abc import Mapping

import msgspec


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A v1.Namespace: the labels that namespaceSelector reads."""

    name: str
    labels: Mapping[str, str] = {}
