"""Nodes with exactly the devices, CPUs and ports that some pods need, and these pods.

Whatever the order, each pod finds a node as long as the rules are kept: the devices of one kind are not those of
another. CPUs, and the resource of device plugins, are of two kinds of pods: a node has room for a pod of the smaller
request beside all others, and no room for one more of the larger request in its place.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, ZONE, node, pod, required, term

DRIVER: Final = "devices.example.com"
ANY_DEVICE: Final = "any-device"
"""The DeviceClass of all devices of the driver."""
GPU: Final = "gpu"
"""The DeviceClass that stands for RESOURCE, and the model of its devices."""
RESOURCE: Final = "example.com/gpu"
SINGLE, PAIR, APART, SHARED = "single", "pair", "apart", "shared"
"""Kinds of pods with claims, each with a model of devices of its own."""

WITH_DRIVER: Final = 30
WITH_PLUGIN: Final = 4
NODES: Final = WITH_DRIVER + WITH_PLUGIN
_OF_PLUGIN: Final = 3
"""What a pod requests of a device plugin. A node has that, and what a pod of the claims scheduler requests."""
_EACH: Final = 2  # devices of each model on a node
_SHARED_EVERY: Final = 6  # nodes
_SHARING: Final = 3  # pods with one claim
_FILLING: Final = 3  # pods that fill the CPUs of a node, but for the one that a pod of APART requests
_FILLING_CPU: Final = 2
_ZONES: Final = 3
_TOGETHER: Final = 3  # groups
_TOGETHER_SIZE: Final = 32
_APART_GROUPS: Final = 2


def classes() -> list[Manifest]:
    """Return the DeviceClasses."""
    of_driver = f'device.driver == "{DRIVER}"'
    gpus = _cel(f"{of_driver} && {_is_model(GPU)}")
    return [
        _made("DeviceClass", ANY_DEVICE, selectors=[_cel(of_driver)]),
        _made("DeviceClass", GPU, selectors=[gpus], extendedResourceName=RESOURCE),
    ]


def nodes() -> Iterator[Manifest]:
    """Give nodes of the driver, and nodes that offer RESOURCE by a device plugin."""
    filled = _FILLING * _FILLING_CPU
    common = {"memory": "64Gi", "pods": "110"}
    for index in range(WITH_DRIVER):
        yield node(index, _ZONES, {"cpu": str(filled + 1), **common})
    for index in range(WITH_DRIVER, NODES):
        yield node(index, _ZONES, {"cpu": str(filled), RESOURCE: str(_OF_PLUGIN + _EACH), **common})


def slices() -> Iterator[Manifest]:
    """Give a ResourceSlice for each node of the driver."""
    for index in range(WITH_DRIVER):
        shared = [SHARED] if index % _SHARED_EVERY == 0 else []
        yield resource_slice(f"node-{index:04}", [SINGLE, PAIR, APART, GPU] * _EACH + shared)


def resource_slice(node_name: str, models: Iterable[str]) -> Manifest:
    """Return the slice of a node, with a device of each model in turn."""
    devices = [
        {"name": f"device-{number}", "attributes": {"model": {"string": model}}} for number, model in enumerate(models)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    return _made("ResourceSlice", f"{node_name}-devices", driver=DRIVER, nodeName=node_name, pool=pool, devices=devices)


def claims() -> Iterator[Manifest]:
    """Give the claims of all pods that name one. Only of APART are there more devices."""
    for number in range(WITH_DRIVER * _EACH):
        yield claim(f"{SINGLE}-{number}", SINGLE)
    for number in range(WITH_DRIVER):
        yield claim(f"{PAIR}-{number}", PAIR, _EACH)
        yield claim(f"{APART}-{number}", APART)
    for number in range(WITH_DRIVER // _SHARED_EVERY):
        yield claim(f"{SHARED}-{number}", SHARED)


def claim(name: str, model: str, count: int = 1) -> Manifest:
    """Return a claim of some devices of a model."""
    exactly = {"deviceClassName": ANY_DEVICE, "count": count, "selectors": [_cel(_is_model(model))]}
    return _made("ResourceClaim", name, devices={"requests": [{"name": "wanted", "exactly": exactly}]})


def pods(scheduler_name: str, claims_scheduler: str) -> list[Manifest]:
    """Return pods of all kinds, mixed. Those that need DRA are for the claims scheduler."""
    ordinary = [_with_ports(), _apart(), _filling(), _together(), _of_plugin()]
    devices = [_with_one(), _with_pairs(), _with_apart(), _with_shared(), _of_class()]
    mixed = []
    for row in zip_longest(*ordinary, *devices):
        for number, made in enumerate(row):
            if made is not None:
                made["spec"]["schedulerName"] = scheduler_name if number < len(ordinary) else claims_scheduler
                mixed.append(made)
    return mixed


def claiming(name: str, claim_name: str, *, cpu: str = "0", **fields: Any) -> Manifest:  # noqa: ANN401  # those of `pod`
    """Return a pod that names a claim."""
    made = pod(name, cpu=cpu, resourceClaims=[{"name": "devices", "resourceClaimName": claim_name}], **fields)
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
    return made


def requesting(name: str, amount: int, **fields: Any) -> Manifest:  # noqa: ANN401  # those of `pod`
    """Return a pod that requests RESOURCE."""
    made = pod(name, cpu="0", **fields)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"][RESOURCE] = resources.setdefault("limits", {})[RESOURCE] = str(amount)
    return made


def _with_one() -> Iterator[Manifest]:
    """Yield a pod for each device of a model."""
    for number in range(WITH_DRIVER * _EACH):
        yield claiming(f"{SINGLE}-{number}", f"{SINGLE}-{number}")


def _with_pairs() -> Iterator[Manifest]:
    """Yield pods that take both devices of a model on a node."""
    for number in range(WITH_DRIVER):
        yield claiming(f"{PAIR}-{number}", f"{PAIR}-{number}")


def _with_apart() -> Iterator[Manifest]:
    """Yield pods with a device and a CPU each, of which no two stand on one node, though its devices are enough."""
    for number in range(WITH_DRIVER):
        yield claiming(f"{APART}-{number}", f"{APART}-{number}", cpu="1", **_alone(APART))


def _with_shared() -> Iterator[Manifest]:
    """Yield pods of which some share a claim, so they stand on one node."""
    for number in range(WITH_DRIVER // _SHARED_EVERY):
        for sharing in range(_SHARING):
            yield claiming(f"{SHARED}-{number}-{sharing}", f"{SHARED}-{number}")


def _of_class() -> Iterator[Manifest]:
    """Yield a pod with RESOURCE for each node: by the DeviceClass, or by a device plugin where there is one."""
    for number in range(NODES):
        yield requesting(f"gpu-{number}", _EACH, **_alone(GPU))


def _of_plugin() -> Iterator[Manifest]:
    """Yield a pod for each node with a device plugin. No other node has RESOURCE for a scheduler without DRA."""
    for number in range(WITH_PLUGIN):
        yield requesting(f"plugin-{number}", _OF_PLUGIN)


def _with_ports() -> Iterator[Manifest]:
    """Yield a pod for each node, all with the same host port."""
    for number in range(NODES):
        yield pod(f"port-{number}", cpu="0", host_port=8080)


def _apart() -> Iterator[Manifest]:
    """Yield pods of which no two of a group stand on one node."""
    for group in range(_APART_GROUPS):
        for number in range(NODES):
            yield pod(f"alone-{group}-{number}", cpu="0", **_alone(f"alone-{group}"))


def _filling() -> Iterator[Manifest]:
    """Yield pods that take all CPUs but those of APART."""
    for number in range(NODES * _FILLING):
        yield pod(f"filling-{number}", cpu=str(_FILLING_CPU))


def _together() -> Iterator[Manifest]:
    """Yield pods of which each group stands in one zone."""
    for group in range(_TOGETHER):
        labels = {"group": f"together-{group}"}
        for number in range(_TOGETHER_SIZE):
            yield pod(
                f"together-{group}-{number}", labels, cpu="0", affinity=required("podAffinity", term(labels, ZONE))
            )


def _alone(group: str) -> dict[str, Any]:
    """Return fields of a pod that stands on no node with another one of its group."""
    labels = {"group": group}
    return {"labels": labels, "affinity": required("podAntiAffinity", term(labels, HOSTNAME))}


def _made(kind: str, name: str, **spec: object) -> Manifest:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _cel(expression: str) -> Manifest:
    return {"cel": {"expression": expression}}


def _is_model(model: str) -> str:
    return f'device.attributes["{DRIVER}"].model == "{model}"'
