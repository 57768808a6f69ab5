"""Real DRA: each pod gets the devices that it needs on its node, and no device is allocated twice.

There is no controller-manager, so the tests make the claims, and end them as its controller would. kube-scheduler
allocates the devices, and makes the claims for a resource of a DeviceClass. Kindred chooses the node.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.e2e import device_load
from tests.e2e.allocations import CLAIMS, CLASSES, SLICES, State, misallocations
from tests.e2e.api import NODES
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.deciding import LATE, PATIENCE, assert_followed, decisions
from tests.e2e.device_load import GPU, SINGLE, claim, claiming, requesting, resource_slice
from tests.e2e.kindred import Kindred
from tests.e2e.programs import wait_until
from tests.e2e.shapes import node
from tests.throughput.modes import LISTED_NODES, MODES, Mode
from tests.throughput.results import ANY_NODE

CLAIMS_SCHEDULER: Final = "kindred-volumes"
SOON: Final = 30.0  # seconds
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
    made = cluster.api.create_all(CLASSES, device_load.classes())
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


def condition(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the condition PodScheduled of a pod, empty before its first attempt."""
    conditions = cluster.api.get(f"{PODS}/{name}")["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def wait_for_condition(cluster: Cluster, name: str, reason: str, text: str) -> None:
    def has_it() -> bool:
        found = condition(cluster, name)
        return found.get("reason") == reason and text in found.get("message", "")

    wait_until(has_it, SOON, f"{reason} of {name}: {text}")


@pytest.mark.parametrize(
    ("mode", "late"),
    [
        pytest.param(LISTED_NODES, 0.0, id="question, in time"),
        pytest.param(ANY_NODE, LATE, id="any node, events late"),
    ],
)
def test_pods_get_their_devices_beside_ordinary_pods(cluster: Cluster, mode: str, late: float, note: Note) -> None:
    api, proxy = cluster.api, cluster.start_proxy()
    api.create_all(NODES, device_load.nodes())
    api.create_all(SLICES, device_load.slices())
    api.create_all(CLAIMS, device_load.claims())
    kindred = start_kindred(cluster, MODES[mode], proxy.url)
    scheduler = cluster.start_scheduler(MODES[mode].config(kindred.url))
    made = device_load.pods(MODES[mode].scheduler_name, CLAIMS_SCHEDULER)
    proxy.delay = late
    cluster.create_pods(made)
    seconds = cluster.wait_bound(len(made), PATIENCE)
    note(f"{len(made)} pods bound {seconds:.1f} s after the last was made: {decisions(kindred)}")
    assert broken_rules(cluster) == []
    # kube-scheduler has made a claim for each node of the driver, and none for a node with a device plugin.
    assert len(api.items(CLAIMS)) == len([*device_load.claims()]) + device_load.WITH_DRIVER
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
    assert [each["metadata"]["name"] for each in cluster.pods() if each["spec"].get("nodeName")] == ["second"]
    assert broken_rules(cluster) == []
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
