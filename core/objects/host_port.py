"""Host ports: ports of the node that a pod takes.

Source: k8s.io/kube-scheduler framework/types.go (HostPortInfo).
"""

from typing import Final

import msgspec

ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - the name that upstream has for it, nothing binds to it here
"""The address of a port that names none."""


class HostPort(msgspec.Struct, frozen=True, order=True, gc=False):
    """A port of the node, on one of its addresses or on all of them."""

    port: int
    protocol: str = "TCP"
    ip: str = ALL_ADDRESSES


NO_HOST_PORTS: Final[frozenset[HostPort]] = frozenset()
"""Shared by pods without host ports: Python creates a new empty set each time."""
