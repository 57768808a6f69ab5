"""The namespace as scheduling sees it."""

from collections.abc import Mapping

import msgspec


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A v1.Namespace: the labels that namespaceSelector reads."""

    name: str
    labels: Mapping[str, str] = {}
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name
