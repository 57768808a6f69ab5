"""What the scheduler reserves for a pod, from the resources of its containers, and whether it is best effort.

Source: k8s.io/component-helpers resource/helpers.go (PodRequests, with UseStatusResources and pod-level resources, as
NodeInfo calls it with the feature gates of v1.34), k8s.io/kubernetes pkg/scheduler/framework/types.go
(CalculateResource, getNonMissingContainerRequests), pkg/scheduler/framework/plugins/noderesources (NewFit,
calculatePodResourceRequest) and pkg/apis/core/v1/helper/qos/qos.go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from core.objects.label_validation import label_key_errors
from core.objects.quantity import millis, nanos, units

Amounts: TypeAlias = Mapping[str, int]
"""Resource name -> exact amount, as `quantity.nanos` gives it: sums are rounded, not their parts."""

_COMPUTE: Final = ("cpu", "memory")
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"
_PREFIXES: Final = (_HUGE_PAGES, "attachable-volumes-")
_NOTHING: Final[Amounts] = {}
_MISSING: Final[Amounts] = {"cpu": nanos("100m"), "memory": nanos("200Mi")}
"""What a container that asks for none is taken to use (schedutil.DefaultMilliCPURequest, DefaultMemoryRequest)."""


class Resources(msgspec.Struct, frozen=True, gc=False):
    """Requests and limits of a container, or of a pod as a whole."""

    requests: Amounts = {}
    limits: Amounts = {}


class Container(msgspec.Struct, frozen=True, gc=False):
    """A container's resources. `sidecar` is an init container with restartPolicy Always.

    `actual` is what its status reports as configured, `allocated` what the node has set aside, while it is resized in
    place; `actual` is None when the status reports no resources, and then `allocated` does not count either.
    """

    resources: Resources = Resources()
    sidecar: bool = False
    actual: Amounts | None = None
    allocated: Amounts = {}


class PodResources(msgspec.Struct, frozen=True, gc=False):
    """All that the resources of a pod follow from.

    `pod_level` is None when the pod has none of its own. `resize_infeasible` is a PodResizePending condition that says
    so: what was asked for will not come. `qos_class` is what the status says, empty when it says nothing.
    """

    containers: Sequence[Container] = ()
    init_containers: Sequence[Container] = ()
    pod_level: Resources | None = None
    overhead: Amounts = {}
    resize_infeasible: bool = False
    qos_class: str = ""


def pod_requests(pod: PodResources) -> dict[str, int]:
    """Return what is reserved: cpu in millicores, all others in whole units, rounded up.

    Names that kube-scheduler does not account (Resource.Add) are left out.
    """
    return rounded({name: amount for name, amount in _requests(pod).items() if _is_accounted(name)})


def non_zero_requests(pod: PodResources) -> tuple[int, int]:
    """Return the millicores and the bytes that scoring takes the pod for: a container that asks for none uses some.

    This is what NodeInfo counts. In a pod with requests of its own, only what nothing in it asks for is made up.
    """
    missing = _MISSING
    if pod.pod_level is not None and any(map(_has_pod_level, pod.pod_level.requests)):
        asked = _requests(pod)
        missing = {name: amount for name, amount in _MISSING.items() if name not in asked}
    total = _requests(pod, missing)
    return millis(total.get("cpu", 0)), units(total.get("memory", 0))


def scored_requests(pod: PodResources) -> tuple[int, int]:
    """Return the millicores and the bytes that NodeResourcesFit adds for the pod itself when it scores a node.

    Its scorers are made without the feature gates (NewFit): they look neither at requests of the pod as a whole nor at
    the status of its containers.
    """
    return non_zero_requests(
        PodResources(
            [Container(each.resources, each.sidecar) for each in pod.containers],
            [Container(each.resources, each.sidecar) for each in pod.init_containers],
            overhead=pod.overhead,
        )
    )


def is_best_effort(pod: PodResources) -> bool:
    """Tell whether QoS class is BestEffort: no cpu and no memory asked for or limited.

    The resources of a pod as a whole decide alone where there are any, even empty ones.
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
    """Return amounts in the units that the scheduler counts in: cpu in millicores, all others whole."""
    return {name: millis(amount) if name == "cpu" else units(amount) for name, amount in amounts.items()}


def _requests(pod: PodResources, missing: Amounts = _NOTHING) -> dict[str, int]:
    """Upstream PodRequests; `missing` stands in for what a container does not ask for."""
    total = _container_requests(pod, missing)
    if pod.pod_level is not None:
        total |= {name: amount for name, amount in pod.pod_level.requests.items() if _has_pod_level(name)}
    _combine(total, pod.overhead, int.__add__)
    return total


def _container_requests(pod: PodResources, missing: Amounts) -> dict[str, int]:
    """Upstream AggregateContainerRequests: the most that is held at once, starting or running."""
    running: dict[str, int] = {}
    for container in pod.containers:
        _combine(running, {**missing, **_effective(container, pod)}, int.__add__)
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    # Only what a container asks for itself is compared: the rest of what is held then, was compared when it last grew.
    for container in pod.init_containers:
        if container.sidecar:
            requests = {**missing, **_effective(container, pod)}
            _combine(running, requests, int.__add__)
            _combine(sidecars, requests, int.__add__)
            held = {name: sidecars[name] for name in requests}
        else:
            requests = {**missing, **container.resources.requests}
            held = {name: amount + sidecars.get(name, 0) for name, amount in requests.items()}
        _combine(starting, held, max)
    _combine(running, starting, max)
    return running


def _effective(container: Container, pod: PodResources) -> Amounts:
    """Upstream determineContainerReqs: the most of what is asked for, configured and allocated."""
    if container.actual is None:
        return container.resources.requests
    most = {} if pod.resize_infeasible else dict(container.resources.requests)
    _combine(most, container.actual, max)
    _combine(most, container.allocated, max)
    return most


def _combine(total: dict[str, int], amounts: Amounts, operation: Callable[[int, int], int]) -> None:
    for name, amount in amounts.items():
        total[name] = operation(total[name], amount) if name in total else amount


def _has_pod_level(name: str) -> bool:
    return name in _COMPUTE or name.startswith(_HUGE_PAGES)


def _is_accounted(name: str) -> bool:
    """Upstream Resource.Add with schedutil.IsScalarResourceName; `pods` is a node's affair."""
    if name in _NATIVE or name.startswith(_PREFIXES) or "kubernetes.io/" in name:
        return True
    return "/" in name and not name.startswith("requests.") and not label_key_errors(f"requests.{name}")
