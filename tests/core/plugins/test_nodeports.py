"""NodePorts: which ports conflict, and which are in use on the nodes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go and k8s.io/kube-scheduler
framework/types.go (HostPortInfo).
"""

import json
import random
from functools import partial
from typing import Final

import pytest
from msgspec.structs import replace

from app.objects.decode_pod import decode_pod
from core.events import Action, ClusterEvent
from core.framework.interface import SKIP, SUCCESS, Code, Operation, Scope, Status
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import ALL_ADDRESSES, HostPort, Pod
from core.plugins.nodeports import HostPortsInUse, NodePorts
from tests.builders import Object, make_node, make_pod
from tests.core.decoded import mirror_of, node_of, tell
from tests.core.plugins.told import delete, filtered
from tests.core.plugins.told import tell as add

TAKEN: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))
HTTP: Final = {"hostPort": 80}
ACTIONS: Final[tuple[Action, ...]] = ("Add", "Update", "Delete")


statuses: Final = partial(filtered, NodePorts())


def pod_with(*ports: Object, name: str = "p", on: str = "") -> Pod:
    pod = make_pod(name).on(on).obj()
    pod["spec"]["containers"] = [{"name": "c", "ports": list(ports)}]
    return decode_pod(json.dumps(pod).encode())


def mirror_with(*pods: Pod) -> ClusterMirror:
    mirror = mirror_of(make_node("n1"), make_node("n2"))
    add(mirror, *pods)
    return mirror


def conflict(one: HostPort, other: HostPort) -> bool:
    """Return whether two pods of one node cannot have these ports (HostPortInfo.CheckConflict)."""
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and (one.ip == other.ip or ALL_ADDRESSES in (one.ip, other.ip))


def free(mirror: ClusterMirror, *names: str) -> list[bool]:
    """Tell of each node whether a pod that wants port 80 passes."""
    return [status == SUCCESS for status in statuses(mirror, pod_with(HTTP), *names)]


def test_a_pod_without_host_ports_is_skipped() -> None:
    assert NodePorts().pre_filter(mirror_with(), pod_with({"containerPort": 80})) == (SKIP, None)


def test_ports_are_known_on_nodes_beyond_the_slots_of_the_start() -> None:
    mirror = mirror_with()
    assert free(mirror, "n1") == [True]
    tell(mirror, "Add", *(make_node(f"more{index}") for index in range(40)))
    add(mirror, pod_with(HTTP, on="more39"))
    assert free(mirror, "more38", "more39") == [True, False]


def test_all_ports_of_a_node_that_the_mirror_does_not_know_are_free() -> None:
    mirror = mirror_of(*(make_node(f"n{index}") for index in range(16)))  # every slot is a node's, the last one too
    add(mirror, pod_with(HTTP, on="n15"))
    found = statuses(mirror, pod_with(HTTP), "n15", whole=(node_of(make_node("new")),))
    assert found == [TAKEN, SUCCESS]


def test_the_plugin_says_what_it_follows_from() -> None:
    plugin = NodePorts()
    mirror = mirror_with()
    _, state = plugin.pre_filter(mirror, pod_with(HTTP))
    assert state is not None
    assert (plugin.name, plugin.kinds, plugin.class_fields) == ("NodePorts", (Node, Pod), ("host_ports",))
    assert plugin.filter_versions(state) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, pod_with(HTTP), True, id="a-pod-with-ports-comes"),
        pytest.param(pod_with(HTTP), None, True, id="a-pod-with-ports-goes"),
        pytest.param(pod_with(HTTP), pod_with(HTTP, {"hostPort": 81}), True, id="a-pod-has-other-ports"),
        pytest.param(None, pod_with(), False, id="a-pod-without-ports-comes"),
        pytest.param(pod_with(), None, False, id="a-pod-without-ports-goes"),
        pytest.param(pod_with(HTTP), pod_with(HTTP, name="renamed"), False, id="whatever-else-changes"),
    ],
)
def test_ports_that_are_taken_or_set_free_invalidate_the_node(
    before: Pod | None, after: Pod | None, *, expected: bool
) -> None:
    (rule,) = NodePorts().invalidated_by
    assert (rule.kind, rule.scope) == (Pod, Scope.NODE)
    assert Operation.of(before, after) in rule.operations
    assert rule.touches(before, after) is expected


@pytest.mark.parametrize("seed", range(10))
def test_ports_kept_by_events_are_those_of_a_fresh_look(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's choice
    mirror = mirror_with()
    kept = mirror.derived(HostPortsInUse)
    for _ in range(200):
        pod = _random_pod(chance)
        if chance.random() < 0.1:
            tell(mirror, chance.choice(("Add", "Delete")), make_node(f"n{chance.randrange(4)}"))
        else:
            mirror.apply(ClusterEvent(chance.choice(ACTIONS), pod))
        assert kept.in_use == HostPortsInUse(mirror).in_use


def _random_pod(chance: random.Random) -> Pod:
    ports = [
        {"hostPort": chance.choice((80, 81)), "hostIP": chance.choice(("", "10.0.0.1", "10.0.0.2"))}
        for _ in range(chance.randrange(3))
    ]
    return pod_with(*ports, name=f"p{chance.randrange(6)}", on=f"n{chance.randrange(4)}")


def test_nothing_is_kept_of_ports_that_nobody_has() -> None:
    pod = pod_with(HTTP, on="n1")
    mirror = mirror_with(pod)
    kept = mirror.derived(HostPortsInUse)
    assert kept.in_use == {(80, "TCP"): {HostPort(80): {mirror.nodes.slots["n1"]: 1}}}
    delete(mirror, pod)
    assert kept.in_use == {}


@pytest.mark.parametrize("seed", range(10))
def test_ports_are_taken_where_any_port_in_use_conflicts(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test's choice

    def ports() -> list[HostPort]:
        addresses = (ALL_ADDRESSES, "10.0.0.1", "10.0.0.2", "10.0.0.3")
        return [
            HostPort(chance.choice((80, 81)), chance.choice(("TCP", "UDP")), chance.choice(addresses))
            for _ in range(chance.randrange(1, 4))
        ]

    def pod(name: str, node: str, taken: list[HostPort]) -> Pod:
        return replace(pod_with(name=name, on=node), host_ports=frozenset(taken))

    names = [f"n{number}" for number in range(6)]
    mirror = mirror_of(*map(make_node, names))
    in_use = {name: ports() for name in names[:5]}
    add(mirror, *(pod(f"on-{name}", name, taken) for name, taken in in_use.items()))
    for _ in range(20):
        wanted = ports()
        found = statuses(mirror, pod("p", "", wanted), *names)
        conflicts = [any(conflict(port, other) for port in wanted for other in in_use.get(n, ())) for n in names]
        assert [status == TAKEN for status in found] == conflicts


def test_many_addresses_of_one_port_conflict_where_one_of_them_is_in_use() -> None:
    addresses = [HostPort(80, ip=f"10.0.{number // 256}.{number % 256}") for number in range(2000)]
    mirror = mirror_with(replace(pod_with(name="there", on="n1"), host_ports=frozenset(addresses[:1000])))
    wanted = [frozenset(addresses[1000:]), frozenset(addresses[500:])]
    found = [statuses(mirror, replace(pod_with(), host_ports=ports), "n1", "n2") for ports in wanted]
    assert found == [[SUCCESS, SUCCESS], [TAKEN, SUCCESS]]
