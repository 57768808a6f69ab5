"""Kindred beside a kube-scheduler that places groups, each behind a proxy, and what must hold of groups in the end."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tests.e2e.api import Manifest
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.control_plane import SCHEDULER_USER
from tests.e2e.deciding import PATIENCE
from tests.e2e.groups import (
    all_groups,
    bound_members,
    create_group,
    delete_groups,
    gangs_in_part,
    member,
    scheduler_flags,
    server_flags,
    settings,
)
from tests.e2e.programs import wait_until
from tests.e2e.shapes import node, pod
from tests.throughput.modes import LISTED_NODES, MODES, Mode

LATE: Final = 1.0  # seconds
PORT: Final = 8080
"""The host port that pods of one place on each node have."""


@contextmanager
def served_groups(cluster: Cluster) -> Iterator[None]:
    """Serve PodGroups, and delete those of a test behind it."""
    cluster.plane.serve_with(*server_flags())
    yield
    cluster.stop_all()
    delete_groups(cluster.api)


class Grouping:
    """Kindred and a kube-scheduler. Kindred sees events a second late from the beginning."""

    def __init__(self, cluster: Cluster, mode: Mode = MODES[LISTED_NODES], module: str = "app.commands.cli") -> None:
        """Start both."""
        self._cluster = cluster
        self.events = cluster.start_proxy()
        self.kindred = cluster.start_kindred(settings(mode), server=self.events.url, module=module)
        self.bindings = cluster.start_proxy(SCHEDULER_USER)
        config = mode.config(self.kindred.url)
        self.scheduler = cluster.start_scheduler(config, server=self.bindings.url, flags=scheduler_flags())
        self.events.delay = LATE

    def restart_kindred(self) -> None:
        """Kill Kindred, and start it."""
        self.kindred.program.kill()
        self.kindred.start()

    def create_members(self, name: str, minimum: int | None, members: Sequence[Manifest]) -> None:
        """Make a group, and its members one after the other, so that their order is known."""
        create_group(self._cluster.api, name, minimum)
        for each in members:
            self._cluster.api.create(PODS, each)

    def wait_until_bindings_are_held(self, names: Iterable[str]) -> None:
        """Wait until kube-scheduler has sent the bindings of pods."""
        wanted = set(names)
        wait_until(lambda: wanted <= set(self.bindings.bindings), PATIENCE, f"bindings of {sorted(wanted)}")


def places(number: int, cpu: str = "4") -> list[Manifest]:
    """Return nodes that have room for one pod with the host port each."""
    return [node(at, allocatable={"cpu": cpu, "memory": "64Gi", "pods": "110"}) for at in range(number)]


def members(number: int, group: str = "gang", **more: Any) -> list[Manifest]:  # noqa: ANN401  # arguments of `pod`
    """Return members that take a place each."""
    return [member(group, at, host_port=PORT, **more) for at in range(number)]


def rivals(number: int, first: int = 0, **more: Any) -> list[Manifest]:  # noqa: ANN401  # arguments of `pod`
    """Return ordinary pods that take a place each; `more` is what `pod` takes."""
    shape = {"host_port": PORT, **more}
    return [pod(f"rival-{at}", schedulerName="kindred", **shape) for at in range(first, first + number)]


def names(pods: Iterable[Manifest]) -> list[str]:
    """Return the names of pods."""
    return [each["metadata"]["name"] for each in pods]


def wait_until_refused(cluster: Cluster, pods: Iterable[Manifest]) -> None:
    """Wait until a scheduler has found no node for any of the pods. It is an error if one has a node."""
    for name in names(pods):
        wait_until(lambda name=name: _outcome(cluster, name) == "Unschedulable", PATIENCE, f"{name} refused")  # type: ignore[misc]


def wait_until_tried(cluster: Cluster, pods: Iterable[Manifest]) -> None:
    """Wait until a scheduler has found no node for any of the pods, or has failed. It is an error if one has a node.

    kube-scheduler 1.37.1 fails behind a gang whose oldest member has no claim: DynamicResources has no state then.
    """
    for name in names(pods):
        wait_until(lambda name=name: bool(_outcome(cluster, name)), PATIENCE, f"{name} tried")  # type: ignore[misc]


def _outcome(cluster: Cluster, name: str) -> str:
    """Return why a pod has no node; empty if nobody has said it yet."""
    found = cluster.api.get(f"{PODS}/{name}")
    assert "nodeName" not in found["spec"], f"{name} has {found['spec'].get('nodeName')}"
    conditions = found.get("status", {}).get("conditions", ())
    return next((each["reason"] for each in conditions if each["type"] == "PodScheduled"), "")


def wait_until_nominated(cluster: Cluster, number: int) -> dict[str, str]:
    """Wait until so many pods have a nominated node, and return it of each."""

    def found() -> dict[str, str]:
        pods = {each["metadata"]["name"]: each["status"].get("nominatedNodeName") for each in cluster.pods()}
        return {name: node for name, node in pods.items() if node}

    wait_until(lambda: len(found()) == number, PATIENCE, f"{number} pods nominated")
    return found()


def broken_rules(cluster: Cluster) -> list[str]:
    """Return what the API server's objects break: rules, what kubelets reject, and gangs that are there in part."""
    return [*cluster.violations(), *cluster.rejections(), *gangs_in_part(all_groups(cluster.api), cluster.pods())]


def wait_until_members_are_bound(cluster: Cluster, group: str, number: int) -> None:
    """Wait until so many members of a group have a node, and no fewer."""
    wait_until(lambda: bound_members(cluster.pods())[group] >= number, PATIENCE, f"{number} members of {group} bound")
