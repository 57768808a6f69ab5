"""The steps of a remedy that change a ResourceClaim, and what becomes of the claims of a pod that ends.

A claim and its template cannot be changed (k8s.io/kubernetes pkg/apis/resource/validation), so they are made again.
"""

from typing import ClassVar, Final, TypeAlias

from msgspec.structs import replace

from core.explaining.pod_names import PodText
from core.explaining.pod_steps import Changing, Kind, taint_text
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork, ForkError
from core.objects.devices import Constraint, DeviceRequest, ResourceClaim
from core.objects.pod import Pod, Toleration

_BYTES: Final = {"Ti": 2**40, "Gi": 2**30, "Mi": 2**20}
"""Multiples of these are probably bytes."""
_NANOS: Final = 10**9
_FRACTIONS: Final = {"n": 1, "u": 10**3, "m": 10**6}
"""Suffix -> its size in billionths, smallest first."""


class OfClaim(Changing, frozen=True, gc=False):
    """A claim of the pod is made again with another spec. No pod uses it yet."""

    claim: str
    """NAMESPACE/NAME"""
    of_template: bool
    """Whether the claim is made from a template, which is what has to be made again, and then the pod."""

    @property
    def text(self) -> str:
        """Return the step as an instruction."""
        if self.of_template:
            return PodText("make the template of claim ", self.claim, f" again {self.how}, and then the pod")
        return PodText("make claim ", self.claim, f" again {self.how}")

    @property
    def how(self) -> str:
        """Return what is different."""
        raise NotImplementedError

    def apply(self, mirror: ClusterMirror, fork: Fork) -> None:
        """Suppose the claim with the other spec."""
        claim = mirror.objects(ResourceClaim).get(self.claim)
        if claim is None:
            raise ForkError(f"claim {self.claim} is not there")
        fork.change_object(self.instead_of(claim))

    def instead_of(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim after the step."""
        raise NotImplementedError


class OfRequest(OfClaim, frozen=True, gc=False):
    """A change of one request, or of one of its alternatives."""

    request: str
    """REQUEST or REQUEST/SUBREQUEST"""

    def instead_of(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim with the other request."""
        name, _, sub = self.request.partition("/")
        requests = []
        for each in claim.requests:
            if each.name == name and each.exactly is not None:
                requests.append(replace(each, exactly=self.other(each.exactly)))
            elif each.name == name:
                others = [self.other(one) if one.name == sub else one for one in each.first_available]
                requests.append(replace(each, first_available=tuple(others)))
            else:
                requests.append(each)
        return replace(claim, requests=tuple(requests))

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request after the step."""
        raise NotImplementedError


class LowerCount(OfRequest, frozen=True, gc=False):
    """Ask for fewer devices."""

    kind: ClassVar[Kind] = Kind.LOWER_REQUESTS
    by: int
    to: int

    @property
    def how(self) -> str:
        """Return what is different."""
        return f"with count {self.to} instead of {self.to + self.by} in request {self.request}"

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request for fewer devices."""
        return replace(request, count=self.to)


class LowerCapacity(OfRequest, frozen=True, gc=False):
    """Ask for less of a capacity of each device, in billionths."""

    kind: ClassVar[Kind] = Kind.LOWER_REQUESTS
    capacity: str
    by: int
    to: int

    @property
    def how(self) -> str:
        """Return what is different."""
        present = amount_text(self.to + self.by)
        return f"with {self.capacity} {amount_text(self.to)} instead of {present} in request {self.request}"

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request for less of the capacity."""
        lower = [(name, self.to if name == self.capacity else amount) for name, amount in request.capacities or ()]
        return replace(request, capacities=tuple(lower))


class TolerateDeviceTaint(OfRequest, frozen=True, gc=False):
    """Give a request a toleration of exactly this taint of devices (operator Equal)."""

    kind: ClassVar[Kind] = Kind.TOLERATE_TAINTS
    key: str
    value: str
    effect: str

    @property
    def how(self) -> str:
        """Return what is different."""
        taint = taint_text(self.key, self.value, self.effect)
        return f"with a toleration of the device taint {taint} in request {self.request}"

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request with the toleration."""
        toleration = Toleration(self.key, "Equal", self.value, self.effect)
        return replace(request, tolerations=(*request.tolerations, toleration))


class ChangeDeviceClass(OfRequest, frozen=True, gc=False):
    """Ask for devices of another DeviceClass."""

    kind: ClassVar[Kind] = Kind.CHANGE_DEVICE_CLASS
    device_class: str
    to: str

    @property
    def how(self) -> str:
        """Return what is different."""
        return f"with deviceClassName {self.to} instead of {self.device_class} in request {self.request}"

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request for the other class."""
        return replace(request, device_class=self.to)


class DropSelector(OfRequest, frozen=True, gc=False):
    """Remove a selector of a request."""

    kind: ClassVar[Kind] = Kind.DROP_REQUIREMENTS
    selector: str

    @property
    def how(self) -> str:
        """Return what is different."""
        return f"without the selector {self.selector} in request {self.request}"

    def other(self, request: DeviceRequest) -> DeviceRequest:
        """Return the request without the selector."""
        return replace(request, selectors=tuple(each for each in request.selectors if each != self.selector))


class DropConstraint(OfClaim, frozen=True, gc=False):
    """Remove a constraint between the devices of a claim."""

    kind: ClassVar[Kind] = Kind.DROP_REQUIREMENTS
    constraint: int
    """Its place in the claim's list."""
    attribute: str

    @property
    def how(self) -> str:
        """Return what is different."""
        return f"without the constraint on {self.attribute}"

    def instead_of(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim without the constraint."""
        left = [each for place, each in enumerate(claim.constraints) if place != self.constraint]
        return replace(claim, constraints=tuple(left))


def amount_text(amount: int) -> str:
    """Return an amount in billionths in the notation of Kubernetes. It is exact, because people write it again."""
    for suffix, size in _FRACTIONS.items():
        if amount % (1000 * size):
            return f"{amount // size}{suffix}"
    whole = amount // _NANOS
    suffix, size = next(((suffix, size) for suffix, size in _BYTES.items() if whole and not whole % size), ("", 1))
    return f"{whole // size}{suffix}"


def constraint_text(constraint: Constraint) -> str:
    """Return a constraint as it is written."""
    return f"matchAttribute {constraint.match}" if constraint.match else f"distinctAttribute {constraint.distinct}"


def free_claims(mirror: ClusterMirror, fork: Fork, pod: Pod) -> None:
    """Suppose what becomes of the claims of a pod that has ended.

    A claim that was made for the pod goes with it. Another one is no longer reserved for it, and loses its devices if
    no other pod uses it: k8s.io/kubernetes pkg/controller/resourceclaim/controller.go (syncClaim).
    """
    stored = mirror.objects(ResourceClaim)
    named = [stored.get(f"{pod.namespace}/{each.claim}") for each in pod.resource_claims]
    claims = {each.full_name: each for each in named if each is not None}
    if pod.demand.extended_requests:
        claims |= {each.full_name: each for each in stored.values() if each.for_extended and is_made_for(each, pod)}
    for claim in claims.values():
        left = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
        if is_made_for(claim, pod):
            fork.remove_object(claim)
        elif len(left) < len(claim.reserved_for):
            fork.change_object(replace(claim, reserved_for=left, allocation=claim.allocation if left else None))


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a claim was made for a pod, and ends with it."""
    return claim.controller is not None and claim.controller.uid == pod.uid


ClaimStep: TypeAlias = (
    LowerCount | LowerCapacity | TolerateDeviceTaint | ChangeDeviceClass | DropSelector | DropConstraint
)
