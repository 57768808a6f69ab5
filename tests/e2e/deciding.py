"""A tight load for schedulers that leave the decision to Kindred, and what must hold of it in the end."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from tests.e2e import tight_load
from tests.e2e.api import NODES
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.kindred import Kindred, samples_of
from tests.e2e.programs import wait_until
from tests.throughput.modes import Mode

LATE: Final = 2.0  # seconds
PATIENCE: Final = 180.0  # seconds
_CONFIRMED: Final = 20.0  # seconds, far less than an assumption lives by itself
_UNBOUND: Final = f"{PODS}?fieldSelector=spec.nodeName%3D&limit=1"
_DECISIONS: Final = "kindred_decisions_total"


class Load:
    """The nodes and pods of tests.e2e.tight_load."""

    def __init__(self, cluster: Cluster, late: float = 0.0) -> None:
        """Make the nodes. From when the pods are made, Kindred sees events `late` seconds after they happen."""
        self._cluster = cluster
        self._proxy = cluster.start_proxy()
        self._late = late
        cluster.api.create_all(NODES, tight_load.nodes())

    def start_kindred(self, mode: Mode, *, follows: bool = False, **settings: str) -> Kindred:
        """Start Kindred. `follows`: another replica leads."""
        variables = {**mode.settings, **settings}
        return self._cluster.start_kindred(variables, server=self._proxy.url, follows=follows)

    @contextmanager
    def created(self, *scheduler_names: str) -> Iterator[int]:
        """Make the pods at once, while something else is done; give their number."""
        pods = tight_load.pods(scheduler_names)
        self._proxy.delay = self._late
        with ThreadPoolExecutor(1) as creating:
            created = creating.submit(self._cluster.create_pods, pods)
            yield len(pods)
            created.result()

    def wait_until_all_are_bound(self) -> float:
        """Wait until no pod is without a node, and return the seconds that it took."""
        api = self._cluster.api
        return wait_until(lambda: not api.get(_UNBOUND)["items"], PATIENCE, "all pods bound", every=0.5)

    def broken_rules(self) -> list[str]:
        """Return what the API server's objects break: the scheduler's rules, and what kubelets reject."""
        return [*self._cluster.violations(), *self._cluster.rejections()]


def last_settled(cluster: Cluster) -> float:
    """Return the seconds that the last Kindred to start or to take over has settled for, as its log has it."""
    log = (cluster.plane.folder / "kindred.log").read_text("utf-8")
    return float(re.findall(r"earlier decisions have settled in ([\d.]+) s", log)[-1])


def renamed(config: Mapping[str, Any], scheduler_name: str) -> dict[str, Any]:
    """Return the configuration of a kube-scheduler with the first profile alone, under another name."""
    return {**config, "profiles": [{**config["profiles"][0], "schedulerName": scheduler_name}]}


def decisions(kindred: Kindred) -> dict[str, int]:
    """Return what came of decisions, outcome -> count, without zeros."""
    found = samples_of(kindred.samples(), _DECISIONS)
    return {labels.split('"')[1]: int(count) for labels, count in found.items() if count}


def assert_followed(kindred: Kindred) -> None:
    """Nothing stays assumed, and the mirror equals the API server's objects."""
    wait_until(lambda: not kindred.samples()["kindred_mirror_assumed_pods"], _CONFIRMED, "no pod is assumed")
    found = kindred.differences().values()
    assert [each for each in found if each["missed"] or each["redundant"] or each["differing"]] == []
