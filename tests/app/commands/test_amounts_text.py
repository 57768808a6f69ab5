"""Amounts, remedies and events as lines for people."""

from collections.abc import Iterable

import msgspec
from click import unstyle

from app.commands.amounts_text import cluster_amounts_text, node_amounts_text, remedies_text, wakes_text
from app.commands.output import WIDTH, Line, laid_out
from core.diagnosis.amounts import cluster_amounts, node_amounts
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.diagnosis.wakes import wakes
from core.explaining.bound_claims import BoundElsewhere, BoundElsewhereInCluster
from core.plugins.amounts import ClusterAmounts, NodeAmounts
from core.plugins.load.explaining import MeasuredResource, UsageOnNode
from core.plugins.nodedeclaredfeatures import FeatureInCluster
from core.plugins.noderesources.explaining import WaitingResize
from core.plugins.nodevolumelimits.plugin import DriverInCluster, DriverOnNode
from core.plugins.volumebinding.claim_facts import ClaimFact
from core.plugins.volumerestrictions import InUse
from tests.builders import labelled, make_node
from tests.core.diagnosis.deciding import ZONE, asking, decision_of, roomy, using

LONG = "a-very-long-name-" * 10


def lines(found: Iterable[Line]) -> list[str]:
    stated = unstyle(laid_out(found)).splitlines()
    assert all(len(line) <= WIDTH for line in stated)
    return stated


def rejected() -> Diagnosis:
    nodes = (
        roomy("n1", cpu="4", disk="hdd", zone="a").taint("gpu", "yes", "NoSchedule"),
        roomy("n2", zone="a").unschedulable(),
        roomy("n3"),
    )
    pod = asking(cpu="7500m", memory="1Gi").label("app", "web").node_selector({"disk": "ssd"}).host_port(80)
    pod = pod.spread(ZONE, labelled(app="web"))
    running = using("web", "n1", cpu="800m").host_port(80).label("app", "web")
    return decision_of(pod, *nodes, running, using("b", "n2", cpu="4800m"), using("c", "n3", cpu="5"))


def test_what_was_measured_is_told_for_what_refuses_any_node() -> None:
    assert lines(cluster_amounts_text(cluster_amounts(rejected(), 5), 3))[:7] == [
        "What was measured",
        "  needs cpu 7500m; most free on any node: 3200m, on n1; enough on no node",
        "  taint gpu=yes:NoSchedule: 1 node, n1",
        "  cordoned: 1 node, n2",
        "  requires disk=ssd: not met by 3 nodes, which have disk none (2), hdd (1)",
        "  nearest by labels: n2, which lacks disk=ssd (no such label)",
        "  host port 0.0.0.0:80/TCP: in use on 1 node",
    ]


def test_one_node_has_what_it_has() -> None:
    found = cluster_amounts(decision_of(asking().node_selector({"disk": "ssd"}), roomy("n1", disk="hdd")), 5)
    assert "  requires disk=ssd: not met by 1 node, which has disk hdd (1)" in lines(cluster_amounts_text(found, 1))


def test_a_resource_that_no_node_offers_is_told_with_others_of_its_vendor() -> None:
    """NVIDIA/gpu-operator#637 and #1602: with the mixed strategy of MIG, nodes have slices instead of GPUs."""
    node = roomy("n1").allocatable(**{"cpu": 8, "pods": 10, "nvidia.com/mig-1g.10gb": 7, "amd.com/gpu": 1})
    for resource, instead in (("nvidia.com/gpu", ", but nvidia.com/mig-1g.10gb"), ("example.com/x", "")):
        decision = decision_of(asking().requests(**{resource: "1"}), node)
        (reported,) = lines(cluster_amounts_text(cluster_amounts(decision, 5), 1))[1:]
        assert reported == f"  needs {resource} 1; no node offers it{instead}"


def test_a_resource_that_no_node_offers_is_told_without_a_node() -> None:
    gpu = asking().requests(**{"nvidia.com/gpu": "1"})
    in_use = (
        roomy("n1").allocatable(**{"cpu": 8, "pods": 10, "nvidia.com/gpu": 1}),
        using("a", "n1", **{"nvidia.com/gpu": "1"}),
    )
    assert lines(cluster_amounts_text(cluster_amounts(decision_of(gpu, roomy("n1")), 5), 1))[1:] == [
        "  needs nvidia.com/gpu 1; no node offers it",
    ]
    assert lines(cluster_amounts_text(cluster_amounts(decision_of(gpu, *in_use), 5), 1))[1:] == [
        "  needs nvidia.com/gpu 1; most free on any node: 0, on n1; enough on no node",
    ]


def test_fewer_domains_than_asked_for_are_told() -> None:
    for requested, reported in ((3, True), (2, False)):
        pod = asking().label("app", "web").spread(ZONE, labelled(app="web"), minDomains=requested)
        web = (
            using("a", "n1").label("app", "web"),
            using("b", "n1").label("app", "web"),
            using("c", "n2").label("app", "web"),
        )
        decision = decision_of(pod, roomy("n1", zone="a"), roomy("n2", zone="b"), *web)
        stated = " ".join(" ".join(lines(cluster_amounts_text(cluster_amounts(decision, 5), 2))).split())
        assert ("minDomains 3, and there are 2: the minimum counts as 0" in stated) == reported


def test_one_node_is_told_with_what_it_has() -> None:
    stated = lines(node_amounts_text(node_amounts(rejected(), 0, 5)))
    assert stated[:5] == [
        "  Measured",
        "    needs cpu 7500m; free 3200m (800m of 4 in use): 4300m too little",
        "    taints that are not tolerated: gpu=yes:NoSchedule",
        "    lacks disk=ssd (has hdd)",
        "    host port 0.0.0.0:80/TCP: held by default/web",
    ]
    assert "    cordoned" in lines(node_amounts_text(node_amounts(rejected(), 1, 5)))
    assert f"    spread by {ZONE}: no such label" in lines(node_amounts_text(node_amounts(rejected(), 2, 5)))


def test_nothing_is_told_where_nothing_refuses() -> None:
    decision = decision_of(asking(cpu="1"), roomy("n1"))
    assert not lines(cluster_amounts_text(cluster_amounts(decision, 5), 1))
    assert not lines(node_amounts_text(node_amounts(decision, 0, 5)))
    assert not lines(remedies_text(find_remedies(decision, 5), fits=True))
    assert lines(remedies_text(())) == ["No change that was tried would help"]
    assert not lines(wakes_text(wakes(decision), ()))


def test_volumes_features_and_names_are_told() -> None:
    amounts = ClusterAmounts(
        bound_elsewhere=[BoundElsewhereInCluster("VolumeBinding", "shop/data", "pv", "zone in (b)", "zone a (2)", 2)],
        drivers=[DriverInCluster("csi", 2, 3, 1, "n1", 16)],
        resizes=[WaitingResize("shop/web", "n1", "cpu", 3000, 1000, 3000)],
        claims=[ClaimFact("shop/new", "it is not bound yet")],
        claims_in_use=[InUse("shop/one", ["shop/user"])],
        node_name="n9",
        node_is_known=False,
        impossible=["a and !a contradict each other"],
        missing_features=[FeatureInCluster("F", 1)],
    )
    assert lines(cluster_amounts_text(amounts, 3))[1:] == [
        "  shop/web on n1 holds cpu 3: its resize from 1 to 3 is not done",
        "  required node affinity that no node can match, whatever its labels: a and !a",
        "    contradict each other",
        "  claim shop/data: volume pv needs zone in (b); out of reach of 2 nodes, which",
        "    have zone a (2)",
        "  claim shop/new: it is not bound yet",
        "  volumes of csi: needs 2; most free on any node: 1 of a limit of 16, on n1",
        "  ReadWriteOncePod claim shop/one: in use by shop/user",
        "  spec.nodeName: only n9, which does not exist",
        "  needs the feature F: not declared by 1 node",
    ]
    on_node = NodeAmounts(
        bound_elsewhere=[BoundElsewhere("VolumeBinding", "shop/data", "pv", "zone in (b)", "zone=a")],
        drivers=[DriverOnNode("csi", 1, 1, 2), DriverOnNode("free", None, 0, 1)],
        disks=[InUse("disk", ["shop/user"])],
        missing_features=["F", "G"],
    )
    assert lines(node_amounts_text(on_node))[1:] == [
        "    claim shop/data: volume pv needs zone in (b); the node has zone=a",
        "    volumes of csi: 1 attached, 2 more, limit 1",
        "    volumes of free: 0 attached, 1 more, no limit",
        "    disk disk: in use by shop/user",
        "    does not declare F, G",
    ]


def test_remedies_and_events_are_lists() -> None:
    decision = decision_of(asking(cpu="9"), make_node(LONG).allocatable(cpu=8, pods=10))
    stated = lines(remedies_text(find_remedies(decision, 5)))
    assert stated[0] == "Changes that would help, each by itself"
    assert stated[1].startswith("  - lower the cpu request by 1 to 8")
    then = [msgspec.structs.replace(each, then="delete it") for each in find_remedies(decision, 5)]
    assert lines(remedies_text(then))[len(stated) :] == ["  After a change of the pod, delete it"]
    assert lines(wakes_text(wakes(decision), ())) == [
        "kube-scheduler tries it again after",
        "  Pod: Delete, UpdatePodScaleDown",
        "  Node: Add, UpdateNodeAllocatable",
        "  this Pod: UpdatePodScaleDown",
    ]
    tainted = decision_of(asking(), roomy("n1").taint("x", "", "NoSchedule"))
    assert "  this Pod: UpdatePodToleration" in lines(wakes_text(wakes(tainted), ()))


def test_a_pod_that_no_event_helps_is_tried_every_five_minutes() -> None:
    """Source: kubernetes/kubernetes#126325."""
    decision = decision_of(asking().required_node_affinity({}), roomy("n1"))
    (line,) = lines(wakes_text(wakes(decision), ["NodeAffinity"]))
    assert line == "kube-scheduler tries it again every five minutes: no event can help"
    assert not lines(wakes_text((), ["CheckNodeCondition"]))
    assert not lines(wakes_text((), ()))


def test_the_measured_usage_of_a_node_is_told_or_why_it_is_passed_over() -> None:
    of_cpu = MeasuredResource("cpu", 800, 50, 4000)
    of_memory = MeasuredResource("memory", 2**30, None, 2**33)
    known = UsageOnNode(1767225720, too_old=False, resources=(of_cpu, of_memory), pods_not_covered=2)
    assert [
        lines(node_amounts_text(NodeAmounts(usage=usage)))[1:]
        for usage in (
            known,
            msgspec.structs.replace(known, too_old=True),
            msgspec.structs.replace(known, measured_at=None),
        )
    ] == [
        [
            "    usage at 2026-01-01 00:02:00Z: cpu 800m of 4, deviation 50m, memory 1Gi of",
            "      8Gi; not measured yet: 2 pods",
        ],
        [
            "    usage: measured at 2026-01-01 00:02:00Z, too long ago, so the plugins that",
            "      follow it pass the node over",
        ],
        ["    usage: not measured, so the plugins that follow it pass the node over"],
    ]
