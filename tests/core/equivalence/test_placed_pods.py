"""Pods that are placed, change, end or are let go: cached answers follow, for every class and every node concerned."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.framework.interface import AnyFilter
from core.objects.host_port import HostPort
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.pod_volumes import InlineDisk
from core.objects.volumes import VolumeSource
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.volumerestrictions.plugin import VolumeRestrictions
from tests.builders import labelled, make_pod, term
from tests.core.decoded import pod_of
from tests.core.equivalence.held_cluster import DB, HALF, SMALL_NODE, TTL, WEB, A, B, C, HeldCluster, affinity, on
from tests.core.equivalence.said_plugin import scores, whole


def test_a_pod_that_anybody_placed_takes_its_resources() -> None:
    cluster = HeldCluster(SMALL_NODE, filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == ["a"]

    cluster.sees(on("a", HALF, "of-another-scheduler"))
    assert cluster.answers(HALF) == {"a": ("Insufficient cpu",)}


def test_a_pod_that_anybody_placed_takes_its_ports() -> None:
    pod = pod_of(WEB.host_port(80))
    cluster = HeldCluster(A, B, filters=(NodePorts(),))
    assert cluster.fits(pod) == ["a", "b"]

    cluster.sees(on("a", pod, "of-a-daemon-set"))
    assert cluster.fits(pod) == ["b"]


def test_a_pod_that_waited_for_its_node_counts_when_the_node_comes() -> None:
    cluster = HeldCluster(on("a", HALF, "early"), filters=(NodeResourcesFit(),))
    cluster.answers(HALF)
    cluster.sees(SMALL_NODE)

    assert cluster.answers(HALF) == {"a": ("Insufficient cpu",)}


def test_a_sibling_repels_its_own_class_from_the_whole_domain() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(on("a", pod, "sibling"))
    assert cluster.fits(pod) == ["c"]

    cluster.loses(on("a", pod, "sibling"))
    assert cluster.fits(pod) == ["a", "b", "c"]


def test_a_pod_repels_another_class_that_says_nothing_itself() -> None:
    """Mutual anti-affinity, of which one side is enough (kubernetes issue 67680)."""
    plain, guard = pod_of(WEB), pod_of(DB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(plain) == ["a", "b", "c"]

    cluster.sees(on("b", guard))
    assert cluster.fits(plain) == ["c"]


def test_two_classes_that_repel_each_other() -> None:
    web = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    db = pod_of(DB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["a", "b", "c"])

    cluster.sees(on("a", web))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["c"])

    cluster.sees(on("c", db))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b"], ["c"])


def test_a_pod_attracts_another_class_to_its_whole_domain() -> None:
    pod = pod_of(WEB.required_affinity(term("zone", labelled(app="db"))))
    cluster = affinity()
    assert cluster.fits(pod) == []

    cluster.sees(on("b", pod_of(DB)))
    assert cluster.fits(pod) == ["a", "b"]


def test_the_second_pod_of_a_series_has_to_follow_the_first() -> None:
    pod = pod_of(WEB.required_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(on("c", pod, "first"))
    assert cluster.fits(pod) == ["c"]


def test_a_pod_changes_the_skew_of_all_domains() -> None:
    pod = pod_of(WEB.spread("zone", labelled(app="web")))
    cluster = HeldCluster(A, B, C, filters=(PodTopologySpread(),))
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(on("a", pod, "sibling"))
    assert cluster.fits(pod) == ["c"]


def test_a_pod_that_touches_no_counter_of_a_class_leaves_all_its_cells() -> None:
    pod = pod_of(
        WEB.required_anti_affinity(term("zone", labelled(app="web")))
        .required_affinity(term("zone", labelled(app="db")))
        .preferred_affinity(5, term("zone", labelled(app="db")))
    )
    other = pod_of(make_pod("other").label("app", "other").required_anti_affinity(term("zone", labelled(app="other"))))
    cluster = affinity()
    cluster.sees(on("a", pod_of(DB)))
    plugin, batch = InterPodAffinity(), whole(cluster.mirror)
    cluster.answers(pod)
    before = scores(cluster.cache.evaluation(pod), plugin, batch)
    assert cluster.misses() == 6

    cluster.sees(on("a", other), on("b", pod_of(make_pod("p").label("app", "third"))))
    cluster.loses(on("a", other))
    cluster.sees(replace(on("a", pod_of(DB)), resource_version="2"), Namespace("elsewhere", {"team": "red"}))
    assert cluster.fits(pod) == ["a", "b"]
    assert scores(cluster.cache.evaluation(pod), plugin, batch) == before == [5, 5, 0]
    assert cluster.misses() == 0

    cluster.sees(on("c", pod_of(DB), "one-that-matters"))
    assert cluster.fits(pod) == ["a", "b", "c"]
    assert cluster.misses() == 3


# Pods that were assumed here and are let go.

_LET_GO: Final = [
    pytest.param(lambda cluster: cluster.mirror.forget("assumed"), id="forgotten"),
    pytest.param(
        lambda cluster: (cluster.mirror.finish_binding("assumed", 0.0), cluster.mirror.expire(2 * TTL)), id="expired"
    ),
    pytest.param(lambda cluster: cluster.loses(on("a", HALF, "assumed")), id="deleted"),
]


@pytest.mark.parametrize("release", _LET_GO)
@pytest.mark.parametrize(
    ("filters", "pod", "nodes"),
    [
        pytest.param((NodeResourcesFit(),), HALF, (SMALL_NODE,), id="resources"),
        pytest.param((NodePorts(),), pod_of(WEB.host_port(80)), (A, B, C), id="ports"),
        pytest.param(
            (InterPodAffinity(),),
            pod_of(WEB.required_anti_affinity(term("zone", labelled(app="web")))),
            (A, B, C),
            id="affinity",
        ),
        pytest.param((PodTopologySpread(),), pod_of(WEB.spread("zone", labelled(app="web"))), (A, C), id="spread"),
    ],
)
def test_what_an_assumed_pod_held_is_free_again_when_it_is_let_go(
    release: Callable[[HeldCluster], object], filters: tuple[AnyFilter, ...], pod: Pod, nodes: Sequence[Node]
) -> None:
    cluster = HeldCluster(*nodes, filters=filters)
    before = cluster.fits(pod)
    assert "a" in before

    cluster.mirror.assume(replace(pod, uid="assumed", name="assumed"), "a", now=0.0)
    assert "a" not in cluster.fits(pod)

    release(cluster)
    assert cluster.fits(pod) == before


# Pods that are there, and change.


def test_a_pod_that_is_added_has_taken_a_shared_disk() -> None:
    disk = InlineDisk("v", VolumeSource("kubernetes.io/gce-pd", "disk", in_tree=True))
    pod = replace(pod_of(WEB), volumes=(disk,))
    cluster = HeldCluster(A, B, filters=(VolumeRestrictions(),))
    assert cluster.fits(pod) == ["a", "b"]

    cluster.sees(on("a", replace(pod_of(DB), volumes=(disk,))))
    assert cluster.fits(pod) == ["b"]


@pytest.mark.parametrize(
    ("port", "conflicts"),
    [
        pytest.param(HostPort(80), True, id="the-same"),
        pytest.param(HostPort(80, "UDP"), False, id="another-protocol"),
        pytest.param(HostPort(80, ip="10.0.0.2"), False, id="another-address"),
        pytest.param(HostPort(80, ip="10.0.0.1"), True, id="the-same-address"),
        pytest.param(HostPort(81), False, id="another-port"),
    ],
)
def test_host_ports_are_told_apart_by_protocol_and_address(port: HostPort, conflicts: bool) -> None:  # noqa: FBT001 - expected
    pod = replace(pod_of(WEB), host_ports=frozenset({HostPort(80, ip="10.0.0.1")}))
    cluster = HeldCluster(A, filters=(NodePorts(),))
    assert cluster.fits(pod) == ["a"]

    cluster.sees(there := on("a", replace(pod_of(DB), host_ports=frozenset({HostPort(8080)}))))
    assert cluster.fits(pod) == ["a"]

    cluster.sees(replace(there, host_ports=frozenset({port})))
    assert cluster.fits(pod) == ([] if conflicts else ["a"])


def test_a_pod_that_has_ended_holds_nothing() -> None:
    pod = pod_of(WEB.requests(cpu="600m").host_port(80).required_anti_affinity(term("zone", labelled(app="web"))))
    node = replace(SMALL_NODE, labels={"zone": "x"})
    cluster = HeldCluster(node, filters=(NodeResourcesFit(), NodePorts(), InterPodAffinity()))
    cluster.sees(there := on("a", pod, "there"))
    assert len(cluster.answers(pod)["a"]) == 3

    cluster.sees(replace(there, terminal=True))
    assert cluster.fits(pod) == ["a"]


def test_a_pod_that_is_resized_in_place_holds_another_amount() -> None:
    cluster = HeldCluster(SMALL_NODE, there := on("a", HALF, "there"), filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == []

    cluster.sees(replace(there, requests={"cpu": 100}))
    assert cluster.fits(HALF) == ["a"]

    cluster.sees(replace(there, requests={"cpu": 500}))
    assert cluster.fits(HALF) == []


def test_a_bound_pod_that_is_relabelled_is_another_for_all_terms() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    cluster = affinity()
    cluster.sees(there := on("a", pod_of(DB)))
    assert cluster.fits(pod) == ["c"]

    cluster.sees(replace(there, labels={"app": "other"}))
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(there)
    assert cluster.fits(pod) == ["c"]
