"""The containers of a pod whose resources releases count differently.

For such a pod the mirror keeps all containers. They are written one by one, with their reported status.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from app.explain.conformance_case.encode import V1, present
from app.explain.conformance_case.encode_containers import Containers
from core.objects.pod import Pod
from core.objects.pod_requests import Amounts, Container, PodResources, Resources
from core.releases import ClaimedResources

_NANOS: Final = 10**9


def resources_of(pod: Pod, resources: PodResources) -> Containers:
    """Return containers with a pod's resources, without images and host ports, which all releases count alike."""
    containers = [_container(each, f"c{index}") for index, each in enumerate(resources.containers)]
    starting = [_container(each, f"i{index}") for index, each in enumerate(resources.init_containers)]
    for container, image in zip((*containers, *starting), pod.images, strict=True):
        container["image"] = image
    if pod.host_ports:
        _running(containers, starting)["ports"] = [
            {"containerPort": each.port, "hostPort": each.port, "protocol": each.protocol, "hostIP": each.ip}
            for each in sorted(pod.host_ports)
        ]
    spec: V1 = {"containers": containers, "initContainers": starting, "overhead": _quantities(resources.overhead)}
    status: V1 = {
        "containerStatuses": _statuses(resources.containers, "c"),
        "initContainerStatuses": _statuses(resources.init_containers, "i"),
        "qosClass": resources.qos_class,
    }
    spec, status = present(spec), present(status)
    if resources.pod_level is not None:
        spec["resources"] = _resources(resources.pod_level)
    if resources.pod_level_reported:
        status["resources"] = _reported(resources.pod_level_actual)
    if resources.pod_level_allocated is not None:
        status["allocatedResources"] = _quantities(resources.pod_level_allocated)
    if resources.claimed:
        status["nodeAllocatableResourceClaimStatuses"] = [_claim(resources.claimed)]
    pending: list[V1] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return Containers(spec, status, pending if resources.resize_infeasible else [])


def _running(containers: list[V1], starting: list[V1]) -> V1:
    """Return a container that runs as long as the pod does."""
    return containers[0] if containers else next(each for each in starting if "restartPolicy" in each)


def _container(container: Container, name: str) -> V1:
    restarts = {"restartPolicy": "Always"} if container.sidecar else {}
    return {"name": name, **restarts, "resources": _resources(container.resources)}


def _statuses(containers: Sequence[Container], prefix: str) -> list[V1]:
    written: list[V1] = []
    for index, each in enumerate(containers):
        status: V1 = {"name": f"{prefix}{index}"}
        if each.reported:
            status["resources"] = _reported(each.actual)
        if each.allocated is not None:
            status["allocatedResources"] = _quantities(each.allocated)
        if len(status) > 1:
            written.append(status)
    return written


def _reported(actual: Amounts | None) -> V1:
    return {} if actual is None else {"requests": _quantities(actual)}


def _claim(claimed: Mapping[ClaimedResources, Amounts]) -> V1:
    """Return one claim that gives the pod as much as all of its claims, in the form of each release."""
    mapped = _quantities(claimed.get(ClaimedResources.MAPPED, {}))
    return {
        "resourceClaimName": "claim",
        **present({"resources": _quantities(claimed.get(ClaimedResources.LISTED, {}))}),
        **present({"mapping": [{"name": name, "quantity": quantity} for name, quantity in mapped.items()]}),
    }


def _resources(resources: Resources) -> V1:
    return present({"requests": _quantities(resources.requests), "limits": _quantities(resources.limits)})


def _quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return exact amounts as quantities. Whole amounts have no suffix."""
    return {name: f"{amount}n" if amount % _NANOS else str(amount // _NANOS) for name, amount in amounts.items()}
