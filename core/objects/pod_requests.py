"""The resources that the scheduler reserves for a pod, computed from its containers, and its QoS class.

Source: k8s.io/component-helpers resource/helpers.go (PodRequests, as NodeInfo calls it: see RequestCounting),
k8s.io/kubernetes pkg/scheduler/framework/types.go (CalculateResource, getNonMissingContainerRequests),
pkg/scheduler/framework/plugins/noderesources (NewFit, calculatePodResourceRequest) and
pkg/apis/core/v1/helper/qos/qos.go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from core.objects.kinds import IMPLICIT_PREFIX
from core.objects.labels import label_key_errors
from core.objects.quantity import MAX_INT64, capped, millis, nanos, units
from core.releases.release import ClaimedResources, RequestCounting

Amounts: TypeAlias = Mapping[str, int]
"""Resource name -> exact amount in the unit of `quantity.nanos`. Sums are rounded, not their parts."""

_NANOS: Final = 10**9
_COMPUTE: Final = ("cpu", "memory")
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_PREFIXES: Final = (_HUGE_PAGES, "attachable-volumes-")
_NOTHING: Final[Amounts] = {}
_MISSING: Final[Amounts] = {"cpu": nanos("100m"), "memory": nanos("200Mi")}
"""The assumed use of a container without requests (schedutil.DefaultMilliCPURequest, DefaultMemoryRequest)."""
_BY_CONTAINER_SPECS: Final = RequestCounting(status=False, pod_level=False)


class Resources(msgspec.Struct, frozen=True, gc=False):
    """Requests and limits of a container, or of a pod as a whole."""

    requests: Amounts = {}
    limits: Amounts = {}


class Container(msgspec.Struct, frozen=True, gc=False):
    """A container's resources. `sidecar` is an init container with restartPolicy Always.

    While the container is resized in place, `actual` has the configured resources in its status, and `allocated` those
    that the node has set aside. They are None if the status has none. `reported` is true if the status has resources at
    all.
    """

    resources: Resources = Resources()
    sidecar: bool = False
    actual: Amounts | None = None
    allocated: Amounts | None = None
    reported: bool = False


class ExtendedRequests(NamedTuple):
    """What one container requests of resources that devices may provide.

    `position` is its place among the init containers and then the other ones. `brief` means that it ends before the
    others start. `amounts` has each resource with the amount, None if it is not a whole number, and with the place of
    its name among those of all requests of the container, sorted.
    """

    position: int
    brief: bool
    amounts: tuple[tuple[str, int | None, int], ...]


class PodResources(msgspec.Struct, frozen=True, gc=False):
    """All fields that the resources of a pod depend on.

    `pod_level` is None if the pod has no pod-level resources. In their status, `pod_level_actual` has the configured
    resources, and `pod_level_allocated` those that the node has set aside, or None. `pod_level_reported` is true if the
    status has pod-level resources at all.

    `resize_infeasible` means that the condition PodResizePending has the reason Infeasible: the resize will not happen.
    `qos_class` is from the status, empty if missing.

    `claimed` has the resources of the node that the pod's resource claims allocate, for each form in its status.
    """

    containers: Sequence[Container] = ()
    init_containers: Sequence[Container] = ()
    pod_level: Resources | None = None
    overhead: Amounts = {}
    resize_infeasible: bool = False
    qos_class: str = ""
    pod_level_actual: Amounts | None = None
    pod_level_allocated: Amounts | None = None
    pod_level_reported: bool = False
    claimed: Mapping[ClaimedResources, Amounts] = {}

    @property
    def counts_alike(self) -> bool:
        """Whether every RequestCounting gives the same result: no pod-level resources, no resize, nothing by claims."""
        if self.pod_level is not None or self.resize_infeasible or self.claimed:
            return False
        if not (all(map(_as_requested, self.containers)) and all(map(_as_requested, self.init_containers))):
            return False
        if self.pod_level_actual is None or self.pod_level_allocated is None:
            return True
        requests = _summed(self, _NOTHING, lambda each, _: each.resources.requests)
        return requests == self.pod_level_actual and requests == self.pod_level_allocated


def pod_requests(pod: PodResources, counting: RequestCounting) -> dict[str, int]:
    """Return the reserved amounts: cpu in millicores, all other resources in whole units, rounded up.

    Resources that kube-scheduler does not account for (Resource.Add) are left out.
    """
    return rounded({name: amount for name, amount in _requests(pod, counting).items() if _is_accounted(name)})


def extended_requests(pod: PodResources) -> tuple[ExtendedRequests, ...]:
    """Return what the containers request of extended resources, without containers that request none.

    Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go
    (createResourceRequestAndMappings).
    """
    found = []
    for position, each in enumerate((*pod.init_containers, *pod.containers)):
        requests = each.resources.requests
        if any(map(may_be_devices, requests)):
            brief = position < len(pod.init_containers) and not each.sidecar
            names = sorted(requests)
            amounts = [(name, _whole(requests[name]), at) for at, name in enumerate(names) if may_be_devices(name)]
            found.append(ExtendedRequests(position, brief, tuple(amounts)))
    return tuple(found)


def _whole(amount: int) -> int | None:
    """Return an exact amount in whole units, as Quantity.AsInt64: None for a fraction, and for more than 18 digits.

    An API server writes thousands as a suffix, so that they are no digits.
    """
    whole, fraction = divmod(amount, _NANOS)
    digits = abs(whole)
    while digits and not digits % 1000:
        digits //= 1000
    return None if fraction or abs(whole) > MAX_INT64 or digits >= 10**18 else whole


def may_be_devices(resource: str) -> bool:
    """Return whether a DeviceClass may provide a resource (schedutil.IsDRAExtendedResourceName)."""
    is_extended = "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
    return is_extended or resource.startswith(IMPLICIT_PREFIX)


def non_zero_requests(pod: PodResources, counting: RequestCounting) -> tuple[int, int]:
    """Return the millicores and bytes that scoring assumes for the pod. A container without requests gets defaults.

    NodeInfo counts these amounts. In a pod with pod-level requests, defaults apply only to resources that neither the
    pod nor a container requests.
    """
    missing = _MISSING
    if counting.pod_level and _asks_as_a_whole(pod):
        requests = _requests(pod, counting)
        missing = {name: amount for name, amount in _MISSING.items() if name not in requests}
    total = _requests(pod, counting, missing)
    return millis(total.get("cpu", 0)), units(total.get("memory", 0))


def pod_limits(pod: PodResources) -> dict[str, int]:
    """Return the limits of the pod as a whole, in the units of `pod_requests`. A resource without a limit is missing.

    Source: k8s.io/component-helpers resource/helpers.go (PodLimits).
    """
    total = _summed(pod, _NOTHING, lambda each, _: each.resources.limits)
    if pod.pod_level is not None:
        total |= {name: amount for name, amount in pod.pod_level.limits.items() if _has_pod_level(name)}
    for name, amount in pod.overhead.items():
        if total.get(name):
            total[name] += amount
    return rounded(total)


def scored_requests(pod: PodResources) -> tuple[int, int]:
    """Return the millicores and bytes that NodeResourcesFit adds for the incoming pod when it scores a node.

    Its scorers are created without the feature gates (NewFit), so they read neither pod-level requests nor the status
    of the containers.
    """
    return non_zero_requests(pod, _BY_CONTAINER_SPECS)


def is_best_effort(pod: PodResources) -> bool:
    """Return whether the QoS class is BestEffort: no cpu and no memory is requested or limited.

    If the pod has pod-level resources, even empty ones, only these decide.
    """
    if pod.qos_class:
        return pod.qos_class == "BestEffort"
    deciding: Iterable[Resources] = (each.resources for each in (*pod.containers, *pod.init_containers))
    if pod.pod_level is not None:
        deciding = (pod.pod_level,)
    return not any(
        amounts.get(name, 0) > 0
        for resources in deciding
        for amounts in (resources.requests, resources.limits)
        for name in _COMPUTE
    )


def rounded(amounts: Amounts) -> dict[str, int]:
    """Return amounts in the scheduler's units: cpu in millicores, all other resources in whole units."""
    return {name: millis(amount) if name == "cpu" else units(amount) for name, amount in amounts.items()}


def _requests(pod: PodResources, counting: RequestCounting, missing: Amounts = _NOTHING) -> dict[str, int]:
    """Upstream PodRequests. `missing` replaces the missing requests of a container."""
    if not counting.status:
        total = _requested_and_claimed(pod, counting, missing)
    elif counting.aggregates:
        total = _most_of_sums(pod, counting, missing)
    else:
        total = _with_claimed(_summed(pod, missing, lambda each, init: _effective(each, pod, init=init)), pod, counting)
    if counting.pod_level and pod.pod_level is not None and _asks_as_a_whole(pod):
        total |= {name: amount for name, amount in _as_a_whole(pod, pod.pod_level, counting) if _has_pod_level(name)}
    _combine(total, pod.overhead, int.__add__)
    return total


def _as_a_whole(pod: PodResources, requested: Resources, counting: RequestCounting) -> Iterable[tuple[str, int]]:
    """Yield the pod-level requests, without the containers' requests."""
    if not (counting.pod_level_status and counting.status and pod.pod_level_reported):
        return requested.requests.items()
    most = {} if pod.resize_infeasible else dict(requested.requests)
    _combine(most, pod.pod_level_actual or _NOTHING, max)
    _combine(most, pod.pod_level_allocated or _NOTHING, max)
    if counting.aggregates:
        return most.items()
    # Until v1.36 a resource without a request does not count. A resource that only an infeasible spec requests counts
    # as 0.
    return [(name, most.get(name, 0)) for name in requested.requests]


def _most_of_sums(pod: PodResources, counting: RequestCounting, missing: Amounts) -> dict[str, int]:
    """Upstream AggregateContainerRequests since v1.37: sum spec, allocation and status separately, take the maximum."""
    actual, allocated = pod.pod_level_actual, pod.pod_level_allocated
    if not counting.pod_level_status or actual is None or allocated is None:
        # The kubelet adds claimed resources to a container's configured resources, but not to its allocated ones.
        actual = _summed(pod, missing, lambda each, _: _actual(each, pod))
        allocated = _with_claimed(_summed(pod, missing, lambda each, _: _allocated(each, pod)), pod, counting)
    most = dict(actual)
    _combine(most, allocated, max)
    if not pod.resize_infeasible:
        _combine(most, _requested_and_claimed(pod, counting, missing), max)
    return most


def _requested_and_claimed(pod: PodResources, counting: RequestCounting, missing: Amounts) -> dict[str, int]:
    return _with_claimed(_summed(pod, missing, lambda each, _: each.resources.requests), pod, counting)


def _with_claimed(total: dict[str, int], pod: PodResources, counting: RequestCounting) -> dict[str, int]:
    """Add claimed resources to a maximum over the containers (upstream addDRANodeAllocatableClaimResources)."""
    _combine(total, pod.claimed.get(counting.claimed, _NOTHING), int.__add__)
    return total


def _allocated(container: Container, pod: PodResources) -> Amounts:
    """Upstream containerAllocatedRequests."""
    if container.allocated is not None:
        return container.allocated
    return _NOTHING if pod.resize_infeasible else container.resources.requests


def _actual(container: Container, pod: PodResources) -> Amounts:
    """Upstream containerActuatedRequests."""
    return _allocated(container, pod) if container.actual is None else container.actual


def _effective(container: Container, pod: PodResources, *, init: bool) -> Amounts:
    """Upstream determineContainerReqs, until v1.36: the maximum of requested, configured and allocated."""
    if not container.reported or (init and not container.sidecar):
        return container.resources.requests
    most = {} if pod.resize_infeasible else dict(container.resources.requests)
    _combine(most, container.actual or _NOTHING, max)
    _combine(most, container.allocated or _NOTHING, max)
    return most


def _summed(pod: PodResources, missing: Amounts, amounts_of: Callable[[Container, bool], Amounts]) -> dict[str, int]:
    """Return the maximum that is in use at once, while starting or running. `asked` gives each container's amounts.

    The second argument of `asked` is true for an init container.
    """
    running: dict[str, int] = {}
    for container in pod.containers:
        _combine(running, {**missing, **amounts_of(container, False)}, int.__add__)  # noqa: FBT003  one of two kinds
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    # Only the container's own request is compared: the rest was compared when it last grew.
    for container in pod.init_containers:
        requests = {**missing, **amounts_of(container, True)}  # noqa: FBT003  as above
        if container.sidecar:
            _combine(running, requests, int.__add__)
            _combine(sidecars, requests, int.__add__)
            limited = {name: sidecars[name] for name in requests}
        else:
            limited = {name: amount + sidecars.get(name, 0) for name, amount in requests.items()}
        _combine(starting, limited, max)
    _combine(running, starting, max)
    return running


def _as_requested(container: Container) -> bool:
    """Return whether a container's status agrees with its spec, or has no resources."""
    requests = container.resources.requests
    if container.allocated is not None and container.allocated != requests:
        return False
    return container.actual is None or container.actual == requests


def _asks_as_a_whole(pod: PodResources) -> bool:
    """Upstream IsPodLevelRequestsSet."""
    return pod.pod_level is not None and any(map(_has_pod_level, pod.pod_level.requests))


def _combine(total: dict[str, int], amounts: Amounts, operation: Callable[[int, int], int]) -> None:
    for name, amount in amounts.items():
        total[name] = operation(total[name], amount) if name in total else amount


def _has_pod_level(name: str) -> bool:
    return name in _COMPUTE or name.startswith(_HUGE_PAGES)


def _is_accounted(name: str) -> bool:
    """Upstream Resource.Add with schedutil.IsScalarResourceName. `pods` is a resource of nodes only."""
    if name in _NATIVE or name.startswith(_PREFIXES) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")


Origins: TypeAlias = tuple[tuple[str, str], ...]
"""Pairs of a resource and what decides its amount."""
_SURE: Final = MAX_INT64 * 10**6
"""No amount up to this one overflows, not even in thousandths."""

OVERFLOW: Final = "more than an int64 holds: it overflows"


def origins(pod: PodResources, init_names: Sequence[str]) -> Origins:
    """Return what decides the requested amounts that are not just the sums over the app containers.

    That is an init container with the given name, sidecars, the pod as a whole, the overhead, or an overflow.
    """
    large = any(amount > _SURE for each in pod.containers for amount in each.resources.requests.values())
    if not (pod.init_containers or pod.overhead or pod.pod_level is not None or large):
        return ()
    found = _started(pod, init_names)
    if pod.pod_level is not None and _asks_as_a_whole(pod):
        found |= {name: "spec.resources of the pod" for name in pod.pod_level.requests if _has_pod_level(name)}
    for name, amount in pod.overhead.items():
        if amount:
            found[name] = f"{found[name]}, with overhead" if name in found else "with the overhead of its RuntimeClass"
    exact = _requests(pod, RequestCounting())
    whole = {name: capped(amount * 1000 if name == "cpu" else amount) for name, amount in exact.items()}
    for name, amount in rounded(exact).items():
        if amount != whole[name]:
            found[name] = f"{OVERFLOW}, and kube-scheduler counts {amount}"
    return tuple(found.items())


def _started(pod: PodResources, init_names: Sequence[str]) -> dict[str, str]:
    """Return the resources that init containers or sidecars decide, see `_summed`."""
    found: dict[str, str] = {}
    running = dict(_summed(PodResources(pod.containers), _NOTHING, lambda each, _: each.resources.requests))
    sidecars: dict[str, int] = {}
    starting: dict[str, tuple[int, str]] = {}
    for name, container in zip(init_names, pod.init_containers, strict=True):
        for resource, amount in container.resources.requests.items():
            if not container.sidecar:
                most = starting.get(resource, (0, ""))
                starting[resource] = max(most, (amount + sidecars.get(resource, 0), name))
            elif amount:
                _combine(running, {resource: amount}, int.__add__)
                _combine(sidecars, {resource: amount}, int.__add__)
                found[resource] = f"{found[resource]} and {name}" if resource in found else f"with sidecar {name}"
    for resource, (amount, name) in starting.items():
        if amount > running.get(resource, 0):
            found[resource] = f"init container {name} asks for it"
    return found


def resizes(pod: PodResources) -> dict[str, tuple[int, int]]:
    """Return resource -> (actual, asked) amounts of a pod whose resize in place is not done, for what differs.

    Pods with pod-level resources or with claimed ones have none here.
    """
    if pod.pod_level is not None or pod.claimed or all(each.actual is None for each in pod.containers):
        return {}
    actual = rounded(_summed(pod, _NOTHING, lambda each, _: _actual(each, pod)))
    requests = rounded(_summed(pod, _NOTHING, lambda each, _: each.resources.requests))
    return {name: (actual.get(name, 0), amount) for name, amount in requests.items() if amount != actual.get(name, 0)}


# The amounts that predict a pod's usage: the limit of each container, or its request without a limit.
#
# Source: sigs.k8s.io/scheduler-plugins pkg/trimaran/targetloadpacking (PredictUtilisation), koordinator
# pkg/scheduler/plugins/loadaware/estimator (estimatedPodUsed).


class PodLoad(msgspec.Struct, frozen=True, gc=False):
    """The parts of a prediction, in millicores of cpu and bytes of memory. The factors are arguments of the plugins.

    Pods of one controller share one value. Init containers count only in `limits`.
    """

    limited_cpu: int = 0
    """Sum over the containers with a cpu limit."""
    requested_cpu: tuple[int, ...] = ()
    """The request of each container without a limit, sorted. Each is scaled and rounded separately."""
    unstated: int = 0
    """Number of containers with neither a cpu limit nor a cpu request."""
    overhead_cpu: int = 0
    limits: tuple[int, int] = (0, 0)
    """Cpu and memory limits of the pod as a whole (k8s.io/component-helpers PodLimits). 0 means no limit."""


NO_LOAD: Final = PodLoad()
"""The value of a pod without containers."""


def pod_load(pod: PodResources) -> PodLoad:
    """Return the parts for the resources of a pod."""
    limited, unstated = 0, 0
    requested: list[int] = []
    for container in pod.containers:
        resources = container.resources
        if "cpu" in resources.limits:
            limited += millis(resources.limits["cpu"])
        elif "cpu" in resources.requests:
            requested.append(millis(resources.requests["cpu"]))
        else:
            unstated += 1
    limits = pod_limits(pod)
    return PodLoad(
        limited,
        tuple(sorted(requested)),
        unstated,
        millis(pod.overhead.get("cpu", 0)),
        (limits.get("cpu", 0), limits.get("memory", 0)),
    )
