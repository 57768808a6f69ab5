"""Small worlds with devices, as v1 objects, and what the plugin answers to a pod in them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.conformance.device_cases import response

V1 = dict[str, Any]
DRIVER: Final = "gpu.example.com"
OF_DRIVER: Final = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
FAILS: Final = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "a"'}}
"""A selector that has an error on devices without the attribute `model`."""
NEWEST: Final = "1.37"


def device(name: str, attributes: Mapping[str, Any] | None = None, **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a device."""
    return {"name": name, **({"attributes": attributes} if attributes else {}), **fields}


def slice_of(
    name: str,
    devices: Sequence[V1],
    pool: str = "pool",
    *,
    generation: int = 1,
    count: int = 1,
    **fields: Any,  # noqa: ANN401 - of any kind
) -> V1:
    """Return a slice. Without another choice of nodes it is for n0."""
    of_pool = {"name": pool, "generation": generation, "resourceSliceCount": count}
    choices = {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}
    chosen = {} if choices & fields.keys() else {"nodeName": "n0"}
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": of_pool, "devices": [*devices], **chosen, **fields},
    }


def request(name: str = "r", **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a request for exactly one device of the class, or as the fields say."""
    return {"name": name, "exactly": alternative(**fields)}


def alternative(name: str = "", **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a subrequest."""
    named = {"name": name} if name else {}
    return {**named, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **fields}


def claim(requests: Sequence[V1], name: str = "c", status: V1 | None = None, **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a claim."""
    found = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [*requests], **fields}},
    }
    return found if status is None else {**found, "status": status}


def in_use(*devices: str, pool: str = "pool", **fields: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return the status of a claim that has devices."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": each, **fields} for each in devices]
    return {"allocation": {"devices": {"results": results}}}


def world(slices: Sequence[V1], claims: Sequence[V1], nodes: int = 1, release: str = NEWEST, **members: Any) -> V1:  # noqa: ANN401 - of any kind
    """Return a case: a pod with the claims whose names begin with `c`."""
    mine = [each["metadata"]["name"] for each in claims if each["metadata"]["name"].startswith("c")]
    pod = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"resourceClaims": [{"name": each, "resourceClaimName": each} for each in mine]},
    }
    found = {
        "name": "world",
        "kubernetes": release,
        "namespaces": [],
        "nodes": [{"metadata": {"name": f"n{at}", "labels": {"zone": f"z{at}"}}} for at in range(nodes)],
        "pods": [],
        "pod": pod,
        "deviceclasses": [{"metadata": {"name": "gpu"}, "spec": {"selectors": [OF_DRIVER]}}],
        "resourceslices": [*slices],
        "resourceclaims": [*claims],
    }
    return {**found, **members}


def verdict(case: V1, node: str = "n0") -> str:
    """Return the devices that a node has for the claims, such as `g0 g1`, or the reason why it has none."""
    found = response(case)
    assert not found["undecided"], found["undecided"]
    plugin = found["plugins"]["DynamicResources"]
    failed = plugin["filter_failed"].get(node)
    if failed is not None:
        return failed["reasons"][0] if failed["code"] != "Error" else f"Error: {failed['reasons'][0]}"
    allocated = plugin.get("allocation", {}).get(node, {}).values()
    return " ".join(each["device"] for found in allocated for each in found["devices"]["results"])
