"""Random ResourceSlices: pools of devices of three drivers, in every way in which a pool is bound to nodes.

A case has traits, which make their fields frequent: `partition` shared counters, `consumable` devices for several
claims, `pool` generations and slices that are missing, and so on. Without its trait a field is rare.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeAlias

from tests.parity.random_nodes import V1, ZONE
from tests.parity.random_selectors import DRIVERS, FPGA, GPU, MEMORY, MODELS, NIC, VERSIONS

Traits: TypeAlias = Sequence[str]
TAINTS: Final = ("maint", "broken", f"{GPU}/unhealthy")
CONDITIONS: Final = ("Attached", "Ready")


def likely(random: Random, traits: Traits, trait: str, often: float, rarely: float = 0.03) -> bool:
    """Return whether something is there that belongs to a trait."""
    return random.random() < (often if trait in traits else rarely)


def slices(random: Random, traits: Traits, nodes: Sequence[V1]) -> list[V1]:
    """Return the slices of all drivers: pools of nodes, and pools that several nodes share."""
    found: list[V1] = []
    for node in nodes:
        name = node["metadata"]["name"]
        for driver in DRIVERS:
            if random.random() < {GPU: 0.95, NIC: 0.6, FPGA: 0.3}[driver]:
                found += _pool(random, traits, driver, name, {"nodeName": name})
        if likely(random, traits, "pool", 0.3, 0.05):
            found += _pool(random, traits, random.choice((GPU, NIC)), f"{name}-x", {"nodeName": name})
    for index in range(random.randint(1, 2) if likely(random, traits, "network", 0.9, 0.08) else 0):
        driver = random.choice((NIC, NIC, GPU, FPGA))
        found += _pool(random, traits, driver, f"shared-{index}", _reach(random, nodes))
    if likely(random, traits, "across", 0.9, 0.05):
        found += _pool(random, traits, random.choice((GPU, GPU, NIC)), "across", _reach(random, nodes))
        for each in found if random.random() < 0.3 else found[-random.randint(1, 3) :]:
            if each["spec"]["pool"]["name"] == "across":
                _move(random, each["spec"], nodes)
    for number, each in enumerate(found):
        # The names decide the order of allocation since v1.36; the numbers keep them unique.
        each["metadata"] = {"name": f"{random.choice('abcd')}-{each['spec']['pool']['name']}-{number:02d}"}
    random.shuffle(found)
    return found


def _reach(random: Random, nodes: Sequence[V1]) -> V1:
    kind = random.random()
    if kind < 0.25:
        return {"allNodes": True}
    if kind < 0.6:
        return {"nodeSelector": node_selector(random, nodes)}
    return {"perDeviceNodeSelection": True}


def _move(random: Random, spec: V1, nodes: Sequence[V1]) -> None:
    """Let a slice be for other nodes than the rest of its pool."""
    for member in ("nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"):
        spec.pop(member, None)
    if random.random() < 0.6:
        spec["nodeName"] = random.choice(nodes)["metadata"]["name"]
    else:
        spec |= _reach(random, nodes)
    if "perDeviceNodeSelection" in spec:
        _select_nodes(random, spec.get("devices", ()))


def node_selector(random: Random, nodes: Sequence[V1]) -> V1:
    """Return a node selector of one term."""
    zone = {"key": ZONE, "operator": random.choice(("In", "In", "NotIn")), "values": [random.choice("ab")]}
    found: V1 = random.choice(
        (
            {"matchExpressions": [zone]},
            {"matchExpressions": [zone, {"key": "accelerator", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "accelerator", "operator": "DoesNotExist"}]},
            {
                "matchFields": [
                    {
                        "key": "metadata.name",
                        "operator": "In",
                        "values": [random.choice(nodes)["metadata"]["name"]],
                    }
                ]
            },
        )
    )
    return {"nodeSelectorTerms": [found]}


def _pool(random: Random, traits: Traits, driver: str, pool: str, reach: V1) -> list[V1]:
    """Return the slices of a pool, with the mistakes of drivers: old generations, slices that are missing."""
    parts = random.choice((1, 1, 1, 2, 3)) if "pool" in traits else random.choice((1, 1, 1, 1, 2))
    most = 4 if parts == 1 else 2
    if "limit" in traits and driver == GPU and random.random() < 0.4:
        parts, most = 1, random.choice((20, 33, 34))
    generation = random.choice((1, 1, 2, 7))
    found: list[V1] = []
    sets: list[V1] = []
    if likely(random, traits, "partition", 0.8 if driver == GPU else 0.2):
        sets = [_counter_set(random, index) for index in range(random.choice((1, 1, 2)))]
        found.append({"sharedCounters": sets})
    for part in range(parts):
        names = [f"{driver[:3]}-{part * most + index}" for index in range(random.randint(1, most))]
        if most > 4:
            names = [f"gpu-{index:02d}" for index in range(most)]
        found.append({"devices": [_device(random, traits, driver, name, sets) for name in names]})
    if sets and random.random() < 0.05:
        found[-1] |= {"sharedCounters": found.pop(0)["sharedCounters"]}  # of both in a slice, devices are not read
    if likely(random, traits, "pool", 0.1, 0.01):
        found[0].get("devices", [{}])[0]["name"] = found[-1].get("devices", [{}])[-1].get("name", "x")
    for each in found:
        described = {"name": pool, "generation": generation, "resourceSliceCount": len(found)}
        each.update({"driver": driver, "pool": described, **reach})
        if "perDeviceNodeSelection" in reach:
            _select_nodes(random, each.get("devices", ()))
    if likely(random, traits, "pool", 0.5, 0.02):
        _confuse(random, found, generation)
    return [{"spec": each} for each in found]


def _confuse(random: Random, specs: list[V1], generation: int) -> None:
    """Give a pool another generation, or let a slice be missing."""
    odd = random.choice(specs)
    kind = random.random()
    if kind < 0.35:
        odd["pool"] = {**odd["pool"], "generation": generation + random.choice((-1, 1)) or 1}
    elif kind < 0.7:
        count = len(specs) + random.choice((-1, 1, 1))
        for each in specs:  # counts that differ are taken in the order of a map: kubernetes#141117
            each["pool"] = {**each["pool"], "resourceSliceCount": count}
    elif kind < 0.85 and len(specs) > 1:
        specs.remove(odd)
    else:
        newer = {**odd["pool"], "generation": generation + 1, "resourceSliceCount": 1}
        specs.append({**odd, "pool": newer, "devices": odd.get("devices", [])[:1]})
        specs[-1].pop("sharedCounters", None)


def _select_nodes(random: Random, devices: Sequence[V1]) -> None:
    for each in devices:
        kind = random.random()
        if kind < 0.5:
            each["nodeName"] = random.choice(("n0", "n1", "n2"))
        elif kind < 0.7:
            each["allNodes"] = True
        elif kind < 0.95:
            each["nodeSelector"] = node_selector(random, [{"metadata": {"name": random.choice(("n0", "n1"))}}])


def _counter_set(random: Random, index: int) -> V1:
    counters = {"memory": {"value": random.choice(("40Gi", "80Gi"))}, "slices": {"value": random.choice(("7", "4"))}}
    return {"name": f"set-{index}", "counters": counters}


def _device(random: Random, traits: Traits, driver: str, name: str, sets: Sequence[V1]) -> V1:
    made: V1 = {"name": name, "attributes": _attributes(random, driver), "capacity": _capacity(random, driver)}
    if sets and random.random() < 0.9:
        _consume(random, made, sets)
    if likely(random, traits, "consumable", 0.7):
        made["allowMultipleAllocations"] = random.random() < 0.9
        if random.random() < 0.8:
            made["capacity"] = _consumable(random)
    if likely(random, traits, "taint", 0.35, 0.02):
        made["taints"] = [taint(random) for _ in range(random.choice((1, 1, 2)))]
    if likely(random, traits, "binding", 0.4, 0.02):
        made["bindsToNode"] = random.random() < 0.4
        made["bindingConditions"] = random.sample(CONDITIONS, random.randint(1, 2))
        made["bindingFailureConditions"] = ["Failed"]
    return {member: value for member, value in made.items() if value or member == "attributes"}


def _attributes(random: Random, driver: str) -> V1:
    root = {"string": f"pci0000:0{random.choice((0, 1, 2))}"}
    numa = {"int": random.choice((0, 1))}
    if driver == NIC:
        found: V1 = {"speed": {"int": random.choice((10, 25, 100))}, "rdma": {"bool": random.random() < 0.5}}
    elif driver == FPGA:
        found = {"family": {"string": random.choice("xy")}}
    else:
        found = {
            "model": {"string": random.choice(MODELS)},
            "healthy": {"bool": random.random() < 0.7},
            "driverVersion": {"version": random.choice(VERSIONS)},
        }
        if random.random() < 0.4:
            found["index"] = {"int": random.choice((-1, 0, 1, 5))}
        if random.random() < 0.5:
            found["nvlink.io/group"] = {"int": random.choice((1, 2, 3))}
    if random.random() < 0.9:
        found["numa"] = numa
    if random.random() < 0.05:
        found["numa"] = random.choice(({"string": "1"}, {"version": "1.0.0"}, {"bool": True}, {"ints": [0, 1]}))
    if random.random() < 0.02:
        found["odd"] = random.choice(({}, {"strings": ["a", "b"]}, {"version": "v1"}))
    if random.random() < 0.9:
        found["resource.kubernetes.io/pcieRoot"] = root
    if random.random() < 0.03:
        found[f"{driver}/model"] = found.pop("model", {"string": "A100"})  # the same name, written in full
    return found


def _capacity(random: Random, driver: str) -> V1:
    if driver == NIC:
        return {"bandwidth": {"value": random.choice(("10G", "25G", "100G"))}}
    found: V1 = {"memory": {"value": random.choice(MEMORY)}} if random.random() < 0.95 else {}
    if random.random() < 0.9:
        found["cores"] = {"value": random.choice(("16", "32", "64", "108"))}
    return found


def _consumable(random: Random) -> V1:
    """Return capacity that claims share, with a policy for what they ask of it."""
    most = random.choice(("2", "4", "1500m", "8", "3", "2Ki", "2e3", "9223372036854775807"))
    memory: V1 = {"value": most}
    kind = random.random()
    if kind < 0.4:
        bounds = {"min": random.choice(("250m", "500m", "1", "0", "2")), "max": random.choice((most, most, "2"))}
        if random.random() < 0.7:
            bounds["step"] = random.choice(("250m", "500m", "1", "2", "3"))
        memory["requestPolicy"] = {"default": bounds["min"], "validRange": bounds}
        if random.random() < 0.3:
            bounds.pop("max")
    elif kind < 0.7:
        values = random.choice((["500m", "1", "2"], ["1", "2"], ["1", "4"]))
        memory["requestPolicy"] = {"default": values[0], "validValues": values}
    found: V1 = {"memory": memory}
    if random.random() < 0.5:
        found["cores"] = {"value": random.choice(("4", "8"))}
        if random.random() < 0.4:
            found["cores"]["requestPolicy"] = {"default": random.choice(("0", "2", "8"))}
    return found


def _consume(random: Random, device: V1, sets: Sequence[V1]) -> None:
    """Let a device be a partition that consumes counters. A set may be unknown, which makes a pool invalid."""
    whole = random.random() < 0.3
    device["attributes"]["type"] = {"string": "gpu" if whole else "mig"}
    counters = {
        "memory": {"value": random.choice(("40Gi", "80Gi")) if whole else random.choice(("10Gi", "20Gi"))},
        "slices": {"value": random.choice(("4", "7")) if whole else random.choice(("1", "2", "3"))},
    }
    if random.random() < 0.2:
        counters.pop(random.choice(("memory", "slices")))
    name = random.choice(sets)["name"] if random.random() < 0.98 else "nope"
    device["consumesCounters"] = [{"counterSet": name, "counters": counters}]
    if len(sets) > 1 and random.random() < 0.2:
        device["consumesCounters"] = [{"counterSet": each["name"], "counters": counters} for each in sets]
    if random.random() < 0.02:
        device["consumesCounters"][0]["compatibilityGroups"] = random.choice((["a"], ["a", "b"], []))


def taint(random: Random) -> V1:
    """Return a taint of a device."""
    made: V1 = {
        "key": random.choice(TAINTS),
        "effect": random.choice(("NoSchedule", "NoSchedule", "NoSchedule", "NoExecute", "NoExecute", "None", "Later")),
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    if random.random() < 0.6:
        made["value"] = random.choice(("yes", "no", "ecc"))
    return made


def taint_rules(random: Random, traits: Traits) -> list[V1]:
    """Return DeviceTaintRules; each selects devices by some of driver, pool and name."""
    found = []
    for index in range(random.randint(1, 3) if likely(random, traits, "taint", 0.6, 0.02) else 0):
        choices = {"driver": DRIVERS, "pool": ("n0", "n1", "shared-0"), "device": ("gpu-0", "gpu-1", "nic-0")}
        picked = {name: random.choice(values) for name, values in choices.items() if random.random() < 0.4}
        spec: V1 = {"taint": taint(random)}
        if picked or random.random() < 0.5:
            spec["deviceSelector"] = picked
        found.append({"metadata": {"name": f"rule-{index}", "uid": f"rule-{index}"}, "spec": spec})
    return found
