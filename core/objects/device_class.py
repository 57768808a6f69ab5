"""The device class, reduced to the fields that scheduling reads."""

from typing import Final

import msgspec

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of a class name in the implicit extended resource that every class provides."""


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 DeviceClass, reduced to the extended resource that it provides.

    `extended_resource` is spec.extendedResourceName. It is empty if the class names none.
    """

    name: str
    extended_resource: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name
