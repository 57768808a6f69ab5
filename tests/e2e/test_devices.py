"""Real DRA: each pod gets the devices that it needs on its node, and no device is allocated twice.

There is no controller-manager, so the tests make the claims, and end them as its controller would. kube-scheduler
allocates the devices, and makes the claims for a resource of a DeviceClass. Kindred chooses the node.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

import pytest

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.deciding import LATE, assert_followed, decisions
from tests.e2e.judges import State, misallocations
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import apart, node, pod, together
from tests.throughput.modes import LISTED_NODES, MODES, Mode
from tests.throughput.results import ANY_NODE

# Nodes with exactly the devices, CPUs and ports that some pods need, and these pods.
#
# Whatever the order, each pod finds a node as long as the rules are kept: the devices of one kind are not those of
# another. CPUs, and the resource of device plugins, are of two kinds of pods: a node has room for a pod of the
# smaller request beside all others, and no room for one more of the larger request in its place.

RESOURCE_API: Final = "/apis/resource.k8s.io/v1"
CLAIMS: Final = f"{RESOURCE_API}/namespaces/{NAMESPACE}/resourceclaims"
CLASSES: Final = f"{RESOURCE_API}/deviceclasses"
SLICES: Final = f"{RESOURCE_API}/resourceslices"
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
NUMBER: Final = WITH_DRIVER + WITH_PLUGIN
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
    for index in range(WITH_DRIVER, NUMBER):
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
    for number in range(NUMBER):
        yield requesting(f"gpu-{number}", _EACH, **_alone(GPU))


def _of_plugin() -> Iterator[Manifest]:
    """Yield a pod for each node with a device plugin. No other node has RESOURCE for a scheduler without DRA."""
    for number in range(WITH_PLUGIN):
        yield requesting(f"plugin-{number}", _OF_PLUGIN)


def _with_ports() -> Iterator[Manifest]:
    """Yield a pod for each node, all with the same host port."""
    for number in range(NUMBER):
        yield pod(f"port-{number}", cpu="0", host_port=8080)


def _apart() -> Iterator[Manifest]:
    """Yield pods of which no two of a group stand on one node."""
    for group in range(_APART_GROUPS):
        for number in range(NUMBER):
            yield pod(f"alone-{group}-{number}", cpu="0", **_alone(f"alone-{group}"))


def _filling() -> Iterator[Manifest]:
    """Yield pods that take all CPUs but those of APART."""
    for number in range(NUMBER * _FILLING):
        yield pod(f"filling-{number}", cpu=str(_FILLING_CPU))


def _together() -> Iterator[Manifest]:
    """Yield pods of which each group stands in one zone."""
    for group in range(_TOGETHER):
        labels = {"group": f"together-{group}"}
        for number in range(_TOGETHER_SIZE):
            yield pod(f"together-{group}-{number}", labels, cpu="0", affinity=together(labels))


def _alone(group: str) -> dict[str, Any]:
    """Return fields of a pod that stands on no node with another one of its group."""
    labels = {"group": group}
    return {"labels": labels, "affinity": apart(labels)}


def _made(kind: str, name: str, **spec: object) -> Manifest:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _cel(expression: str) -> Manifest:
    return {"cel": {"expression": expression}}


def _is_model(model: str) -> str:
    return f'device.attributes["{DRIVER}"].model == "{model}"'


CLAIMS_SCHEDULER: Final = "kindred-volumes"
WITH_CLAIM: Final = (
    "pod e2e/{} has resource claims, which need the in-tree plugin DynamicResources: "
    f"give it spec.schedulerName: {CLAIMS_SCHEDULER}"
)
WITH_RESOURCE: Final = (
    "Insufficient example.com/gpu (devices of DeviceClass gpu need the in-tree plugin DynamicResources: "
    f"give the pod spec.schedulerName: {CLAIMS_SCHEDULER})"
)


@pytest.fixture(autouse=True)
def _classes(cluster: Cluster) -> Iterator[None]:
    """Make the DeviceClasses, and take away all objects of DRA behind a test."""
    made = cluster.api.create_all(CLASSES, classes())
    try:
        if not any("extendedResourceName" in each["spec"] for each in made):
            pytest.skip("DRAExtendedResource is on in Kubernetes since 1.36")
        yield
    finally:
        cluster.tidy()
        cluster.api.at_once(lambda each: end_claim(cluster, each["metadata"]["name"]), cluster.api.items(CLAIMS))
        cluster.api.delete_all(SLICES)
        cluster.api.delete_all(CLASSES)


def start_kindred(cluster: Cluster, mode: Mode, server: str = "") -> Kindred:
    """Start Kindred with the schedulers of a mode's overlay."""
    return cluster.start_kindred({**mode.settings, "KINDRED_DECIDE_SCHEDULERS": mode.scheduler_name}, server=server)


def end_claim(cluster: Cluster, name: str) -> None:
    """Delete a claim, as the resourceclaim controller does behind its pods: kube-scheduler's finalizer keeps it."""
    path = f"{CLAIMS}/{name}"
    cluster.api.patch(f"{path}/status", {"status": {"allocation": None, "reservedFor": None}})
    cluster.api.patch(path, {"metadata": {"finalizers": None}})
    cluster.api.delete(path)


def broken_rules(cluster: Cluster) -> list[str]:
    """Return what the API server's objects break: the scheduler's rules, what kubelets reject, and those of devices."""
    items = cluster.api.items
    state = State(items(NODES), items(PODS), items(SLICES), items(CLAIMS), items(CLASSES))
    return [*cluster.violations(), *cluster.rejections(), *misallocations(state)]


def wait_for_condition(cluster: Cluster, name: str, reason: str, text: str) -> None:
    def has_it() -> bool:
        found = cluster.condition(name)
        return found.get("reason") == reason and text in found.get("message", "")

    wait_until(has_it, PATIENCE, f"{reason} of {name}: {text}")


@pytest.mark.parametrize(
    ("mode", "late"),
    [
        pytest.param(LISTED_NODES, 0.0, id="question, in time"),
        pytest.param(ANY_NODE, LATE, id="any node, events late"),
    ],
)
def test_pods_get_their_devices_beside_ordinary_pods(cluster: Cluster, mode: str, late: float, note: Note) -> None:
    api, proxy = cluster.api, cluster.start_proxy()
    api.create_all(NODES, nodes())
    api.create_all(SLICES, slices())
    api.create_all(CLAIMS, claims())
    kindred = start_kindred(cluster, MODES[mode], proxy.url)
    scheduler = cluster.start_scheduler(MODES[mode].config(kindred.url))
    made = pods(MODES[mode].scheduler_name, CLAIMS_SCHEDULER)
    proxy.delay = late
    cluster.create_pods(made)
    seconds = cluster.wait_bound(len(made))
    note(f"{len(made)} pods bound {seconds:.1f} s after the last was made: {decisions(kindred)}")
    assert broken_rules(cluster) == []
    # kube-scheduler has made a claim for each node of the driver, and none for a node with a device plugin.
    assert len(api.items(CLAIMS)) == len([*claims()]) + WITH_DRIVER
    assert scheduler.failed_bindings() == 0
    assert_followed(kindred)


@pytest.mark.parametrize("mode", [LISTED_NODES, ANY_NODE])
def test_a_pod_without_a_device_waits_for_one_or_has_the_reason(cluster: Cluster, mode: str) -> None:
    cluster.api.create_all(NODES, [node(0), node(1)])
    cluster.api.create(SLICES, resource_slice("node-0001", [SINGLE, GPU]))
    cluster.api.create_all(CLAIMS, [claim(name, SINGLE) for name in ("first", "second")])
    kindred = start_kindred(cluster, MODES[mode])
    cluster.start_scheduler(MODES[mode].config(kindred.url))
    scheduler_name = MODES[mode].scheduler_name
    assert cluster.place(claiming("first", "first", schedulerName=CLAIMS_SCHEDULER)) == "node-0001"
    cluster.create_pods(
        [
            claiming("second", "second", schedulerName=CLAIMS_SCHEDULER),
            claiming("with-claim", "second", schedulerName=scheduler_name),
            requesting("with-resource", 1, schedulerName=scheduler_name),
        ]
    )
    wait_for_condition(cluster, "second", "Unschedulable", "cannot allocate all claims")
    wait_for_condition(cluster, "with-claim", "SchedulerError", WITH_CLAIM.format("with-claim"))
    wait_for_condition(cluster, "with-resource", "Unschedulable", WITH_RESOURCE)
    assert cluster.bound() == 1
    cluster.api.delete(f"{PODS}/first")
    end_claim(cluster, "first")
    cluster.wait_bound(1)
    assert cluster.bound_names() == {"second"}
    assert broken_rules(cluster) == []
    assert_followed(kindred)


@pytest.mark.parametrize("mode", [LISTED_NODES, ANY_NODE])
def test_a_pod_gets_the_node_with_the_device_that_it_prefers(cluster: Cluster, mode: str) -> None:
    """The other nodes have its second choice. kube-scheduler passes all, and scores none."""
    number, preferred = 12, 7
    cluster.api.create_all(NODES, [node(index) for index in range(number)])
    models = [[PAIR, SINGLE] if index == preferred else [PAIR, APART] for index in range(number)]
    cluster.api.create_all(SLICES, [resource_slice(f"node-{index:04}", each) for index, each in enumerate(models)])
    alternatives = [
        {"name": model, "deviceClassName": ANY_DEVICE, "selectors": [_cel(_is_model(model))]}
        for model in (SINGLE, PAIR)
    ]
    requests = [{"name": "wanted", "firstAvailable": alternatives}]
    cluster.api.create(CLAIMS, _made("ResourceClaim", "first", devices={"requests": requests}))
    kindred = start_kindred(cluster, MODES[mode])
    cluster.start_scheduler(MODES[mode].config(kindred.url))
    assert cluster.place(claiming("first", "first", schedulerName=CLAIMS_SCHEDULER)) == f"node-{preferred:04}"
    (claim_of_pod,) = cluster.api.items(CLAIMS)
    assert claim_of_pod["status"]["allocation"]["devices"]["results"][0]["request"] == f"wanted/{SINGLE}"
    assert [*cluster.violations(), *cluster.rejections()] == []
    assert_followed(kindred)


def test_without_the_plugin_pods_have_no_devices_so_these_tests_can_fail(cluster: Cluster) -> None:
    cluster.api.create_all(NODES, [node(0), node(1)])
    cluster.api.create(SLICES, resource_slice("node-0001", [SINGLE, GPU]))
    cluster.api.create(CLAIMS, claim("first", SINGLE))
    kindred = start_kindred(cluster, MODES[LISTED_NODES])
    config = MODES[LISTED_NODES].config(kindred.url)
    of_claims = next(each for each in config["profiles"] if each["schedulerName"] == CLAIMS_SCHEDULER)
    of_claims["plugins"]["multiPoint"]["disabled"].append({"name": "DynamicResources"})
    cluster.start_scheduler(config)
    cluster.place(claiming("first", "first", schedulerName=CLAIMS_SCHEDULER))
    cluster.place(requesting("second", 1, schedulerName=CLAIMS_SCHEDULER))
    faults = {line.partition(":")[0] for line in broken_rules(cluster)}
    assert faults == {"NotReserved", "Count", "NoClaim"}
