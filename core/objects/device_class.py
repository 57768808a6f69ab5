"""The device class as scheduling sees it."""

from typing import Final

import msgspec

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""With the name of a class behind it, the extended resource that every class stands for."""


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 DeviceClass, reduced to the extended resource that it stands for.

    `extended_resource` is spec.extendedResourceName, empty where there is none.
    """

    name: str
    extended_resource: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name
