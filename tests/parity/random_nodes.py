"""Random nodes: few names, labels, taints and amounts, so that pods meet, and so that some fit and some do not."""

from random import Random
from typing import Any, Final, TypeAlias

V1: TypeAlias = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
RACK: Final = "example.com/rack"
NAMESPACES: Final = ("a", "b", "c")
GPU: Final = "example.com/gpu"
EXTENDED: Final = (GPU, "example.com/nic", "vendor.example/fpga")
TAINT_KEYS: Final = ("dedicated", "gpu", "flaky")
IMAGES: Final = (
    "registry.example/a:1",
    "registry.example/a:latest",
    "registry.example:5000/b:2",
    "models.example/llm:latest",
    f"registry.example/d@sha256:{'ab' * 32}",
)
FEATURES: Final = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
    "InPlacePodLevelResourcesVerticalScaling",
)
_MIB: Final = 1024 * 1024


def namespaces(random: Random) -> list[V1]:
    """Return namespaces with labels for namespace selectors; one of those that pods are in may be missing."""
    found = []
    for name in NAMESPACES:
        if random.random() < 0.9:
            labels = {"team": random.choice(("red", "blue"))} if random.random() < 0.7 else {}
            found.append({"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}})
    return found


def nodes(random: Random, least: int = 2, most: int = 7) -> list[V1]:
    """Return some nodes: n0, n1 and so on."""
    return [node(random, f"n{index}") for index in range(random.randint(least, most))]


def node(random: Random, name: str) -> V1:
    """Return a node with all fields that plugins without volumes read."""
    made: V1 = {
        "metadata": {"name": name, "labels": labels(random, name)},
        "spec": {},
        "status": {"allocatable": allocatable(random)},
    }
    if random.random() < 0.3:
        made["spec"]["taints"] = taints(random)
    if random.random() < 0.08:
        made["spec"]["unschedulable"] = True
    if random.random() < 0.5:
        made["status"]["images"] = images(random)
    if random.random() < 0.6:
        made["status"]["declaredFeatures"] = sorted(random.sample(FEATURES, random.randint(0, len(FEATURES))))
    return made


def labels(random: Random, name: str) -> dict[str, str]:
    """Return the labels of a node. A topology key is sometimes missing."""
    found = {} if random.random() < 0.04 else {HOST: name}
    if random.random() < 0.9:
        found[ZONE] = random.choice("abc")
    if random.random() < 0.5:
        found[RACK] = random.choice("12")
    if random.random() < 0.6:
        found["disk"] = random.choice(("ssd", "hdd", ""))
    if random.random() < 0.4:
        found["cores"] = random.choice(("4", "8", "16", "x", "-1", "007"))
    return found


def allocatable(random: Random) -> dict[str, str]:
    """Return amounts in the spellings that quantities have."""
    found = {
        "cpu": random.choice(("1", "2", "3920m", "4", "0.5", "8")),
        "memory": random.choice(("1Gi", "2Gi", "4091904Ki", "4G", "8589934592", "1.5Gi")),
        "pods": random.choice(("2", "3", "5", "110", "110")),
    }
    if random.random() < 0.7:
        found["ephemeral-storage"] = random.choice(("10Gi", "1Gi", "20G"))
    if random.random() < 0.2:
        found["hugepages-2Mi"] = random.choice(("0", "64Mi", "1Gi"))
    for name in EXTENDED:
        if random.random() < 0.3:
            found[name] = random.choice(("0", "1", "2", "8"))
    return found


def taints(random: Random) -> list[V1]:
    """Return one or two taints; a pair of key and effect is there once, as the API server has it."""
    found: dict[tuple[str, str], V1] = {}
    for _ in range(random.randint(1, 2)):
        key = random.choice(TAINT_KEYS)
        effect = random.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"))
        value = {"value": random.choice(("x", "y"))} if random.random() < 0.7 else {}
        found[key, effect] = {"key": key, **value, "effect": effect}
    return list(found.values())


def images(random: Random) -> list[V1]:
    """Return images; the same one may have other sizes on other nodes, and several names."""
    found = []
    for name in random.sample(IMAGES, random.randint(1, len(IMAGES))):
        names = [name, "mirror.example/x:1"] if random.random() < 0.1 else [name]
        found.append({"names": names, "sizeBytes": random.choice((5, 83, 261, 700, 1503, 4001)) * _MIB + len(name)})
    return found


def device_classes(random: Random) -> list[V1]:
    """Return device classes, some of which stand for an extended resource."""
    found = []
    for index in range(random.randint(1, 2)):
        spec = {"extendedResourceName": random.choice(EXTENDED)} if random.random() < 0.7 else {}
        found.append({"metadata": {"name": f"class{index}"}, "spec": spec})
    return found
