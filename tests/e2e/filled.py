"""A cluster of real size before anything is measured: nodes, and pods on them, of the shapes of tests/e2e/load_shapes.

One object of each kind is created. The others are put into etcd as its copies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from uuid import uuid4

import httpx

from tests.e2e.api import NAMESPACES, NODES, Api, Manifest, pods_path
from tests.e2e.cluster import Cluster
from tests.e2e.load_shapes import NODE, PLAIN, SHAPES, namespaces
from tests.e2e.programs import wait_until
from tests.e2e.shapes import node

_PATIENCE: Final = 300.0  # seconds


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster to measure in."""

    nodes: int
    scale: int
    """How many times upstream's number of existing pods for 500 nodes."""
    plain: int
    """Existing pods without affinity beside those."""
    measured: int | None = None
    """Pods that are measured; upstream's number when None."""


SIZES: Final = {
    size.nodes: size
    for size in (
        Size(500, 1, 0),
        Size(2000, 4, 13_440, 300),
        Size(5000, 10, 33_600, 300),
        Size(15_000, 30, 400_800, 300),
    )
}


def fill(cluster: Cluster, size: Size) -> int:
    """Make namespaces, nodes and the pods that are there before, and return how many pods these are."""
    api, store = cluster.api, cluster.plane.store
    api.create_all(NAMESPACES, namespaces())
    store(_copied_nodes(api, [node(index, zones=1, allocatable=NODE) for index in range(size.nodes)]))
    kinds = [[*shape.existing_pods(shape.existing * size.scale, size.nodes)] for shape in SHAPES]
    kinds.append([*PLAIN.existing_pods(size.plain, size.nodes)])
    for pods in filter(None, kinds):
        version = store(_copied_pods(api, pods))
    wait_until(lambda: _is_at(api, version), _PATIENCE, "the API server has what is in etcd", every=1.0)
    return sum(map(len, kinds))


def _is_at(api: Api, version: int) -> bool:
    """Whether the API server's cache of pods is as new as a version. Until then, it can serve no watch with a list."""
    try:
        api.get(f"/api/v1/pods?limit=1&resourceVersion={version}&resourceVersionMatch=NotOlderThan")
    except httpx.HTTPStatusError as error:
        if error.response.status_code != HTTPStatus.GATEWAY_TIMEOUT:
            raise
        return False
    return True


def _copied_nodes(api: Api, nodes: Sequence[Manifest]) -> Iterator[tuple[str, Manifest]]:
    created = api.create(NODES, nodes[0])
    for each in nodes[1:]:
        yield f"minions/{each['metadata']['name']}", _copy(created, each)


def _copied_pods(api: Api, pods: Sequence[tuple[str, Manifest]]) -> Iterator[tuple[str, Manifest]]:
    created = api.create(pods_path(pods[0][0]), pods[0][1])
    for namespace, each in pods[1:]:
        copy = _copy(created, each, namespace=namespace)
        spec = {**created["spec"], "nodeName": each["spec"]["nodeName"]}
        yield f"pods/{namespace}/{each['metadata']['name']}", {**copy, "spec": spec}


def _copy(created: Manifest, other: Manifest, **more: str) -> Manifest:
    """Return what the API server would have answered if the other one had been created, too."""
    labels = {**created["metadata"].get("labels", {}), **other["metadata"]["labels"]}
    metadata = {**created["metadata"], **other["metadata"], "uid": str(uuid4()), "labels": labels, **more}
    return {**created, "metadata": metadata}
