"""Pods that wait for devices: `kubectl kindred why` says why, and with its remedy a real kube-scheduler places them.

The pods are those of tests/core/plugins/dynamicresources/pending.py, each with nodes, a driver, a DeviceClass and a
namespace of its own in one cluster. kube-scheduler allocates the devices that are in use, too. There is no
controller-manager, so claims of deleted pods are freed as its controller would.
"""

import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.core.plugins.dynamicresources.pending import WAITING
from tests.e2e.api import NAMESPACES, NODES, Api, Manifest, condition_of, pods_path
from tests.e2e.binaries import chosen_minor
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN, control_plane
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE, configuration
from tests.e2e.shapes import HOSTNAME, node, pod
from tests.e2e.test_devices import CLASSES, RESOURCE_API, SLICES
from tests.e2e.test_why import why

CASE: Final = "case"
"""The label of nodes that has the name of a case."""
CASES: Final[Mapping[str, tuple[str, str]]] = {
    "held": ("all devices of the class are held", "removePod"),
    "model": ("a selector matches no device", "dropSelector"),
    "taint": ("a taint of the devices is not tolerated", "tolerateDeviceTaint"),
    "numa": ("no node has devices with one value of an attribute", "dropConstraint"),
    "many": ("more devices than any node has", "lowerCount"),
    "parts": ("the counters of a partitionable device are used up", "addNode"),
    "shared": ("the capacity of a shareable device is used up", "lowerCapacity"),
    "class": ("the class does not exist", "changeDeviceClass"),
    "absent": ("the claim does not exist", ""),
    "elsewhere": ("the claim has devices on another node", "uncordon"),
    "pool": ("the pool is incomplete", ""),
    "either": ("no alternative has enough capacity", "lowerCount"),
}
"""The short name of each pod -> its name in WAITING, and the step to do. Empty: no step helps."""
UNTRIED: Final = "absent"
"""The pod that kube-scheduler does not try before its claim is there (PreEnqueue), so it says nothing of it."""
SINCE: Final = {"taint": 36, "parts": 36, "shared": 36}
"""Pods whose rule is off in releases before Kubernetes 1.N."""
INSTEAD: Final = {"no pool that can be used has a device": "1 incomplete or invalid pool does not count"}
"""What is said in this cluster, which has devices of other pods, too."""


def renamed(text: str, case: str) -> str:
    """Return a text with the names of objects that only one case has."""
    text = re.sub(r"\bgpu\.example\.com\b", f"{case}.example.com", text)
    text = re.sub(r"\b(gpus?)\b(?!-)", rf"\1-{case}", text)
    text = re.sub(r"\bn(\d)\b", rf"n\1-{case}", text)
    return re.sub(r"\bdefault\b", case, text)


class Case:
    """The objects of a case, as the API server takes them."""

    def __init__(self, api: Api, name: str) -> None:
        self.api = api
        self.name = name
        self.stored = json.loads(renamed(json.dumps(WAITING[CASES[name][0]].case), name))
        self.claims = f"{RESOURCE_API}/namespaces/{name}/resourceclaims"
        self.pods = pods_path(name)

    def begin(self) -> None:
        """Make all but the pending pod."""
        self.api.create(NAMESPACES, {"metadata": {"name": self.name}})
        for each in self.stored["nodes"]:
            self.create_node(each["metadata"]["name"])
        for each in self.stored["deviceclasses"]:
            self.api.create(CLASSES, each)
        for each in self.stored["resourceslices"]:
            spec = {name: value for name, value in each["spec"].items() if value != []}
            self.api.create(SLICES, {"metadata": {"name": f"{self.name}-{each['metadata']['name']}"}, "spec": spec})
        for each in self.stored["resourceclaims"]:
            self.api.create(self.claims, unallocated(each))
        for each in self.stored["pods"]:
            spec = each["spec"]
            at = {HOSTNAME: spec["nodeName"]}
            made = pod(each["metadata"]["name"], nodeSelector=at, resourceClaims=spec["resourceClaims"])
            self.api.create(self.pods, made)

    def go_on(self) -> None:
        """Wait until the other pods have their devices, then cordon nodes."""
        for each in self.stored["pods"]:
            self.wait_bound(each["metadata"]["name"])
        for name in self.stored.get("cordoned", ()):
            self.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})

    def wait(self) -> None:
        """Make the pending pod."""
        claims = self.stored["pod"]["spec"]["resourceClaims"]
        self.api.create(self.pods, pod("p", nodeSelector={CASE: self.name}, resourceClaims=claims))

    def wait_bound(self, name: str) -> None:
        """Wait until a pod has a node."""
        path = f"{self.pods}/{name}"
        wait_until(lambda: "nodeName" in self.api.get(path)["spec"], PATIENCE, f"{path} bound")

    def message(self) -> str:
        """Return what kube-scheduler says of the pending pod, as soon as it has tried it."""
        path = f"{self.pods}/p"
        wait_until(lambda: bool(condition_of(self.api.get(path)).get("reason")), PATIENCE, f"{path} tried")
        return str(condition_of(self.api.get(path))["message"])

    def take(self, step: Mapping[str, Any]) -> None:
        """Do a step of a remedy as a person would, and what controllers do then."""
        match step:
            case {"step": "removePod", "pod": name}:
                gone = self.api.get(f"{self.pods}/{name.partition('/')[2]}")
                self.api.delete(f"{self.pods}/{gone['metadata']['name']}")
                for each in gone["spec"]["resourceClaims"]:
                    freed = {"status": {"allocation": None, "reservedFor": None}}
                    self.api.patch(f"{self.claims}/{each['resourceClaimName']}/status", freed)
            case {"step": "uncordon", "node": name}:
                self.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": False}})
            case {"step": "addNode", "name": name, "like": like}:
                self.add_node(name, like)
            case {"step": _, "claim": claim}:
                path = f"{self.claims}/{claim.partition('/')[2]}"
                spec = self.api.get(path)["spec"]
                change(spec["devices"], step)
                self.api.delete(path)
                self.api.create(self.claims, {"metadata": {"name": claim.partition("/")[2]}, "spec": spec})

    def add_node(self, name: str, like: str) -> None:
        """Make a node with the devices of another one, as its driver does."""
        for each in self.api.items(SLICES):
            if each["spec"].get("nodeName") == like:
                spec = {**each["spec"], "nodeName": name, "pool": {**each["spec"]["pool"], "name": name}}
                self.api.create(SLICES, {"metadata": {"name": f"{each['metadata']['name']}-{name}"}, "spec": spec})
        self.create_node(name)

    def create_node(self, name: str) -> None:
        """Make a node of the case."""
        metadata = {"name": name, "labels": {HOSTNAME: name, CASE: self.name}}
        self.api.create(NODES, {**node(0), "metadata": metadata})


def unallocated(claim: Manifest) -> Manifest:
    """Return a claim for the devices that the status of another one has."""
    metadata, spec = {"name": claim["metadata"]["name"]}, claim["spec"]
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    if results:
        exactly = {**spec["devices"]["requests"][0]["exactly"], "count": len(results)}
        consumed = results[0].get("consumedCapacity")
        exactly |= {"capacity": {"requests": consumed}} if consumed else {}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return {"metadata": metadata, "spec": spec}


def change(devices: dict[str, Any], step: Mapping[str, Any]) -> None:
    """Change the spec of a claim as a step says."""
    if step["step"] == "dropConstraint":
        del devices["constraints"][step["constraint"]]
        return
    name, _, sub = step["request"].partition("/")
    found = next(each for each in devices["requests"] if each["name"] == name)
    request = next(each for each in found["firstAvailable"] if each["name"] == sub) if sub else found["exactly"]
    match step:
        case {"step": "lowerCount", "to": count}:
            request["count"] = count
        case {"step": "lowerCapacity", "capacity": capacity, "to": billionths}:
            request["capacity"]["requests"][capacity] = f"{billionths}n"
        case {"step": "tolerateDeviceTaint", "key": key, "value": value, "effect": effect}:
            request["tolerations"] = [{"key": key, "operator": "Equal", "value": value, "effect": effect}]
        case {"step": "changeDeviceClass", "to": to}:
            request["deviceClassName"] = to
        case {"step": "dropSelector", "selector": expression}:
            request["selectors"] = [each for each in request["selectors"] if each["cel"]["expression"] != expression]
        case _:
            raise AssertionError(step)


class ExplainedCase(NamedTuple):
    """What is said of a pending pod, all at once: what is done for one pod changes what is said of the others."""

    case: Case
    scheduler_message: str
    text: str
    summary: Mapping[str, Any]

    @classmethod
    def about(cls, case: Case, kubeconfig: Path) -> "ExplainedCase":
        """Ask as a developer does, and as a program."""
        message = case.message() if case.name != UNTRIED else ""
        text = why(kubeconfig, "p", "--local", namespace=case.name).stdout
        reported = why(kubeconfig, "p", "--local", "-o", "json", namespace=case.name).stdout
        return cls(case, message, text, json.loads(reported)["summary"])


@pytest.fixture(scope="module")
def explained(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, ExplainedCase]]:
    """Run a cluster in which all the pods wait, and ask about each."""
    with control_plane(tmp_path_factory.mktemp("plane"), binaries) as plane:
        cluster = Cluster(plane, binaries)
        scheduler = cluster.start_scheduler(configuration(IN_TREE, ""), verbosity=3)
        try:
            cases = [Case(plane.api, name) for name in CASES if chosen_minor() >= SINCE.get(name, 0)]
            for act in (Case.begin, Case.go_on):
                for each in cases:
                    act(each)
            cluster.wait_until_nodes_are_seen(scheduler)  # each of its messages counts the cordoned ones
            for each in cases:
                each.wait()
            kubeconfig = plane.kubeconfig("developer", client=ADMIN)
            with ThreadPoolExecutor(max_workers=2) as pool:
                found = pool.map(ExplainedCase.about, cases, repeat(kubeconfig))
            yield {each.case.name: each for each in found}
        finally:
            cluster.stop_all()


@pytest.mark.parametrize("name", CASES)
def test_why_names_the_cause_and_with_the_remedy_the_pod_runs(
    name: str, explained: Mapping[str, ExplainedCase]
) -> None:
    if name not in explained:
        pytest.skip(f"the rule is off in releases before Kubernetes 1.{SINCE[name]}")
    (of_waiting, applied), (case, scheduler_message, text, summary) = CASES[name], explained[name]
    assert summary["not_judged"] == []
    assert name == UNTRIED or scheduler_message.startswith(summary["message"].removesuffix("."))
    for sentence in WAITING[of_waiting].measured:
        expected = next((there for alone, there in INSTEAD.items() if alone in sentence), sentence)
        assert squeezed(renamed(expected, name)) in squeezed(text)
    helps = {each["steps"][0]["step"]: each for each in summary["helps"]}
    if not applied:
        assert "No change that was tried would help" in text
        assert helps == {}
        return
    assert squeezed(helps[applied]["text"]) in squeezed(text)
    case.take(*helps[applied]["steps"])
    case.wait_bound("p")


def squeezed(text: str) -> str:
    """Return a text without the places where its lines end."""
    return re.sub(r"\s+", "", text)
