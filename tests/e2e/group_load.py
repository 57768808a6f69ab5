"""Nodes with exactly the room that groups and ordinary pods need together, these pods, and groups without room.

Whatever the order, all others find their nodes as long as the rules are kept: what is left is no less than what waits.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple

from tests.e2e.api import Manifest
from tests.e2e.groups import member
from tests.e2e.shapes import HOSTNAME, node, pod, required, required_node, term

NODES: Final = 60
SIZE: Final = 8
"""Members of each group."""
_CPUS: Final = 2
_APART, _APART_GROUPS = 4, 3
_PORTS: Final = (8080, 8081, 8082)
_CROWDED_PORTS: Final = (9000, 9001)
_PORT_GROUPS: Final = 4
_CPU_GROUPS: Final = 12
_MINIMUMS: Final = (SIZE, None, 5)
"""The minimums of groups, in turn; None is a basic group."""
FEW: Final = SIZE - 1
"""Nodes for all members of a group but one."""


class Group(NamedTuple):
    """A group with its members."""

    name: str
    minimum: int | None
    members: Sequence[Manifest]


def nodes() -> list[Manifest]:
    """Return the nodes."""
    return [node(at, allocatable={"cpu": str(_CPUS), "memory": "64Gi", "pods": "110"}) for at in range(NODES)]


def groups() -> list[Group]:
    """Return 36 groups that all have room together."""
    shapes = [
        *(_repelled(family) for family in range(_APART) for _ in range(_APART_GROUPS)),
        *({"cpu": "0", "host_port": port} for port in _PORTS for _ in range(_PORT_GROUPS)),
        *({"cpu": "1"} for _ in range(_CPU_GROUPS)),
    ]
    return [_group(f"group-{number:02}", _MINIMUMS[number % 3], shape) for number, shape in enumerate(shapes)]


def impossible_gangs() -> list[Group]:
    """Return two gangs that want the same nodes as others, one too few."""
    repelled = _repelled(0)
    repelled["affinity"] |= _on_few_nodes()
    return [
        _group("impossible-0", SIZE, repelled),
        _group("impossible-1", SIZE, {"cpu": "0", "host_port": _PORTS[0], "affinity": _on_few_nodes()}),
    ]


def crowded_groups() -> list[Group]:
    """Return two basic groups of which one member each has no room."""
    shapes: list[dict[str, Any]] = [
        {"cpu": "0", "host_port": port, "affinity": _on_few_nodes()} for port in _CROWDED_PORTS
    ]
    return [_group(f"crowded-{at}", None, shape) for at, shape in enumerate(shapes)]


def ordinary_pods(scheduler_names: Sequence[str]) -> list[Manifest]:
    """Return the pods that take the rest of the room, for the schedulers in turn."""
    shapes = [
        *(_repelled(family) for family in range(_APART) for _ in range(NODES - _APART_GROUPS * SIZE)),
        *({"cpu": "0", "host_port": port} for port in _PORTS for _ in range(NODES - _PORT_GROUPS * SIZE)),
        *({"cpu": "1"} for _ in range(NODES * _CPUS - _CPU_GROUPS * SIZE)),
    ]
    Random(35).shuffle(shapes)  # noqa: S311  # the same order each time
    return [
        pod(f"ordinary-{number:03}", **shape, schedulerName=scheduler_names[number % len(scheduler_names)])
        for number, shape in enumerate(shapes)
    ]


def _repelled(family: int) -> dict[str, Any]:
    labels = {"family": f"apart-{family}"}
    return {"cpu": "0", "labels": labels, "affinity": required("podAntiAffinity", term(labels, HOSTNAME))}


def _on_few_nodes() -> dict[str, Any]:
    return required_node("matchExpressions", HOSTNAME, *(f"node-{number:04}" for number in range(FEW)))


def _group(name: str, minimum: int | None, shape: dict[str, Any]) -> Group:
    return Group(name, minimum, [member(name, number, **shape) for number in range(SIZE)])
