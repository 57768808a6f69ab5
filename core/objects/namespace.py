"""The namespace, reduced to the fields that scheduling reads."""

from collections.abc import Mapping

import msgspec


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A v1.Namespace, reduced to the labels that namespaceSelector reads."""

    name: str
    labels: Mapping[str, str] = {}
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name
