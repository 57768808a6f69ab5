"""Devices that pods have by DRA, judged over the API server's own objects. Nothing of Kindred is used.

A pod has devices by the claims that it names. It also has them by the claim that kube-scheduler makes for a resource of
a DeviceClass, if its node has no such resource in `status.allocatable`. Whether a node with a device plugin has enough
is for tests.e2e.kubelet to judge.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tests.e2e.cluster import NAMESPACE

Manifest = Mapping[str, Any]

RESOURCE_API: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{RESOURCE_API}/namespaces/{NAMESPACE}/resourceclaims"
CLASSES: Final = f"{RESOURCE_API}/deviceclasses"
SLICES: Final = f"{RESOURCE_API}/resourceslices"

_READ_REQUESTS: Final = frozenset({"name", "exactly"})
_READ_RESULTS: Final = frozenset({"request", "driver", "pool", "device"})


class State(NamedTuple):
    """What the API server has. Pods and claims are of one namespace."""

    nodes: Sequence[Manifest]
    pods: Sequence[Manifest]
    slices: Sequence[Manifest]
    claims: Sequence[Manifest]
    classes: Sequence[Manifest]


class _Device(NamedTuple):
    driver: str
    pool: str
    name: str


def misallocations(state: State) -> list[str]:
    """Return `FAULT: ...` for each thing that is wrong with the devices of the pods that have a node.

    Raises ValueError for a field that is more than the tests use.
    """
    claims = {_name(claim): claim for claim in state.claims}
    nodes = {
        _Device(each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]): each["spec"]["nodeName"]
        for each in state.slices
        for device in each["spec"]["devices"]
    }
    found = [*_taken_twice(state.claims), *_left_over(state)]
    for pod in state.pods:
        if not pod["spec"].get("nodeName"):
            continue
        for named in pod["spec"].get("resourceClaims", ()):
            found += _faults(pod, claims.get(named["resourceClaimName"]), nodes)
        wanted = _wanted_of_classes(pod, state)
        made_for = pod.get("status", {}).get("extendedResourceClaimStatus", {})
        if wanted or made_for:
            claim = claims.get(made_for.get("resourceClaimName", ""))
            found += [*_faults(pod, claim, nodes), *_unlike(pod, wanted, made_for, claim)]
    return found


def _taken_twice(claims: Sequence[Manifest]) -> Iterator[str]:
    """Yield a line for each device that several claims have, or one claim several times."""
    users: defaultdict[_Device, list[str]] = defaultdict(list)
    for claim in claims:
        for device in _devices(claim):
            users[device].append(_name(claim))
    for device, names in users.items():
        if len(names) > 1:
            yield f"Twice: {device.name} of {device.pool} is allocated to {', '.join(names)}"


def _left_over(state: State) -> Iterator[str]:
    """Yield a line for each claim that keeps devices without a pod that has a node."""
    bound = {pod["metadata"]["uid"] for pod in state.pods if pod["spec"].get("nodeName")}
    for claim in state.claims:
        reserved = _reserved_for(claim)
        if reserved - bound or (_devices(claim) and not reserved):
            yield f"LeftOver: {_name(claim)} is kept for {sorted(reserved - bound) or 'no pod'}"


def _faults(pod: Manifest, claim: Manifest | None, nodes: Mapping[_Device, str]) -> Iterator[str]:
    """Yield a line for each thing that is wrong with one claim of a pod. `nodes`: where the devices are."""
    if claim is None:
        yield f"NoClaim: {_name(pod)} needs a claim that is not there"
        return
    if pod["metadata"]["uid"] not in _reserved_for(claim):
        yield f"NotReserved: {_name(claim)} is not reserved for {_name(pod)}"
    node = pod["spec"]["nodeName"]
    for device in _devices(claim):
        if nodes.get(device) != node:
            where = nodes.get(device, "no node")
            yield f"Elsewhere: {_name(pod)} is on {node}, its {device.name} of {device.pool} is on {where}"
    allocated = Counter(result["request"] for result in _results(claim))
    asked = _asked(claim)
    if allocated != asked:
        yield f"Count: {_name(claim)} asks for {dict(asked)} devices, and has {dict(allocated)}"


def _wanted_of_classes(pod: Manifest, state: State) -> Counter[str]:
    """Return the resources that a pod can have on its node only by a DeviceClass, with their amounts."""
    of_classes = {each["spec"].get("extendedResourceName") for each in state.classes}
    for node in state.nodes:
        if _name(node) == pod["spec"]["nodeName"]:
            of_classes -= {name for name, amount in node["status"]["allocatable"].items() if amount != "0"}
    wanted: Counter[str] = Counter()
    for container in pod["spec"]["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            if resource in of_classes:
                wanted[resource] += int(amount)
    return wanted


def _unlike(pod: Manifest, wanted: Counter[str], made_for: Manifest, claim: Manifest | None) -> Iterator[str]:
    """Yield a line if the claim that was made for a pod is for other resources than the pod wants."""
    if claim is None:
        return
    mapped = {each["resourceName"] for each in made_for["requestMappings"]}
    made = _asked(claim).total()
    if mapped != wanted.keys() or made != wanted.total():
        yield f"Unlike: {_name(pod)} wants {dict(wanted)}, its claim is for {made} of {sorted(mapped)}"


def _asked(claim: Manifest) -> Counter[str]:
    """Return the requests of a claim, with the number of devices of each."""
    asked: Counter[str] = Counter()
    for request in claim["spec"]["devices"]["requests"]:
        if request.keys() - _READ_REQUESTS or request["exactly"].get("allocationMode", "ExactCount") != "ExactCount":
            raise ValueError(f"a request that this judge cannot read: {request}")
        asked[request["name"]] = request["exactly"].get("count", 1)
    return asked


def _devices(claim: Manifest) -> list[_Device]:
    return [_Device(each["driver"], each["pool"], each["device"]) for each in _results(claim)]


def _results(claim: Manifest) -> list[Manifest]:
    """Return the allocated devices of a claim. None are, before a scheduler has allocated it."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results: list[Manifest] = allocation.get("devices", {}).get("results", [])
    for result in results:
        if result.keys() - _READ_RESULTS:
            raise ValueError(f"an allocation that this judge cannot read: {result}")
    return results


def _reserved_for(claim: Manifest) -> set[str]:
    """Return the uids of the pods that a claim is reserved for."""
    return {each["uid"] for each in claim.get("status", {}).get("reservedFor", ()) if each["resource"] == "pods"}


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name
