"""A tight load for schedulers that leave the decision to Kindred, and what must hold of it in the end."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, Final

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.kindred import Kindred, samples_of
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import HOSTNAME, apart, node, pod, required_node, together
from tests.throughput.modes import Mode

# Nodes with hardly more room than some pods need, and these pods. Two that do not see each other break a rule.
#
# Whatever the order, each pod finds a node as long as the rules are kept: the room of one kind is not that of
# another.

NUMBER: Final = 120
"""More than the hundred of which kube-scheduler names no more, where it may."""
_ZONES: Final = 4
_TAINTS: Final = ("NoSchedule", "NoExecute")
_APART: Final = (NUMBER, NUMBER, 60)
_GROUPS, _SIZE = 6, 50
_FILLING: Final = 300
_DAEMONS: Final = 60
_SKEW: Final = 2
_SPREAD: Final = _SKEW * NUMBER


def nodes() -> Iterator[Manifest]:
    """Give nodes of 300 CPUs together, and two with taints that no pod tolerates."""
    for index in range(NUMBER + len(_TAINTS)):
        allocatable = {"cpu": str(2 + index % 2), "memory": "64Gi", "pods": "110"}
        taints = [{"key": "example.com/out", "effect": effect} for effect in _TAINTS[index - NUMBER :][:1]]
        yield {**node(index, _ZONES, allocatable), **({"spec": {"taints": taints}} if index >= NUMBER else {})}


def pods(scheduler_names: Sequence[str]) -> list[Manifest]:
    """Return pods of all kinds, mixed; those of each kind are for the schedulers in turn."""
    kinds = (_apart(), _together(), _filling(), _with_ports(), _daemons(), _spread())
    mixed = []
    for number, row in enumerate(zip_longest(*kinds)):
        for made in row:
            if made is not None:
                made["spec"]["schedulerName"] = scheduler_names[number % len(scheduler_names)]
                mixed.append(made)
    return mixed


def _apart() -> Iterator[Manifest]:
    """Yield 300 pods of which no two of a group stand on one node; two of the groups need all nodes."""
    for group, size in enumerate(_APART):
        labels = {"group": f"apart-{group}"}
        for number in range(size):
            affinity = apart(labels)
            yield pod(f"apart-{group}-{number}", labels, cpu="0", affinity=affinity)


def _together() -> Iterator[Manifest]:
    """Yield 300 pods of which each group stands in one zone."""
    for group in range(_GROUPS):
        labels = {"group": f"together-{group}"}
        for number in range(_SIZE):
            affinity = together(labels)
            yield pod(f"together-{group}-{number}", labels, cpu="0", affinity=affinity)


def _filling() -> Iterator[Manifest]:
    """Yield 300 pods that take all CPUs."""
    for number in range(_FILLING):
        yield pod(f"filling-{number}", {"group": "filling"}, cpu="1")


def _with_ports() -> Iterator[Manifest]:
    """Yield a pod for each node, all with the same host port."""
    for number in range(NUMBER):
        yield pod(f"port-{number}", {"group": "port"}, cpu="0", host_port=8080)


def _daemons() -> Iterator[Manifest]:
    """Yield pods that name their node, as those of a DaemonSet do, with a host port."""
    for number in range(_DAEMONS):
        affinity = required_node("matchFields", "metadata.name", f"node-{2 * number:04}")
        yield pod(f"daemon-{number}", {"group": "daemon"}, cpu="0", host_port=9100, affinity=affinity)


def _spread() -> Iterator[Manifest]:
    """Yield two pods for each node: those with taints count as nodes without any, so there is no room for a third."""
    labels = {"group": "spread"}
    constraint: dict[str, Any] = {
        "maxSkew": _SKEW,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    for number in range(_SPREAD):
        yield pod(f"spread-{number}", labels, cpu="0", topologySpreadConstraints=[constraint])


LATE: Final = 2.0  # seconds
_CONFIRMED: Final = 60.0  # seconds, far less than an assumption lives by itself
_UNBOUND: Final = f"{PODS}?fieldSelector=spec.nodeName%3D&limit=1"
_DECISIONS: Final = "kindred_decisions_total"


class Load:
    """The nodes and pods of this module."""

    def __init__(self, cluster: Cluster, late: float = 0.0) -> None:
        """Make the nodes. From when the pods are made, Kindred sees events `late` seconds after they happen."""
        self._cluster = cluster
        self._proxy = cluster.start_proxy()
        self._late = late
        cluster.api.create_all(NODES, nodes())

    @property
    def server(self) -> str:
        """The URL of the proxy."""
        return self._proxy.url

    def start_kindred(self, mode: Mode, **settings: str) -> Kindred:
        """Start Kindred."""
        return self._cluster.start_kindred({**mode.settings, **settings}, server=self.server)

    @contextmanager
    def created(self, *scheduler_names: str) -> Iterator[int]:
        """Make the pods at once, while something else is done; give their number."""
        made = pods(scheduler_names)
        self._proxy.delay = self._late
        with ThreadPoolExecutor(1) as creating:
            created = creating.submit(self._cluster.create_pods, made)
            yield len(made)
            created.result()

    def wait_until_all_are_bound(self) -> float:
        """Wait until no pod is without a node, and return the seconds that it took."""
        api = self._cluster.api
        return wait_until(lambda: not api.get(_UNBOUND)["items"], PATIENCE, "all pods bound", every=0.5)

    def broken_rules(self) -> list[str]:
        """Return what the API server's objects break: the scheduler's rules, and what kubelets reject."""
        return [*self._cluster.violations(), *self._cluster.rejections()]


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
    kindred.assert_equal()
