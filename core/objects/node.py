"""The node as scheduling sees it."""

from collections.abc import Mapping

import msgspec


class Node(msgspec.Struct, frozen=True, gc=False):
    """A v1.Node reduced to what the enabled plugins and the mirror read.

    `allocatable` has cpu in millicores and all others in their own unit (bytes, pieces), `pods` among them.
    """

    name: str
    labels: Mapping[str, str] = {}
    allocatable: Mapping[str, int] = {}
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name
