"""Kindred as a follower of the API server: what it asked for, what failed, and whether it is equal again."""

import math
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

import httpx

from tests.e2e.api import NAMESPACES, NODES
from tests.e2e.cluster import NAMESPACE, PODS, Cluster
from tests.e2e.kindred import Kindred
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import node, on, pod

FOLLOWED: Final = ("nodes", "pods", "namespaces")
_BACKOFF: Final = 1.2  # seconds: the second wait, less its jitter


class Counts(NamedTuple):
    """What happened to one resource, each by its kind."""

    requests: Mapping[str, int] = {}
    failures: Mapping[str, int] = {}
    relists: Mapping[str, int] = {}


class Follower:
    """A running Kindred, seen by its metrics and its readiness."""

    def __init__(self, kindred: Kindred) -> None:
        """Count from the start of it."""
        self.kindred = kindred
        self._before: Mapping[str, float] = {}
        self._marked = time.monotonic()

    def mark(self) -> None:
        """Count anew from here."""
        self._marked = time.monotonic()
        self._before = self.kindred.samples()

    def most_attempts(self) -> int:
        """Return how often each resource can have been asked for since the mark: one more than its waits allow.

        A request that fails is sent again after 0.6 s at least, and then each time after 1.2 s.
        """
        return 2 + math.ceil((time.monotonic() - self._marked) / _BACKOFF)

    def counts(self, resource: str = "pods") -> Counts:
        """Count what happened to a resource since the last `mark`."""
        now = self.kindred.samples()
        return Counts(
            self._grown(now, "requests", "type", resource),
            self._grown(now, "failures", "kind", resource),
            self._grown(now, "relists", "reason", resource),
        )

    def known(self, resource: str = "pods") -> int:
        """Return how many objects of a resource it knows."""
        return round(self.kindred.samples()[f'kindred_watch_known_objects{{resource="{resource}"}}'])

    def problem(self, resource: str = "pods") -> str:
        """Return what went wrong with the last request for a resource. Empty when it went well."""
        problem: str | None = self.kindred.readiness()["resources"][resource]["problem"]
        return problem or ""

    def until_stale(self, text: str) -> float:
        """Wait until it is not ready, and says of every resource that it is stale, for a reason with this text."""
        return wait_until(lambda: self._is_stale(text), PATIENCE, f"not ready, because of {text}")

    def until_equal(self) -> None:
        """Wait until it is ready, follows without a problem, and its mirror equals the cluster."""
        try:
            wait_until(self._is_equal, PATIENCE, "equal", every=0.3)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.kindred.readiness()} {self.kindred.program.last_lines()}") from None

    def _is_stale(self, text: str) -> bool:
        reported = self.kindred.readiness()["problems"]
        return len(reported) == len(FOLLOWED) and all(": stale for" in each and text in each for each in reported)

    def _is_equal(self) -> bool:
        if not self.kindred.is_ready() or any(self.problem(resource) for resource in FOLLOWED):
            return False
        try:
            return self.kindred.is_equal()
        except httpx.HTTPStatusError:  # it could not list
            return False

    def _grown(self, now: Mapping[str, float], name: str, label: str, resource: str) -> dict[str, int]:
        beginning, middle = f"kindred_watch_{name}_total{{", f'resource="{resource}"'
        grown = {}
        for sample, value in now.items():
            growth = round(value - self._before.get(sample, 0))
            if sample.startswith(beginning) and middle in sample and growth:
                grown[sample.partition(f'{label}="')[2].partition('"')[0]] = growth
        return grown


def populate(cluster: Cluster, pods: int = 20) -> None:
    """Make three nodes, and pods that are bound to them in turn."""
    cluster.add_nodes(3)
    cluster.create_pods(on(pod(f"pod-{index}", {"is": "old"}), f"node-{index % 3:04}") for index in range(pods))


def churn(cluster: Cluster) -> None:
    """Do to what was populated all that can happen to objects: make, relabel, delete, and make again under the name."""
    api = cluster.api
    cluster.create_pods(on(pod(f"new-{index}"), f"node-{index % 3:04}") for index in range(10))
    for index in range(5):
        api.delete(f"{PODS}/pod-{index}")
        api.patch(f"{PODS}/pod-{5 + index}", {"metadata": {"labels": {"is": "changed"}}})
        # Another uid, and on another node.
        api.delete(f"{PODS}/pod-{10 + index}")
        api.create(PODS, on(pod(f"pod-{10 + index}", {"is": "another"}), f"node-{index % 2:04}"))
    api.patch(f"{NODES}/node-0000", {"metadata": {"labels": {"is": "changed"}}})
    api.delete(f"{NODES}/node-0001")
    api.create(NODES, node(1, zones=1))
    api.delete(f"{NODES}/node-0002")
    names = len(api.items(NAMESPACES))
    api.create(NAMESPACES, {"metadata": {"name": f"{NAMESPACE}-{names}"}})
    changes = str(api.get(f"{NAMESPACES}/{NAMESPACE}")["metadata"]["resourceVersion"])
    api.patch(f"{NAMESPACES}/{NAMESPACE}", {"metadata": {"labels": {"changed-at": changes}}})
