"""Devices of the bench cluster by formulae: eight on each node, half of them allocated, and pods that ask for more.

There are two clusters: one of whole GPUs, and one whose devices are partitions of two GPUs a node.
"""

from collections.abc import Iterator
from typing import Final

from tests.bench.cluster import Object, node_name

DRIVER: Final = "gpu.example.com"
CLASS: Final = DRIVER
PER_NODE: Final = 8
_NAMESPACE: Final = "ns-000"
_PRODUCTS: Final = (("Large", "Nine", "141Gi"), ("Medium", "Eight", "80Gi"), ("Small", "Eight", "40Gi"))
"""Product, architecture and memory."""
_READ: Final = ("productName", "brand", "architecture", "driverVersion", "cudaVersion", "numa", "index", "type")
"""Attributes that a selector may read besides the memory: each new class reads another set of them."""
_PARTS: Final = (("whole", 7, "80Gi"), ("half-a", 2, "20Gi"), ("half-b", 2, "20Gi"), ("half-c", 2, "20Gi"))
"""The partitions of one GPU: name, compute slices and memory."""
_TAKEN: Final = (("half-b", "half-c"), ("half-a", "half-b", "half-c"), ("half-a",), ("whole",))
"""Partitions of a GPU that may be in use together."""
_BOTH: Final = ((0, 0), (1, 3), (2, 1), (1, 2))
"""Places in _TAKEN for the two GPUs of a node, in turns. Each has four of eight devices."""


def device_class() -> Object:
    """Make the DeviceClass."""
    expression = f'device.driver == "{DRIVER}"'
    return {"metadata": {"name": CLASS}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def whole_slices(nodes: int) -> Iterator[Object]:
    """Make a ResourceSlice of eight GPUs for each node."""
    for index in range(nodes):
        yield _slice(index, "gpus", 1, devices=[_gpu(index, at) for at in range(PER_NODE)])


def _gpu(index: int, at: int) -> Object:
    product, architecture, memory = _PRODUCTS[index % len(_PRODUCTS)]
    # All GPUs of a node are on one fabric, or four on each of two.
    fabric = f"{index}-{at // 4 if index % 8 >= 4 else 0}"
    attributes = _attributes(index, at, product, architecture, "gpu") | {"fabric": {"string": fabric}}
    return {"name": f"gpu-{at}", "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def _attributes(index: int, at: int, product: str, architecture: str, kind: str) -> Object:
    return {
        "uuid": {"string": f"GPU-{index:08x}-{at:04x}-4a6b-9c1d-{index * PER_NODE + at:012x}"},
        "productName": {"string": f"Example {product}"},
        "brand": {"string": "Example"},
        "architecture": {"string": architecture},
        "driverVersion": {"version": f"570.{86 + index % 3}.15"},
        "cudaVersion": {"version": "12.8.0"},
        "numa": {"int": at // 4},
        "index": {"int": at},
        "type": {"string": kind},
        "pcieRoot": {"string": f"pci0000:{at:02x}"},
    }


def partition_slices(nodes: int) -> Iterator[Object]:
    """Make two ResourceSlices for each node: the counters of two GPUs, and four partitions of each."""
    for index in range(nodes):
        counters = [{"name": f"gpu-{gpu}", "counters": _counters(7, "80Gi")} for gpu in range(2)]
        yield _slice(index, "counters", 2, sharedCounters=counters)
        devices = [_partition(index, gpu, at) for gpu in range(2) for at in range(len(_PARTS))]
        yield _slice(index, "partitions", 2, devices=devices)


def _partition(index: int, gpu: int, at: int) -> Object:
    name, slices, memory = _PARTS[at]
    product, architecture, _ = _PRODUCTS[index % len(_PRODUCTS)]
    attributes = _attributes(index, 4 * gpu + at, product, architecture, "gpu" if name == "whole" else "partition")
    return {
        "name": f"gpu-{gpu}-{name}",
        "attributes": attributes | {"slices": {"int": slices}},
        "capacity": {"memory": {"value": memory}},
        "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": _counters(slices, memory)}],
    }


def _counters(slices: int, memory: str) -> Object:
    return {"slices": {"value": str(slices)}, "memory": {"value": memory}}


def _slice(index: int, suffix: str, count: int, **spec: list[Object]) -> Object:
    node = node_name(index)
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    return {
        "metadata": {"name": f"{node}-{suffix}", "uid": f"{node}-{suffix}", "resourceVersion": "1"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, **spec},
    }


def whole_claims(nodes: int) -> Iterator[Object]:
    """Make the claims that hold half of the GPUs: of four nodes all of one, none of another, and some of two."""
    for index in range(nodes):
        taken = _taken(index)
        if len(taken) == PER_NODE:
            yield _allocated(index, "all", [f"gpu-{at}" for at in taken])
        else:
            for at in taken:
                yield _allocated(index, str(at), [f"gpu-{at}"])


def _taken(index: int) -> list[int]:
    mask = ((index - index % 4) * 2_654_435_761 >> 9) & 0xFF
    in_turns = (0, 0xFF, mask, ~mask)[index % 4]
    return [at for at in range(PER_NODE) if in_turns >> at & 1]


def partition_claims(nodes: int) -> Iterator[Object]:
    """Make the claims that hold half of the partitions, as far as the counters allow it."""
    for index in range(nodes):
        for gpu, place in enumerate(_BOTH[index % len(_BOTH)]):
            for name in _TAKEN[place]:
                yield _allocated(index, f"{gpu}-{name}", [f"gpu-{gpu}-{name}"])


def _allocated(index: int, suffix: str, devices: list[str]) -> Object:
    """Make the claim of a running pod."""
    node = node_name(index)
    name = f"held-{node}-{suffix}"
    results = [{"request": "gpus", "driver": DRIVER, "pool": node, "device": each} for each in devices]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    made = _claim(name, {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": len(devices)})
    made["status"] = {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
    }
    return made


def one(number: int) -> Object:
    """Return the spec of a claim for one GPU. Claims of one number are alike, and others have other selectors."""
    return {"requests": [_request(_selector(number), 1)]}


def eight(number: int) -> Object:
    """Return the spec of a claim for eight GPUs of one fabric."""
    constraint = {"requests": ["gpus"], "matchAttribute": f"{DRIVER}/fabric"}
    return {"requests": [_request(_selector(number), PER_NODE)], "constraints": [constraint]}


def a_partition(number: int) -> Object:
    """Return the spec of a claim for a partition of two slices."""
    slices = f'device.attributes["{DRIVER}"].slices == 2'
    return {"requests": [_request(f"{slices} && {_selector(number)}", 1)]}


def _selector(number: int) -> str:
    """Return an expression that no other number has, and that reads another set of attributes."""
    capacity, attributes = (f'device.{each}["{DRIVER}"]' for each in ("capacity", "attributes"))
    terms = [f'{capacity}.memory.compareTo(quantity("{1 + number}Mi")) >= 0']
    read = [each for at, each in enumerate(_READ) if number % 2 ** len(_READ) >> at & 1]
    terms += [f"{attributes}.{each} != {_other(each, number)}" for each in read]
    return " && ".join(terms)


def _other(attribute: str, number: int) -> str:
    if attribute in ("numa", "index"):
        return str(100 + number)
    return f'semver("9.9.{number}")' if attribute.endswith("Version") else f'"other-{number}"'


def _request(expression: str, count: int) -> Object:
    selectors = [{"cel": {"expression": expression}}]
    return {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count, "selectors": selectors}


def incoming(name: str, spec: Object) -> tuple[Object, Object]:
    """Make an incoming pod, and the claim that was made for it from a template."""
    request, rest = spec["requests"][0], {key: each for key, each in spec.items() if key != "requests"}
    claim = _claim(f"{name}-gpus", request)
    claim["spec"]["devices"] |= rest
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    claim["metadata"]["ownerReferences"] = [owner]
    pod = {
        "metadata": {"name": name, "namespace": _NAMESPACE, "uid": name},
        "spec": {
            "containers": [{"name": "c", "image": "img", "resources": {"claims": [{"name": "gpus"}]}}],
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": f"{name}-gpus"}]},
    }
    return pod, claim


def _claim(name: str, exactly: Object) -> Object:
    return {
        "metadata": {"name": name, "namespace": _NAMESPACE, "uid": name, "resourceVersion": "1"},
        "spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}},
    }
