"""Groups of `spec.schedulingGroup` beside ordinary pods, all at once: no rule is broken, no gang is there in part."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from tests.e2e.api import NODES, Manifest
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.conftest import Note
from tests.e2e.deciding import assert_followed, decisions
from tests.e2e.grouping import (
    Grouping,
    bound_members,
    broken_rules,
    create_group,
    has_cycles,
    member,
    scheduler_flags,
    served_groups,
)
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.scheduler import IN_TREE
from tests.e2e.shapes import HOSTNAME, apart, node, pod, required_node
from tests.throughput.modes import LISTED_NODES, MODES
from tests.throughput.results import ANY_NODE

# Nodes with exactly the room that groups and ordinary pods need together, these pods, and groups without room.
#
# Whatever the order, all others find their nodes as long as the rules are kept: what is left is no less than what
# waits.

NUMBER: Final = 60
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
    return [node(at, allocatable={"cpu": str(_CPUS), "memory": "64Gi", "pods": "110"}) for at in range(NUMBER)]


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
        *(_repelled(family) for family in range(_APART) for _ in range(NUMBER - _APART_GROUPS * SIZE)),
        *({"cpu": "0", "host_port": port} for port in _PORTS for _ in range(NUMBER - _PORT_GROUPS * SIZE)),
        *({"cpu": "1"} for _ in range(NUMBER * _CPUS - _CPU_GROUPS * SIZE)),
    ]
    Random(35).shuffle(shapes)  # noqa: S311  # the same order each time
    return [
        pod(f"ordinary-{number:03}", **shape, schedulerName=scheduler_names[number % len(scheduler_names)])
        for number, shape in enumerate(shapes)
    ]


def _repelled(family: int) -> dict[str, Any]:
    labels = {"family": f"apart-{family}"}
    return {"cpu": "0", "labels": labels, "affinity": apart(labels)}


def _on_few_nodes() -> dict[str, Any]:
    return required_node("matchExpressions", HOSTNAME, *(f"node-{number:04}" for number in range(FEW)))


def _group(name: str, minimum: int | None, shape: dict[str, Any]) -> Group:
    return Group(name, minimum, [member(name, number, **shape) for number in range(SIZE)])


pytestmark = pytest.mark.skipif(not has_cycles(), reason="there are PodGroups since 1.36")
SCHEDULERS: Final = ("kindred", "kindred-volumes")
BROKEN: Final = 10
"""So many times are rules broken where pods do not see all members: in fact some dozens of times."""


@pytest.fixture(autouse=True)
def _groups(cluster: Cluster) -> Iterator[None]:
    with served_groups(cluster):
        yield


class GroupLoad:
    """The nodes, groups and pods of this module."""

    def __init__(self, cluster: Cluster, scheduler_name: str | None = None) -> None:
        """Make the nodes and the groups. All pods are for one scheduler, if it is said."""
        self._cluster = cluster
        self._numbers = count()
        self._impossible = impossible_gangs()
        self.crowded = crowded_groups()
        possible = groups()
        self._pods: list[Manifest] = ordinary_pods(SCHEDULERS)
        self.number = len(self._pods) + sum(len(each.members) for each in possible) + self._at_most_crowded()
        """Pods that have room."""
        cluster.api.create_all(NODES, nodes())
        for group in (*possible, *self._impossible, *self.crowded):
            create_group(cluster.api, group.name, group.minimum)
            self._pods += group.members
        for each in self._pods if scheduler_name else ():
            each["spec"]["schedulerName"] = scheduler_name
        Random(36).shuffle(self._pods)  # noqa: S311  # the same order each time

    def _at_most_crowded(self) -> int:
        return len(self.crowded) * FEW

    @contextmanager
    def created(self) -> Iterator[None]:
        """Make the pods at once, while something else is done."""
        with ThreadPoolExecutor(1) as creating:
            created = creating.submit(self._cluster.create_pods, self._pods)
            yield
            created.result()

    def wait_until_all_with_room_are_bound(self) -> float:
        """Wait until no pod is without a node that has room for it; return the seconds that it took.

        A node changes now and then, as in any cluster: kube-scheduler tries again what an extender has refused.
        """
        return wait_until(self._are_bound, PATIENCE, f"{self.number} pods bound", every=0.5)

    def _are_bound(self) -> bool:
        change = {"metadata": {"labels": {"example.com/seen": str(next(self._numbers))}}}
        self._cluster.api.patch(f"{NODES}/node-0000", change)
        return self._cluster.bound() >= self.number

    def assert_that_others_wait(self) -> None:
        """No member of a gang without room has a node, and of a crowded group all but one have one."""
        bound = bound_members(self._cluster.pods())
        assert not [group.name for group in self._impossible if bound[group.name]]
        assert {bound[group.name] for group in self.crowded} == {FEW}

    def delete_others(self) -> None:
        """Delete the gangs that have no room."""
        for group in self._impossible:
            for each in group.members:
                self._cluster.api.delete(f"{PODS}/{each['metadata']['name']}")


def test_in_tree_alone_breaks_no_rule_so_the_judge_is_right(cluster: Cluster, note: Note) -> None:
    load = GroupLoad(cluster, "default-scheduler")
    cluster.start_scheduler(MODES[IN_TREE].config(""), flags=scheduler_flags())
    with load.created():
        pass
    note(f"{load.number} pods bound {load.wait_until_all_with_room_are_bound():.1f} s after the last was made")
    assert broken_rules(cluster) == []
    load.assert_that_others_wait()


@pytest.mark.parametrize("mode", [LISTED_NODES, pytest.param(ANY_NODE, marks=pytest.mark.long)])
def test_groups_beside_ordinary_pods_and_kindred_is_killed_twice(cluster: Cluster, mode: str, note: Note) -> None:
    load = GroupLoad(cluster)
    grouping = Grouping(cluster, MODES[mode])
    killed_at = []
    with load.created():
        for share in (load.number // 4, load.number // 2):
            wait_until(lambda share=share: cluster.bound() >= share, PATIENCE, f"{share} pods bound")  # type: ignore[misc]
            grouping.restart_kindred()
            killed_at.append(cluster.bound())
    seconds = load.wait_until_all_with_room_are_bound()
    note(
        f"killed with {killed_at} of {load.number} pods bound, all {seconds:.1f} s later: {decisions(grouping.kindred)}"
    )
    assert killed_at[-1] < load.number
    assert broken_rules(cluster) == []
    load.assert_that_others_wait()
    load.delete_others()
    assert_followed(grouping.kindred)


def test_with_signs_of_other_members_rules_are_broken_so_these_tests_can_fail(cluster: Cluster, note: Note) -> None:
    load = GroupLoad(cluster)
    Grouping(cluster, module="tests.e2e.forgetful")
    with load.created():
        pass
    wait_until(lambda: len(broken_rules(cluster)) > BROKEN, PATIENCE, f"{BROKEN} rules broken", every=0.5)
    note(f"{len(broken_rules(cluster))} rules broken")
