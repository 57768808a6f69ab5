"""The node as scheduling sees it."""

from collections.abc import Mapping

import msgspec


class Node(msgspec.Struct, frozen=True, gc=False):
    """A v1.Node reduced to what the enabled plugins read."""

    name: str
    labels: Mapping[str, str] = {}
