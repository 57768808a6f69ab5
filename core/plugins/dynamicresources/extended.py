"""The claim that kube-scheduler makes for the extended resources of a pod, as it would be on one node.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from core.objects.devices import ClaimRequest, DeviceRequest, ResourceClaim
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.pod_requests import ExtendedRequests, may_be_devices
from core.plugins.dynamicresources.inventory import Inventory

NAME: Final = "<extended-resources>"
"""The name of the claim before it is stored."""


def claim_for_extended(inventory: Inventory, pod: Pod) -> ResourceClaim | None:
    """Return the claim of a pod whose extended resources devices may provide, or None.

    It is the one that an earlier attempt stored, or else one without requests. `requests_on` has those of each node.
    """
    if not any(amount and inventory.class_for(name) for name, amount in extended(pod).items()):
        return None
    stored = inventory.made_for.get(pod.uid, {}).values()
    for claim in stored:
        if claim.controller is not None and claim.controller.name == pod.name:
            return claim
    return ResourceClaim(namespace=pod.namespace, name=NAME)


def extended(pod: Pod) -> Mapping[str, int]:
    """Return the requests of a pod that devices may provide."""
    return {name: amount for name, amount in pod.requests.items() if may_be_devices(name)}


def provided_on(inventory: Inventory, requested: Mapping[str, int], node: Node) -> frozenset[str]:
    """Return the resources that devices have to provide on a node."""
    return frozenset(
        name
        for name, amount in requested.items()
        if amount and not node.allocatable.get(name, 0) and inventory.class_for(name) is not None
    )


def lacking_on(inventory: Inventory, requested: Mapping[str, int], node: Node) -> list[str]:
    """Return the resources that neither a node nor devices provide."""
    names = (name for name, amount in requested.items() if amount and name not in node.allocatable)
    return [name for name in names if inventory.class_for(name) is None]


def requests_for(inventory: Inventory, pod: Pod, resources: Collection[str]) -> tuple[ClaimRequest, ...]:
    """Return the requests for devices in place of some extended resources. Upstream createRequestsAndMappings."""
    found: list[DeviceRequest] = []
    for resource in sorted(resources):
        of_class = inventory.class_for(resource)
        if of_class is None:
            continue
        lasting: dict[int, DeviceRequest] = {}
        for each in pod.demand.extended_requests:
            if not each.brief and (request := _request(each, resource, of_class.name, ())) is not None:
                lasting[each.position] = request
        largest: DeviceRequest | None = None
        for each in pod.demand.extended_requests:
            if each.brief:
                later = [lasting[at] for at in sorted(lasting) if at >= each.position]
                request = _request(each, resource, of_class.name, later)
                if request is not None and (largest is None or largest.count < request.count):
                    largest = request
        found += [*([] if largest is None else [largest]), *[lasting[at] for at in sorted(lasting)]]
    return tuple([ClaimRequest(each.name, each) for each in sorted(found, key=lambda each: each.name)])


def _request(
    container: ExtendedRequests, resource: str, device_class: str, reusable: Sequence[DeviceRequest]
) -> DeviceRequest | None:
    """Return the request of a container, without devices of later containers that it can use first."""
    found = next(((amount, at) for name, amount, at in container.amounts if name == resource), None)
    if found is None or not found[0]:
        return None
    amount, at = found[0], found[1]
    for each in reusable:
        amount -= each.count
        if amount <= 0:
            return None
    return DeviceRequest(f"container-{container.position}-request-{at}", device_class, count=amount)
