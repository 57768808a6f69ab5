"""Random clusters for DynamicResources: classes, claims of the incoming pod and of others, and the slices behind them.

Counts are small, so that upstream's search, which is exponential, ends at once.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.parity.odd_devices import make_odd
from tests.parity.random_nodes import HOST, V1, ZONE
from tests.parity.random_selectors import DRIVERS, FPGA, GPU, NIC, selector, selectors
from tests.parity.random_slices import CONDITIONS, TAINTS, Traits, likely, node_selector, slices, taint_rules

_TRAITS: Final = (
    *("count", "all", "first", "admin", "constraint", "taint", "network", "inuse", "allocated", "binding"),
    *("missing", "multi", "limit", "partition", "consumable", "pool", "extended", "cel", "celerror", "config"),
    *("odd", "across", "operations"),
)
_NAMESPACE: Final = "default"
_POD: Final = {"resource": "pods", "name": "incoming", "uid": "uid-incoming"}
_EXTENDED: Final = ("example.com/gpu", "example.com/nic", "deviceclass.resource.kubernetes.io/gpu", "example.com/plain")
_ATTRIBUTES: Final = ("resource.kubernetes.io/pcieRoot", f"{GPU}/numa", f"{GPU}/model", "nvlink.io/group", "x.io/none")
_CLASSES: Final = {"gpu": 12, "nic": 3, "fpga": 1, "any": 2, "picky": 2, "careless": 1}
"""Class of a request -> its weight."""
_CREATED: Final = ("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z")


def device_case(random: Random) -> V1:
    """Return a case for DynamicResources."""
    traits = random.sample(_TRAITS, random.choice((1, 1, 2, 2, 3, 4)))
    nodes = [_node(random, traits, f"n{index}") for index in range(random.randint(2, 6))]
    found = slices(random, traits, nodes)
    claims, pods = _others(random, traits, found)
    incoming, own = _incoming(random, traits, nodes, found)
    claims += own
    if "odd" in traits:
        make_odd(random, claims, found)
    random.shuffle(claims)
    return {
        "family": "+".join(sorted(traits)),
        "namespaces": [{"metadata": {"name": _NAMESPACE}}],
        "nodes": nodes,
        "pods": [
            {**each, "spec": {**each["spec"], "nodeName": random.choice(nodes)["metadata"]["name"]}} for each in pods
        ],
        "pod": incoming,
        "deviceclasses": _classes(random, traits),
        "resourceslices": found,
        "resourceclaims": claims,
        "devicetaintrules": taint_rules(random, traits),
    }


def _node(random: Random, traits: Traits, name: str) -> V1:
    labels = {HOST: name}
    if random.random() < 0.9:
        labels[ZONE] = random.choice("abc")
    if random.random() < 0.5:
        labels["accelerator"] = random.choice(("fpga", "none"))
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    for resource in _EXTENDED:
        if likely(random, traits, "extended", 0.2, 0.01):
            allocatable[resource] = random.choice(("0", "2", "8"))
    status: V1 = {"allocatable": allocatable}
    if likely(random, traits, "operations", 0.6, 0.01):
        status["declaredFeatures"] = random.choice(([], ["DRAOptionalNodeOperations"], ["Other"]))
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


def _classes(random: Random, traits: Traits) -> list[V1]:
    specs: dict[str, V1] = {
        name: {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
        for name, driver in (("gpu", GPU), ("nic", NIC), ("fpga", FPGA))
    }
    errors = 0.6 if "celerror" in traits else 0.05
    specs["any"] = {}
    specs["picky"] = {"selectors": [*specs["gpu"]["selectors"], selector(random, GPU, errors)]}
    specs["careless"] = {"selectors": [selector(random, random.choice(DRIVERS), errors)]}
    if likely(random, traits, "extended", 0.8, 0.05):
        specs["gpu"]["extendedResourceName"] = "example.com/gpu"
        if random.random() < 0.4:
            specs["picky"]["extendedResourceName"] = random.choice(("example.com/gpu", "example.com/nic"))
        if random.random() < 0.5:
            specs["nic"]["extendedResourceName"] = "example.com/nic"
    if likely(random, traits, "config", 0.7, 0.02):
        specs["gpu"]["config"] = [_opaque(GPU, "class")]
    remaining = {name: spec for name, spec in specs.items() if not likely(random, traits, "missing", 0.07, 0.001)}
    return [
        {"metadata": {"name": name, "uid": f"class-{name}", "creationTimestamp": random.choice(_CREATED)}, "spec": spec}
        for name, spec in remaining.items()
    ]


def _opaque(driver: str, text: str) -> V1:
    return {"opaque": {"driver": driver, "parameters": {"kind": text}}}


def _incoming(random: Random, traits: Traits, nodes: list[V1], found: list[V1]) -> tuple[V1, list[V1]]:
    """Return the incoming pod, and its claims."""
    count = random.choice((2, 2, 3)) if "multi" in traits else random.choice((1, 1, 1, 1, 2))
    if "extended" in traits and random.random() < 0.6:
        count = 0
    pod: V1 = {
        "metadata": {"name": "incoming", "namespace": _NAMESPACE, "uid": _POD["uid"]},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    }
    claims, used, statuses = [], [], []
    for index in range(count):
        claim = _claim(random, traits, f"k{index}", small=count > 1)
        if likely(random, traits, "allocated", 0.6, 0.05):
            _allocate(random, claim, found, nodes)
        reference, names = _reference(random, claim, f"c{index}")
        used.append(reference)
        statuses += names
        claims.append(claim)
        if likely(random, traits, "missing", 0.15, 0.002):
            _spoil(random, claims)
    if used:
        pod["spec"]["resourceClaims"] = used
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": each["name"]} for each in used]
    if statuses:
        pod["status"]["resourceClaimStatuses"] = statuses
    if likely(random, traits, "extended", 1, 0.02):
        claims += _request_extended(random, pod)
    return pod, claims


def _reference(random: Random, claim: V1, name: str) -> tuple[V1, list[V1]]:
    """Return what the pod's spec has of a claim, and what its status has if the claim is made of a template."""
    if random.random() < 0.75:
        return {"name": name, "resourceClaimName": claim["metadata"]["name"]}, []
    claim["metadata"]["ownerReferences"] = [_owner(random)]
    reference = {"name": name, "resourceClaimTemplateName": "template"}
    if random.random() < 0.05:
        return reference, [{"name": name}]  # the template needs no claim
    return reference, [{"name": name, "resourceClaimName": claim["metadata"]["name"]}] * (random.random() < 0.95)


def _owner(random: Random) -> V1:
    uid = _POD["uid"] if random.random() < 0.95 else "uid-other"
    return {"apiVersion": "v1", "kind": "Pod", "name": "incoming", "uid": uid, "controller": True}


def _spoil(random: Random, claims: list[V1]) -> None:
    """Let the last claim be deleted, gone, or of another namespace."""
    kind = random.random()
    if kind < 0.4:
        claims[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    elif kind < 0.8:
        claims.pop()
    else:
        claims[-1]["metadata"]["namespace"] = "other"


def _request_extended(random: Random, pod: V1) -> list[V1]:
    """Let the containers of a pod request extended resources. Rarely there is a claim of an earlier attempt."""
    containers = [pod["spec"]["containers"][0]]
    if random.random() < 0.4:
        containers.append({"name": "d", "image": "i", "resources": {"requests": {"memory": "1Gi"}}})
    inits: list[V1] = []
    if random.random() < 0.3:
        sidecar = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
        inits = [{"name": "init", "image": "i", "resources": {"requests": {}}, **sidecar}]
    for each in (*inits, *containers):
        for resource in random.sample(_EXTENDED, random.choice((0, 1, 1, 2))):
            each["resources"]["requests"][resource] = random.choice(("0", "1", "1", "2", "3"))
    pod["spec"]["containers"] = containers
    if inits:
        pod["spec"]["initContainers"] = inits
    if random.random() < 0.93:
        return []
    stale = _claim(random, (), "incoming-extended-resources-x", small=True)
    stale["metadata"] |= {
        "ownerReferences": [_owner(random)],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    return [stale]


def _claim(random: Random, traits: Traits, name: str, *, small: bool) -> V1:
    count = random.choice((1, 1, 1, 2)) if small else random.choice((1, 1, 1, 2, 3))
    requests = [_request(random, traits, f"r{index}", small=count > 1 or small) for index in range(count)]
    devices: V1 = {"requests": requests}
    if likely(random, traits, "constraint", 0.9, 0.08):
        devices["constraints"] = [_constraint(random, requests) for _ in range(random.choice((1, 1, 2)))]
    if likely(random, traits, "config", 0.7, 0.02):
        configs = [_opaque(random.choice((GPU, NIC)), "claim") for _ in range(random.choice((1, 2)))]
        devices["config"] = [{"requests": _some_names(random, requests), **each} for each in configs]
    metadata = {"name": name, "namespace": _NAMESPACE, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": devices}, "status": {}}


def _request(random: Random, traits: Traits, name: str, *, small: bool) -> V1:
    if not likely(random, traits, "first", 0.8, 0.08):
        return {"name": name, "exactly": _exact(random, traits, small=small)}
    parts = [_exact(random, traits, small=small) for _ in range(random.choice((1, 2, 2, 3)))]
    for index, each in enumerate(parts):
        each.pop("adminAccess", None)
        each["name"] = f"s{index}"
    return {"name": name, "firstAvailable": parts}


def _exact(random: Random, traits: Traits, *, small: bool) -> V1:
    if "missing" in traits and random.random() < 0.1:
        device_class = "nope"
    else:
        device_class = random.choices([*_CLASSES], [*_CLASSES.values()])[0]
    driver = {"nic": NIC, "fpga": FPGA}.get(device_class, GPU)
    made: V1 = {"deviceClassName": device_class, "allocationMode": "ExactCount"}
    if likely(random, traits, "all", 0.6, 0.05):
        made["allocationMode"] = "All"
    else:
        made["count"] = random.choice((1, 1, 2) if small or "count" not in traits else (1, 2, 3, 4))
        if "limit" in traits and random.random() < 0.4:
            made["count"] = random.choice((15, 31, 32, 33, 40, 2147483648, 9223372036854775807))
    errors = 0.5 if "celerror" in traits else 0.03
    if found := selectors(random, driver, many=0.8 if "cel" in traits or "celerror" in traits else 0.1, errors=errors):
        made["selectors"] = found
    if likely(random, traits, "admin", 0.5, 0.02):
        made["adminAccess"] = random.random() < 0.9
    if likely(random, traits, "taint", 0.5):
        made["tolerations"] = [_toleration(random) for _ in range(random.choice((1, 1, 2)))]
    if likely(random, traits, "consumable", 0.7, 0.01):
        amounts = {"memory": random.choice(("250m", "300m", "500m", "1", "1100m", "2", "3", "0", "1Ki", "9e18", "1n"))}
        if random.random() < 0.3:
            amounts |= {random.choice(("cores", "cores", "bandwidth")): random.choice(("1", "4", "8"))}
        made["capacity"] = {"requests": amounts} if random.random() < 0.95 else {}
    if random.random() < 0.004:
        made["derivedAttributes"] = random.choice(([{"name": "a.io/b"}], []))
    return made


def _toleration(random: Random) -> V1:
    made: V1 = {"operator": random.choice(("Exists", "Exists", "Equal", "Equal", "Equal", "", "Gt"))}
    if random.random() < 0.9 or made["operator"] == "Equal":
        made["key"] = random.choice(TAINTS)
    if random.random() < 0.5:
        made["effect"] = random.choice(("NoSchedule", "NoSchedule", "NoExecute", "NoExecute", "None"))
    if made["operator"] == "Equal" and random.random() < 0.8:
        made["value"] = random.choice(("yes", "no", "ecc"))
    if random.random() < 0.1:
        made["tolerationSeconds"] = random.choice((0, 60))
    return made


def _constraint(random: Random, requests: Sequence[V1]) -> V1:
    made: V1 = {random.choice(("matchAttribute", "matchAttribute", "distinctAttribute")): random.choice(_ATTRIBUTES)}
    if random.random() < 0.5:
        made["requests"] = _some_names(random, requests)
    return made


def _some_names(random: Random, requests: Sequence[V1]) -> list[str]:
    """Return names of requests, or of alternatives in them."""
    names = [each["name"] for each in requests]
    names += [f"{each['name']}/{part['name']}" for each in requests for part in each.get("firstAvailable", ())]
    return random.sample(names, random.randint(0, len(names)))


def _others(random: Random, traits: Traits, found: Sequence[V1]) -> tuple[list[V1], list[V1]]:
    """Return allocated claims, and the pods that use them."""
    claims: list[V1] = []
    pods: list[V1] = []
    share = 0.4 if "inuse" in traits else 0.12
    for each in found:
        for device in each["spec"].get("devices", ()):
            shares = random.choice((1, 2, 3)) if device.get("allowMultipleAllocations") else 1
            for _ in range(shares):
                if random.random() < (share if shares == 1 else 0.4):
                    name = f"used-{len(claims)}"
                    claim = _claim(random, (), name, small=True)
                    claim["status"] = {
                        "allocation": {"devices": {"results": [_result(random, traits, claim, each, device)]}}
                    }
                    claim["status"]["reservedFor"] = [{"resource": "pods", "name": f"p-{name}", "uid": f"uid-p-{name}"}]
                    claims.append(claim)
                    pods.append(_user(name))
    if random.random() < 0.1:
        claims.append(_claim(random, (), "waiting", small=True))
    return claims, pods


def _user(claim: str) -> V1:
    return {
        "metadata": {"name": f"p-{claim}", "namespace": _NAMESPACE, "uid": f"uid-p-{claim}"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "c"}]}}],
            "resourceClaims": [{"name": "c", "resourceClaimName": claim}],
        },
        "status": {"phase": "Running"},
    }


def _result(random: Random, traits: Traits, claim: V1, of: V1, device: V1) -> V1:
    spec, request = of["spec"], claim["spec"]["devices"]["requests"][0]
    name = request["name"]
    if "firstAvailable" in request:
        name = f"{name}/{random.choice(request['firstAvailable'])['name']}"
    made = {"request": name, "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
    if likely(random, traits, "admin", 0.3, 0.02):
        made["adminAccess"] = True
    if device.get("allowMultipleAllocations") or random.random() < 0.005:
        made["shareID"] = f"{random.randrange(10**8):08d}-0000-4000-8000-000000000000"
        amounts = {key: random.choice(("250m", "500m", "1")) for key in device.get("capacity", {})}
        if amounts and random.random() < 0.9:
            made["consumedCapacity"] = amounts
    if random.random() < 0.01:
        made["device"] = "gone"
    for member in ("bindingConditions", "bindingFailureConditions"):
        if member in device:
            made[member] = device[member]
    return made


def _allocate(random: Random, claim: V1, found: Sequence[V1], nodes: Sequence[V1]) -> None:
    """Let a claim of the incoming pod be allocated already."""
    pairs = [(each, device) for each in found for device in each["spec"].get("devices", ())]
    of, device = random.choice(pairs or [({"spec": {"driver": GPU, "pool": {"name": "n0"}}}, {"name": "gpu-0"})])
    traits = ("binding",)
    result = _result(random, (), claim, of, device)
    if "bindingConditions" not in result and random.random() < 0.3:
        result |= {"bindingConditions": [CONDITIONS[0]], "bindingFailureConditions": ["Failed"]}
    if likely(random, traits, "operations", 0.8, 0.02):
        result["skipNodeOperations"] = random.choice((["Prepare"], ["Prepare", "Unprepare"], []))
    allocation: V1 = {"devices": {"results": [result]}}
    if random.random() < 0.85:
        name = of["spec"].get("nodeName") or random.choice(nodes)["metadata"]["name"]
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        local = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        allocation["nodeSelector"] = local if random.random() < 0.7 else node_selector(random, nodes)
    if likely(random, traits, "binding", 0.8):
        allocation["allocationTimestamp"] = random.choice(("2024-01-01T00:00:00Z", "2099-01-01T00:00:00Z"))
    claim["status"] = {"allocation": allocation}
    if conditions := _conditions(random):
        claim["status"]["devices"] = [
            {**{member: result[member] for member in ("driver", "pool", "device")}, "conditions": conditions}
        ]
    reserved: list[Any] = [_POD] if random.random() < 0.5 else []
    if random.random() < 0.3:
        most = random.choice((1, 1, 255, 256))
        reserved += [
            {"resource": "pods", "name": f"q{index}", "uid": f"q{index}"} for index in range(most - len(reserved))
        ]
    if reserved:
        claim["status"]["reservedFor"] = reserved


def _conditions(random: Random) -> list[V1]:
    return [
        {"type": kind, "status": random.choice(("True", "True", "False", "Unknown")), "reason": "x", "message": ""}
        | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in (*CONDITIONS, "Failed")
        if random.random() < 0.4
    ]
