"""Which nodes ServiceAffinity keeps a pod from, and what changes that.

Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go, and the tables of
its service_affinity_test.go (TestServiceAffinity).
"""

from collections.abc import Mapping
from typing import Final

import pytest

from core.events import Object
from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NodeAffinity, selector_from_set
from core.objects.kinds import Service
from core.objects.labels import NOTHING
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.serviceaffinity import ServiceAffinity
from tests.core.plugins.values import mirror_of, tell

VIOLATED: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't match service affinity",))
NODES: Final = (
    Node(name="m1", labels={"region": "r1", "zone": "z11"}),
    Node(name="m2", labels={"region": "r1", "zone": "z12"}),
    Node(name="m3", labels={"region": "r2", "zone": "z21"}),
    Node(name="m4", labels={"region": "r2", "zone": "z22"}),
    Node(name="bare"),
)
NAMES: Final = tuple(node.name for node in NODES)
LABELS: Final = {"app": "web"}


def pod_with(
    labels: Mapping[str, str] = LABELS, *, on: str = "", name: str = "p", namespace: str = "a", **node_selector: str
) -> Pod:
    affinity = NodeAffinity(selector=selector_from_set(node_selector))
    return Pod(
        uid=f"{namespace}/{name}", namespace=namespace, name=name, labels=labels, node_name=on, node_affinity=affinity
    )


def service(namespace: str = "a", name: str = "web", **selector: str) -> Service:
    return Service(namespace, name, selector_from_set(selector) if selector else NOTHING)


WEB: Final = service(app="web")


def mirror_with(*objects: Object) -> ClusterMirror:
    return mirror_of(*NODES, *objects)


def feasible(mirror: ClusterMirror, pod: Pod, *affinity_labels: str) -> list[str]:
    """Return the names of the nodes that pass."""
    plugin = ServiceAffinity(affinity_labels=affinity_labels)
    status, state = plugin.pre_filter(mirror, pod)
    if state is None:
        assert status == SKIP
        return list(NAMES)
    verdicts = plugin.filter(state, mirror.batch(NAMES))
    assert set(map(verdicts.status, range(len(NAMES)))) <= {SUCCESS, VIOLATED}
    return [name for position, name in enumerate(NAMES) if verdicts.status(position) == SUCCESS]


@pytest.mark.parametrize(
    ("pod", "others", "expected"),
    [
        pytest.param(pod_with(), [], list(NAMES), id="nothing-scheduled"),
        pytest.param(pod_with(region="r1"), [], ["m1", "m2"], id="pod-with-region-label-match"),
        pytest.param(pod_with(region="r3"), [], [], id="pod-with-region-label-mismatch"),
        pytest.param(pod_with(), [WEB, pod_with(on="m1", name="x")], ["m1", "m2"], id="service-pod-on-a-node"),
        pytest.param(pod_with(), [WEB], list(NAMES), id="service-without-pods"),
        pytest.param(pod_with(), [pod_with(on="m1", name="x")], list(NAMES), id="pods-alike-without-a-service"),
        pytest.param(
            pod_with(),
            [service("b", app="web"), pod_with(on="m1", name="x")],
            list(NAMES),
            id="service-of-another-namespace",
        ),
        pytest.param(
            pod_with(),
            [WEB, pod_with(on="m1", name="x", namespace="b")],
            list(NAMES),
            id="pod-of-another-namespace",
        ),
        pytest.param(
            pod_with(), [service(), pod_with(on="m1", name="x")], list(NAMES), id="service-without-a-selector"
        ),
        pytest.param(
            pod_with({"app": "web", "v": "2"}),
            [WEB, pod_with({"app": "web", "v": "1"}, on="m1", name="x")],
            list(NAMES),
            id="pod-of-the-service-that-lacks-a-label-of-the-incoming-one",
        ),
        pytest.param(
            pod_with(),
            [WEB, pod_with({"app": "web", "v": "1"}, on="m1", name="x")],
            ["m1", "m2"],
            id="pod-with-labels-besides",
        ),
        pytest.param(
            pod_with(region="r2"), [WEB, pod_with(on="m1", name="x")], ["m3", "m4"], id="the-node-selector-comes-first"
        ),
        pytest.param(pod_with(disk="ssd"), [], list(NAMES), id="other-labels-of-the-node-selector-are-not-looked-at"),
        pytest.param(
            pod_with(),
            [WEB, pod_with(on="bare", name="x")],
            list(NAMES),
            id="a-node-without-the-label-asks-for-nothing",
        ),
        pytest.param(
            pod_with(), [WEB, pod_with(on="unknown", name="x")], list(NAMES), id="a-pod-whose-node-is-not-known"
        ),
    ],
)
def test_pods_of_a_service_stay_in_one_region(pod: Pod, others: list[Object], expected: list[str]) -> None:
    assert feasible(mirror_with(*others), pod, "region") == expected


def test_labels_that_the_node_selector_leaves_open_are_those_of_the_other_pod() -> None:
    mirror = mirror_with(WEB, pod_with(on="m1", name="x"))
    assert feasible(mirror, pod_with(), "region", "zone") == ["m1"]
    assert feasible(mirror, pod_with(zone="z12"), "region", "zone") == ["m2"]
    assert feasible(mirror, pod_with(region="r2"), "region", "zone") == []


def test_of_several_nodes_with_such_pods_the_first_by_name_decides_in_whichever_order_they_came() -> None:
    pods = [pod_with(on=node, name=f"x-{node}") for node in ("m3", "m2", "m4")]
    for order in (pods, pods[::-1]):
        assert feasible(mirror_with(WEB, *order), pod_with(), "zone") == ["m2"]


def test_without_labels_there_is_nothing_to_hold() -> None:
    mirror = mirror_with(WEB, pod_with(on="m1", name="x"))
    assert ServiceAffinity().pre_filter(mirror, pod_with(region="r1")) == (SKIP, None)


def test_verdicts_follow_from_the_labels_that_are_asked_for() -> None:
    mirror = mirror_with(WEB, pod_with(on="m1", name="x"))
    plugin, found = ServiceAffinity(affinity_labels=["region"]), []
    for more in (pod_with({"app": "db"}, on="m1", name="y"), pod_with(on="m3", name="z"), pod_with(on="m3", name="x")):
        _, state = plugin.pre_filter(mirror, pod_with())
        assert state is not None
        found.append(plugin.filter_versions(state))
        tell(mirror, more)
    assert found == [(frozenset({("region", "r1")}),)] * 3
    _, state = plugin.pre_filter(mirror, pod_with())
    assert state is not None
    assert plugin.filter_versions(state) == (frozenset({("region", "r2")}),)
