"""What a claim asks for, and the constraints between its devices.

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go and constraint.go.
"""

from typing import Final, NamedTuple, TypeAlias

from core.objects.devices import Attribute, Constraint, DeviceRequest
from core.objects.pod import KEEP_PODS_OFF
from core.plugins.dynamicresources.matching import Matcher
from core.plugins.dynamicresources.pools import PoolDevice

_COMPARED: Final = ("string", "int", "bool", "version")


class Need(NamedTuple):
    """A request or subrequest, with the selectors of its class and its own."""

    request: DeviceRequest
    matchers: tuple[tuple[str, int, Matcher], ...]
    """The class of a selector, empty for one of the request itself, its number there, and the selector."""
    base: str
    """The name of the request, or of the request that the subrequest belongs to."""
    alternative: int | None = None
    """The position of the subrequest, None for a request."""

    @property
    def full_name(self) -> str:
        """REQUEST or REQUEST/SUBREQUEST."""
        return self.base if self.alternative is None else f"{self.base}/{self.request.name}"


class ClaimNeeds(NamedTuple):
    """A claim to allocate: for each request its subrequests, or itself."""

    name: str
    requests: tuple[tuple[Need, ...], ...]
    constraints: tuple[Constraint, ...]


class Matching:
    """All devices of some requests have the same value of an attribute. Upstream matchAttributeConstraint."""

    def __init__(self, constraint: Constraint, name: str) -> None:
        self._requests = constraint.requests
        self._name = name
        self._value: Attribute | None = None
        self._devices = 0

    def add(self, need: Need, device: PoolDevice) -> bool:
        """Count a device, and return true, if the constraint allows it."""
        if not concerns(self._requests, need):
            return True
        found = device.attribute(self._name)
        if found is None:
            return False
        if not self._devices:
            self._value = found
        elif found.kind not in _COMPARED or found != self._value or found.kind != self._value.kind:
            return False
        self._devices += 1
        return True

    def remove(self, need: Need) -> None:
        """Undo the last successful `add`."""
        if concerns(self._requests, need):
            self._devices -= 1


class Distinct:
    """All devices of some requests have different values of an attribute. Upstream distinctAttributeConstraint."""

    def __init__(self, constraint: Constraint, name: str) -> None:
        self._requests = constraint.requests
        self._name = name
        self._values: list[Attribute] = []

    def add(self, need: Need, device: PoolDevice) -> bool:
        """Count a device, and return true, if the constraint allows it."""
        if not concerns(self._requests, need):
            return True
        found = device.attribute(self._name)
        if found is None or (self._values and found.kind not in _COMPARED) or found in self._values:
            return False
        self._values.append(found)
        return True

    def remove(self, need: Need) -> None:
        """Undo the last successful `add`."""
        if concerns(self._requests, need):
            self._values.pop()


class DistinctByRequest:
    """The same until 1.36, which keeps one value for each request, and forgets it when any of its devices goes.

    1.34 compares addresses (not `by_value`), which differ for any two devices.
    """

    def __init__(self, constraint: Constraint, name: str, *, by_value: bool) -> None:
        self._by_value = by_value
        self._requests = constraint.requests
        self._name = name
        self._values: dict[str, Attribute] = {}
        self._devices = 0

    def add(self, need: Need, device: PoolDevice) -> bool:
        """Count a device, and return true, if the constraint allows it."""
        if not concerns(self._requests, need):
            return True
        found = device.attribute(self._name)
        if found is None:
            return False
        if self._devices:
            values = self._values.values()
            if (values and found.kind not in _COMPARED) or (self._by_value and found in values):
                return False
        self._values[need.base] = found
        self._devices += 1
        return True

    def remove(self, need: Need) -> None:
        """Undo the last successful `add`."""
        if concerns(self._requests, need):
            self._values.pop(need.base, None)
            self._devices -= 1


AnyConstraint: TypeAlias = Matching | Distinct | DistinctByRequest


def concerns(requests: frozenset[str], need: Need) -> bool:
    """Return whether a constraint that names some requests is about one. One that names none is about all."""
    return not requests or need.base in requests or (need.alternative is not None and need.full_name in requests)


def keeps_off(device: PoolDevice, request: DeviceRequest) -> bool:
    """Return whether a taint keeps a device from a request. Upstream taintPreventsAllocation."""
    return any(
        taint.effect in KEEP_PODS_OFF and not any(each.tolerates(taint) for each in request.tolerations)
        for taint in device.taints
    )
