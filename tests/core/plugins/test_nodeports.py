"""NodePorts: which ports conflict, and which are in use on the nodes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go and k8s.io/kube-scheduler
framework/types.go (HostPortInfo).
"""

import json
import random
from functools import partial
from typing import Final

import pytest

from app.objects.decode_pod import decode_pod
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.pod import ALL_ADDRESSES, HostPort, Pod
from core.plugins.nodeports import HostPortsInUse, NodePorts
from tests.builders import Object, make_node, make_pod
from tests.core.decoded import demanding, mirror_of
from tests.core.plugins.values import delete, filtered
from tests.core.plugins.values import tell as add

TAKEN: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",))
HTTP: Final = {"hostPort": 80}


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


def test_nothing_is_kept_of_ports_that_nobody_has() -> None:
    pod = pod_with(HTTP, on="n1")
    mirror = mirror_with(pod)
    retained = mirror.derived(HostPortsInUse)
    assert retained.in_use == {(80, "TCP"): {HostPort(80): {mirror.nodes.slots["n1"]: 1}}}
    delete(mirror, pod)
    assert retained.in_use == {}


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
        return demanding(pod_with(name=name, on=node), host_ports=frozenset(taken))

    names = [f"n{number}" for number in range(6)]
    mirror = mirror_of(*map(make_node, names))
    in_use = {name: ports() for name in names[:5]}
    add(mirror, *(pod(f"on-{name}", name, taken) for name, taken in in_use.items()))
    for _ in range(20):
        required = ports()
        found = statuses(mirror, pod("p", "", required), *names)
        conflicts = [any(conflict(port, other) for port in required for other in in_use.get(n, ())) for n in names]
        assert [status == TAKEN for status in found] == conflicts


def test_many_addresses_of_one_port_conflict_where_one_of_them_is_in_use() -> None:
    addresses = [HostPort(80, ip=f"10.0.{number // 256}.{number % 256}") for number in range(2000)]
    mirror = mirror_with(demanding(pod_with(name="there", on="n1"), host_ports=frozenset(addresses[:1000])))
    required = [frozenset(addresses[1000:]), frozenset(addresses[500:])]
    found = [statuses(mirror, demanding(pod_with(), host_ports=ports), "n1", "n2") for ports in required]
    assert found == [[SUCCESS, SUCCESS], [TAKEN, SUCCESS]]
