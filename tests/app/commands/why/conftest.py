"""A small cluster with two pending pods, and the command with a kubeconfig for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.api_server.kubeconfigs import write_kubeconfig
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.app.commands.why.command_runs import BUSY, LARGE, NODES, SMALL, Why
from tests.builders import make_namespace


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        served.add("nodes", *(each.obj() for each in NODES))
        served.add("namespaces", make_namespace("shop").obj())
        served.add("pods", *(each.obj() for each in (BUSY, LARGE, SMALL)))
        yield served


@pytest.fixture
def kubeconfig(cluster: SmallCluster, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", cluster.url)


@pytest.fixture
def why(kubeconfig: str) -> Why:
    return Why(kubeconfig)
