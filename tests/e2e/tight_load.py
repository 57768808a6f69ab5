"""Nodes with hardly more room than some pods need, and these pods. Two that do not see each other break a rule.

Whatever the order, each pod finds a node as long as the rules are kept: the room of one kind is not that of another.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final

from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, ZONE, node, pod, required, required_node, term

NODES: Final = 120
"""More than the hundred of which kube-scheduler names no more, where it may."""
_ZONES: Final = 4
_TAINTS: Final = ("NoSchedule", "NoExecute")
_APART: Final = (NODES, NODES, 60)
_GROUPS, _SIZE = 6, 50
_FILLING: Final = 300
_DAEMONS: Final = 60
_SKEW: Final = 2
_SPREAD: Final = _SKEW * NODES


def nodes() -> Iterator[Manifest]:
    """Give nodes of 300 CPUs together, and two with taints that no pod tolerates."""
    for index in range(NODES + len(_TAINTS)):
        allocatable = {"cpu": str(2 + index % 2), "memory": "64Gi", "pods": "110"}
        taints = [{"key": "example.com/out", "effect": effect} for effect in _TAINTS[index - NODES :][:1]]
        yield {**node(index, _ZONES, allocatable), **({"spec": {"taints": taints}} if index >= NODES else {})}


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
            affinity = required("podAntiAffinity", term(labels, HOSTNAME))
            yield pod(f"apart-{group}-{number}", labels, cpu="0", affinity=affinity)


def _together() -> Iterator[Manifest]:
    """Yield 300 pods of which each group stands in one zone."""
    for group in range(_GROUPS):
        labels = {"group": f"together-{group}"}
        for number in range(_SIZE):
            affinity = required("podAffinity", term(labels, ZONE))
            yield pod(f"together-{group}-{number}", labels, cpu="0", affinity=affinity)


def _filling() -> Iterator[Manifest]:
    """Yield 300 pods that take all CPUs."""
    for number in range(_FILLING):
        yield pod(f"filling-{number}", {"group": "filling"}, cpu="1")


def _with_ports() -> Iterator[Manifest]:
    """Yield a pod for each node, all with the same host port."""
    for number in range(NODES):
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
