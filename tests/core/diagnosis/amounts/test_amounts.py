"""What is measured of one node and over all: resources, taints, ports and spread."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.objects.decode_pod import decode_pod
from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.events import ClusterEvent
from core.explaining.explained import Counts, Measured
from core.explaining.pod_steps import Kind
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.quantity import nanos, quantity_text, units
from core.plugins.amounts import ClusterAmounts, NodeAmounts
from core.plugins.nodedeclaredfeatures import FeatureInCluster
from core.plugins.nodeports import PortInCluster, PortOnNode, ports_in_cluster, ports_on_node
from core.plugins.noderesources.explaining import (
    ResourceInCluster,
    ResourceOnNode,
    WaitingResize,
    resources_in_cluster,
    resources_on_node,
    waiting_resizes,
)
from core.plugins.nodeunschedulable import CordonedNodes, NodeUnschedulable, cordoned_in_cluster, is_cordoned
from core.plugins.podtopologyspread.explaining import (
    SpreadDomain,
    SpreadInCluster,
    SpreadOnNode,
    spread_in_cluster,
    spread_on_node,
)
from core.plugins.tainttoleration import NodeTaint, TaintInCluster, taints_in_cluster, taints_on_node
from core.profile import Profile, full_profile, parse_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import PodBuilder, labelled, make_node
from tests.core.decoded import demanding, mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import HOST, ZONE, asking, decision_in, decision_of, roomy, using
from tests.core.profile_parts import affinity_profile


def test_every_plugin_that_has_something_to_say_is_in_it() -> None:
    node = roomy("n1", cpu="1", disk="hdd").taint("gpu", "", "NoSchedule").unschedulable()
    pod = asking(cpu="2").node_selector({"disk": "ssd"}).host_port(80)
    found = node_amounts(decision_of(pod, node, using("web", "n1").host_port(80)), 0, 5)
    assert [each.resource for each in found.resources if each.missing] == ["cpu"]
    assert [each.key for each in found.taints] == ["gpu"]
    assert found.cordoned
    assert [each.has for each in found.requirements] == ["hdd"]
    assert [each.pods for each in found.ports] == [["default/web"]]
    unsaid = (found.spread, found.bound_elsewhere, found.drivers, found.disks, found.missing_features)
    assert [len(each) for each in unsaid] == [0] * 5
    assert msgspec.json.decode(msgspec.json.encode(found, enc_hook=str), type=NodeAmounts) == msgspec.convert(
        msgspec.to_builtins(found, enc_hook=str), NodeAmounts
    )


class Avoided(NodeUnschedulable):
    """A plugin that says in words what it measured, and counts it."""

    measured = Measured(
        on_node={
            "facts": lambda decision, position, _: [f"{decision.batch.names[position]} is avoided"],
            "counts": lambda _, position, __: [Counts("Avoided", {}, {"position": position})],
        },
        in_cluster={
            "facts": lambda decision, limit: [f"{len(decision.batch)} nodes, in lists of {limit}"],
            "counts": lambda decision, _: [Counts("Avoided", {}, {"nodes": len(decision.batch)})],
        },
    )


def test_what_plugins_measure_in_words_is_in_the_amounts_and_in_their_text() -> None:
    mirror = mirror_of(roomy("n1"), roomy("n2"))
    profile = Profile((Avoided(), Avoided()), ())
    decision = Diagnosis(profile, mirror, pod_of(asking()), mirror.batch(["n1", "n2"]))
    on_node, in_cluster = node_amounts(decision, 1, 5), cluster_amounts(decision, 5)
    assert on_node.facts == (*on_node.lines(str),) == ("n2 is avoided",) * 2
    assert in_cluster.facts == (*in_cluster.lines(2),) == ("2 nodes, in lists of 5",) * 2
    assert [each.numbers for each in on_node.counts] == [{"position": 1}] * 2
    assert [each.numbers for each in in_cluster.counts] == [{"nodes": 2}] * 2


def test_of_an_unknown_node_nothing_is_measured() -> None:
    mirror = mirror_of(roomy("n1"))
    decision = Diagnosis(full_profile(), mirror, pod_of(asking(cpu="2")), mirror.batch(["nowhere"]))
    assert NodeAmounts() == node_amounts(decision, 0, 5)


def test_a_node_that_comes_with_the_question_has_no_pods() -> None:
    mirror = mirror_of(roomy("n1"), using("web", "n1").host_port(80))
    foreign = Node("s", allocatable={"cpu": 1000, "pods": 10})
    pod = pod_of(asking(cpu="2").host_port(80).volume({"name": "v", "gcePersistentDisk": {"pdName": "d"}}))
    decision = Diagnosis(full_profile(), mirror, pod, mirror.batch(["s"], {0: foreign}))
    found = node_amounts(decision, 0, 5)
    assert [(each.resource, each.free) for each in found.resources] == [("pods", 10), ("cpu", 1000)]
    assert [len(each) for each in (found.ports, found.disks, found.drivers)] == [0] * 3


def test_a_missing_feature_is_named() -> None:
    needed = frozenset({"RestartAllContainersOnContainerExits", "Unknown"})
    pod = demanding(pod_of(asking()), needed_features=needed)
    mirror = ClusterMirror(rules=rules_of(Release(1, 36)))
    mirror.apply(ClusterEvent("Add", node_of(make_node("n1").allocatable(pods=10))))
    found = node_amounts(decision_in(mirror, pod), 0, 5).missing_features
    assert list(found) == ["RestartAllContainersOnContainerExits"]


FEATURE = "RestartAllContainersOnContainerExits"


def test_a_pod_that_asks_nothing_of_roomy_nodes_has_resources_alone() -> None:
    found = cluster_amounts(decision_of(asking(), roomy("n1")), 5)
    assert [each.resource for each in found.resources] == ["pods"]
    assert ClusterAmounts(resources=found.resources) == replace(
        found,
        overflows=(),
        taints=(),
        requirements=(),
        ports=(),
        spread=(),
        bound_elsewhere=(),
        drivers=(),
        claims_in_use=(),
        missing_features=(),
    )


def test_the_node_that_a_pod_names_is_told() -> None:
    assert cluster_amounts(decision_of(asking().on("n2"), roomy("n1")), 5).node_name == "n2"


def test_features_that_nodes_do_not_declare_are_counted() -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, 37)))
    declaring = replace(node_of(roomy("n2")), declared_features=frozenset({FEATURE}))
    for node in (node_of(roomy("n1")), declaring):
        mirror.apply(ClusterEvent("Add", node))
    found = cluster_amounts(decision_in(mirror, demanding(pod_of(asking()), needed_features=frozenset({FEATURE}))), 5)
    assert list(found.missing_features) == [FeatureInCluster(FEATURE, 1)]


GI = 2**30
NODES = (roomy("n1", cpu="4"), roomy("n2", cpu="8"))
RUNNING = (using("a", "n1", cpu="1500m", memory="1Gi"), using("b", "n2", cpu="4800m"))


def test_each_resource_of_a_node_is_told_with_what_is_missing() -> None:
    found = resources_on_node(decision_of(asking(cpu="7500m", memory="2Gi"), *NODES, *RUNNING), 0)
    assert [
        ResourceOnNode("pods", 1, 10, 1, 9, 0),
        ResourceOnNode("cpu", 7500, 4000, 1500, 2500, 5000),
        ResourceOnNode("memory", 2 * GI, 16 * GI, GI, 15 * GI, 0),
    ] == list(found)


def test_the_most_that_is_free_is_told_with_its_node() -> None:
    found = resources_in_cluster(decision_of(asking(cpu="7500m"), *NODES, *RUNNING))
    assert [
        ResourceInCluster("pods", 1, "", 18, 9, "n1", 2),
        ResourceInCluster("cpu", 7500, "", 5700, 3200, "n2", 0),
    ] == list(found)


def resized(name: str, node: str, requested: str, actual: str) -> Pod:
    """Return a running pod whose container has other resources than it asks."""
    container = {"name": "c", "resources": {"requests": {"cpu": requested}}}
    status = {"name": "c", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": actual}}
    wire = {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }
    return decode_pod(msgspec.json.encode(wire))


def test_pods_whose_resize_waits_are_told_with_what_they_hold() -> None:
    grows, shrinks, done = (
        resized("grows", "n1", "3", "1"),
        resized("shrinks", "n2", "1", "6"),
        resized("d", "n2", "1", "1"),
    )
    decision = decision_of(asking(cpu="4"), *NODES, objects=[grows, shrinks, done])
    reported = [
        WaitingResize("default/shrinks", "n2", "cpu", 6000, 6000, 1000),
        WaitingResize("default/grows", "n1", "cpu", 3000, 1000, 3000),
    ]
    assert list(waiting_resizes(decision, 5)) == reported
    assert list(cluster_amounts(decision, 1).resizes) == reported[:1]
    assert not waiting_resizes(decision_of(asking(memory="1Ti"), *NODES, objects=[grows]), 5), "the pod asks no cpu"
    assert not waiting_resizes(decision_of(asking(cpu="1"), *NODES, objects=[grows]), 5), "it fits"


def test_a_full_node_misses_room_for_one_pod() -> None:
    full = make_node("full").allocatable(cpu="4", pods=1)
    [pods] = resources_on_node(decision_of(asking(), full, using("a", "full")), 0)
    assert ResourceOnNode("pods", 1, 1, 1, 0, 1) == pods


@pytest.mark.parametrize(("minor", "missing"), [(35, 1), (36, 0)])
def test_what_a_release_leaves_to_devices_is_not_missing(minor: int, missing: int) -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, minor)))
    for each in (node_of(NODES[0]), DeviceClass(name="gpu", extended_resource="example.com/gpu")):
        mirror.apply(ClusterEvent("Add", each))
    decision = decision_in(mirror, pod_of(asking(**{"example.com/gpu": 1})))
    assert [each.missing for each in resources_on_node(decision, 0)] == [0, missing]
    helps = [each.kind for each in find_remedies(decision, 5)]
    assert helps == ([Kind.LOWER_REQUESTS] if missing else [])


def test_a_profile_without_the_plugin_measures_nothing() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(affinity_profile(), mirror, pod_of(asking(cpu="9")), mirror.batch(["n1"]))
    assert not resources_on_node(decision, 0)
    assert not resources_in_cluster(decision)


def test_a_composite_has_the_amounts_of_its_parts() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(parse_profile("GeneralPredicates"), mirror, pod_of(asking(cpu="9")), mirror.batch(["n1"]))
    assert [each.missing for each in resources_on_node(decision, 0)] == [0, 5000]


def test_nodes_of_which_nothing_is_known_are_left_out_of_the_sums() -> None:
    mirror = mirror_of(*NODES)
    decision = Diagnosis(
        decision_of(asking()).profile, mirror, pod_of(asking(cpu="1")), mirror.batch(["nowhere", "n2"])
    )
    assert [each.free for each in resources_in_cluster(decision)] == [10, 8000]
    assert not resources_in_cluster(decision_of(asking()))


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 7500, "7500m"),
        ("cpu", 4000, "4"),
        ("cpu", 0, "0"),
        ("cpu", -250, "-250m"),
        ("memory", 2**30, "1Gi"),
        ("memory", 1500 * 2**20, "1500Mi"),
        ("memory", 32_655_147_008, "30.41Gi"),
        ("memory", 1000, "1000"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("example.com/gpu", 12_345, "12345"),
        ("pods", 3, "3"),
    ],
)
def test_amounts_are_written_as_kubernetes_writes_them(resource: str, amount: int, text: str) -> None:
    assert text == quantity_text(resource, amount)


@given(st.integers(-(2**62), 2**62))
def test_rounded_text_is_never_on_the_wrong_side(amount: int) -> None:
    down, up = (quantity_text("memory", amount, round_up=each) for each in (False, True))
    assert units(nanos(down)) <= amount <= units(nanos(up))


TAINTED = (
    roomy("n1").taint("gpu", "yes", "NoSchedule").taint("soft", "", "PreferNoSchedule"),
    roomy("n2").taint("gpu", "yes", "NoSchedule").taint("team", "red", "NoExecute"),
    roomy("n3").unschedulable(),
)


def test_only_taints_that_keep_the_pod_off_are_told() -> None:
    decision = decision_of(asking().toleration("team", "Exists"), *TAINTED)
    assert [NodeTaint("gpu", "yes", "NoSchedule")] == list(taints_on_node(decision, 0))
    assert [NodeTaint("gpu", "yes", "NoSchedule")] == list(taints_on_node(decision, 1))
    assert not taints_on_node(decision, 2)


def test_taints_are_counted_those_of_most_nodes_first() -> None:
    decision = decision_of(asking(), *TAINTED)
    expected = [
        TaintInCluster("gpu", "yes", "NoSchedule", 2, ["n1", "n2"]),
        TaintInCluster("team", "red", "NoExecute", 1, ["n2"]),
    ]
    assert expected == list(taints_in_cluster(decision, 5))
    assert expected[:1] == list(taints_in_cluster(decision, 1))


def test_cordoned_nodes_are_counted_unless_the_pod_tolerates_them() -> None:
    decision = decision_of(asking(), *TAINTED)
    assert CordonedNodes(1, ["n3"]) == cordoned_in_cluster(decision)
    assert [is_cordoned(decision, position) for position in range(3)] == [False, False, True]
    tolerant = decision_of(asking().toleration(operator="Exists"), *TAINTED)
    assert cordoned_in_cluster(tolerant) is None
    assert not is_cordoned(tolerant, 2)


TWO_NODES = (roomy("n1"), roomy("n2"))
EVERYWHERE = "0.0.0.0"  # noqa: S104  # an address of a port, nothing is bound
HOLDERS = (
    using("web", "n1").host_port(80),
    using("dns", "n1").host_port(53, "UDP"),
    using("other", "n2").host_port(80, host_ip="10.0.0.1"),
)


def test_the_pods_that_hold_a_port_in_the_way_are_named() -> None:
    decision = decision_of(asking().host_port(80), *TWO_NODES, *HOLDERS)
    assert [PortOnNode(80, "TCP", EVERYWHERE, ["default/web"])] == list(ports_on_node(decision, 0, 5))
    assert [PortOnNode(80, "TCP", "10.0.0.1", ["default/other"])] == list(ports_on_node(decision, 1, 5))


def test_ports_are_counted_over_the_nodes_that_were_asked_about() -> None:
    decision = decision_of(asking().host_port(80).host_port(53, "UDP"), *TWO_NODES, *HOLDERS)
    assert [
        PortInCluster(53, "UDP", EVERYWHERE, 1),
        PortInCluster(80, "TCP", EVERYWHERE, 1),
        PortInCluster(80, "TCP", "10.0.0.1", 1),
    ] == list(ports_in_cluster(decision, 5))


ZONED = (roomy("n1", zone="a"), roomy("n2", zone="b"), make_node("n3").allocatable(cpu="8", pods=10))
WEB = tuple(using(f"w{number}", "n1").label("app", "web") for number in range(3))
NEXT = asking().label("app", "web").spread(ZONE, labelled(app="web"), max_skew=2)


def test_the_skew_of_a_node_is_what_it_would_be_with_the_pod_there() -> None:
    decision = decision_of(NEXT, *ZONED, *WEB)
    assert [SpreadOnNode(ZONE, 2, "a", 3, 0, 4)] == list(spread_on_node(decision, 0))
    assert [SpreadOnNode(ZONE, 2, "b", 0, 0, 1)] == list(spread_on_node(decision, 1))
    assert [SpreadOnNode(ZONE, 2, None, 0, 0, 0)] == list(spread_on_node(decision, 2))


def test_domains_are_told_those_with_most_pods_first() -> None:
    expected = SpreadInCluster(
        topology_key=ZONE,
        max_skew=2,
        min_domains=1,
        fewest=0,
        domains=2,
        shown=[SpreadDomain("a", 3, 4), SpreadDomain("b", 0, 1)],
        nodes_without_key=1,
        nodes_refused=1,
    )
    assert [expected] == list(spread_in_cluster(decision_of(NEXT, *ZONED, *WEB), 5))


def test_domains_are_told_that_hold_the_minimum_and_refuse_the_pod() -> None:
    """zimmertr/Kubernetes-Manifests#498: three tainted nodes hold it at 0."""
    control = [roomy(f"c{at}").taint("control", "", "NoSchedule") for at in range(3)]
    pod = asking().label("app", "web").spread(HOST, labelled(app="web"))
    web = using("web", "w1").label("app", "web")
    (stored,) = spread_in_cluster(decision_of(pod, *control, roomy("w1"), web), 2)
    assert (stored.fewest, stored.domains_holding, stored.holding) == (0, 3, ["c0", "c1"])
    (fits,) = spread_in_cluster(decision_of(pod, *control, roomy("w1"), roomy("w2"), web), 2)
    assert (fits.nodes_refused, fits.domains_holding, fits.holding) == (1, 0, ())


def without_key(pod: PodBuilder) -> list[tuple[int, int]]:
    decision = decision_of(pod, *ZONED, *WEB)
    return [(each.domains, each.nodes_without_key) for each in spread_in_cluster(decision, 5)]


def test_a_key_that_no_node_has_is_missing_on_all() -> None:
    nowhere = asking().spread("nowhere", labelled(app="web"))
    assert without_key(nowhere) == [(0, 3)]
    assert [SpreadOnNode("nowhere", 1, None, 0, 0, 0)] == list(spread_on_node(decision_of(nowhere, *ZONED), 0))


def test_soft_constraints_refuse_no_node() -> None:
    assert not without_key(asking().spread(ZONE, labelled(app="web"), when="ScheduleAnyway"))
