"""The objects of dynamic resource allocation, reduced to the fields that the plugin DynamicResources reads.

Source: k8s.io/api resource/v1 types.go. Quantities are in billionths (`core.objects.quantity.nanos`), because upstream
adds and compares them exactly.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from core.objects.affinity import NodeSelector
from core.objects.kinds import ClusterWide, ControllerRef, Namespaced
from core.objects.pod import Taint, Toleration

MAX_RESULTS: Final = 32
"""The most devices of one claim (AllocationResultsMaxSize)."""
MAX_ALTERNATIVES: Final = 8
"""The most subrequests of one request (FirstAvailableDeviceRequestMaxSize)."""
ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"


class Attribute(NamedTuple):
    """A value of a device. `kind` is the member of v1.DeviceAttribute that is set, such as `int` or `versions`.

    It is empty for a value of a kind that is not known.
    """

    kind: str
    value: str | int | bool | tuple[str | int | bool, ...]


@lru_cache(maxsize=8192)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    """Return the position of each name. Devices of one driver share it."""
    return {name: position for position, name in enumerate(names)}


class Attributes(Mapping[str, Attribute]):
    """The attributes of a device, in 190 bytes where a dict of eleven takes 464: a cluster may have 40,000 devices."""

    __slots__ = ("_at", "_values")

    def __init__(self, found: Mapping[str, Attribute]) -> None:
        self._at = _places(tuple(found))
        self._values = tuple(found.values())

    def __getitem__(self, name: str) -> Attribute:
        return self._values[self._at[name]]

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  # as Mapping has it, which raises and catches
        """Return an attribute, or the default."""
        at = self._at.get(name)
        return default if at is None else self._values[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._values)


NO_ATTRIBUTES: Final = Attributes({})


class ValidRange(msgspec.Struct, frozen=True, gc=False):
    """The amounts that a request for a capacity may take, of a v1.CapacityRequestPolicyRange."""

    min: int | None = None
    max: int | None = None
    step: int | None = None


class RequestPolicy(msgspec.Struct, frozen=True, gc=False):
    """How much of a capacity one request consumes, of a v1.CapacityRequestPolicy."""

    default: int | None = None
    valid_values: tuple[int, ...] = ()
    valid_range: ValidRange | None = None


class Capacity(msgspec.Struct, frozen=True, gc=False):
    """A capacity of a device."""

    value: int
    policy: RequestPolicy | None = None


class CounterUse(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The counters of one set that a device consumes, or that there are: counters with amounts."""

    counter_set: str
    counters: tuple[tuple[str, int], ...]


class NodeChoice(msgspec.Struct, frozen=True, gc=False):
    """The nodes that a slice or a device is for: one by its name, all, or those that a selector selects."""

    node_name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None

    @property
    def says_nothing(self) -> bool:
        """Whether none of the three is set."""
        return not self.node_name and not self.all_nodes and self.selector is None


NO_NODES: Final = NodeChoice()


class Device(msgspec.Struct, frozen=True, gc=False):
    """A v1.Device. `binding_conditions` is None if there is no such list, which may be empty."""

    name: str
    attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    capacity: Mapping[str, Capacity] = {}
    consumes: tuple[CounterUse, ...] = ()
    nodes: NodeChoice = NO_NODES
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    shareable: bool = False
    """allowMultipleAllocations"""


class ResourceSlice(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 ResourceSlice: some devices of a pool, or the counters that they share.

    `per_device` is perDeviceNodeSelection, None if it is not set. `has_groups`: a device has compatibilityGroups.
    """

    driver: str = ""
    pool: str = ""
    generation: int = 0
    slice_count: int = 0
    nodes: NodeChoice = NO_NODES
    per_device: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterUse, ...] = ()
    has_groups: bool = False


class DeviceRequest(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A request or subrequest of a claim for devices of a class, of a v1.ExactDeviceRequest or v1.DeviceSubRequest.

    `selectors` are CEL expressions, None for a selector of another kind. `admin_access` is None if it is not set.
    `capacities` is None if the request has no such field. `derives` means that it has derivedAttributes.
    """

    name: str
    device_class: str
    mode: str = EXACT_COUNT
    count: int = 1
    selectors: tuple[str | None, ...] = ()
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacities: tuple[tuple[str, int], ...] | None = None
    derives: bool = False


class ClaimRequest(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A v1.DeviceRequest: exactly one request, or the first of several that can be met. Neither: of another kind."""

    name: str
    exactly: DeviceRequest | None = None
    first_available: tuple[DeviceRequest, ...] = ()


class Constraint(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A v1.DeviceConstraint on an attribute of the devices of some requests, or of all if it names none.

    `match` is matchAttribute, `distinct` is distinctAttribute. Neither is set for a constraint of another kind.
    """

    requests: frozenset[str] = frozenset()
    match: str | None = None
    distinct: str | None = None


class DeviceID(NamedTuple):
    """The names that identify a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """DRIVER/POOL/DEVICE."""
        return f"{self.driver}/{self.pool}/{self.device}"


class AllocatedDevice(msgspec.Struct, frozen=True, gc=False):
    """A v1.DeviceRequestAllocationResult. `request` is REQUEST or REQUEST/SUBREQUEST.

    `share` is the shareID, None for a device of this claim alone. `consumed` is None if nothing is stated.
    """

    request: str
    device: DeviceID
    admin_access: bool = False
    share: str | None = None
    consumed: tuple[tuple[str, int], ...] | None = None


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """A v1.AllocationResult.

    `unbindable` means that its devices cannot be bound: a failure condition of one is true, or they are not bound in
    time. `binds_until` is when that time ends, in seconds since 1970: None if they are bound, or have no limit.
    `needs_optional_operations`: a device has skipNodeOperations.
    """

    devices: tuple[AllocatedDevice, ...] = ()
    nodes: NodeSelector | None = None
    unbindable: bool = False
    binds_until: float | None = None
    needs_optional_operations: bool = False


class ResourceClaim(Namespaced, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 ResourceClaim.

    `reserved_for` are the UIDs of the pods that use it. `for_extended` means that kube-scheduler made it for the
    extended resources of the pod `controller`.
    """

    requests: tuple[ClaimRequest, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    allocation: Allocation | None = None
    reserved_for: tuple[str, ...] = ()
    deleting: bool = False
    controller: ControllerRef | None = None
    for_extended: bool = False


class DeviceTaintRule(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 DeviceTaintRule: a taint of all devices that have these names. None means any name.

    Without a deviceSelector it selects no device, and `selects` is false.
    """

    taint: Taint
    selects: bool = True
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def is_for(self, driver: str, pool: str) -> bool:
        """Return whether it taints devices of a pool: all, or those of the name `device`."""
        return self.selects and self.driver in (None, driver) and self.pool in (None, pool)
