"""Pods that are placed, change, end or are let go: cached answers follow, for every class and every node concerned."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.framework.interface import AnyFilter
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from tests.builders import labelled, make_pod, term
from tests.core.decoded import pod_of
from tests.core.equivalence.held_cluster import DB, HALF, SMALL_NODE, TTL, WEB, A, B, C, HeldCluster, affinity, on
from tests.core.equivalence.said_plugin import scores, whole


def test_two_classes_that_repel_each_other() -> None:
    web = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    db = pod_of(DB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["a", "b", "c"])

    cluster.sees(on("a", web))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["c"])

    cluster.sees(on("c", db))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b"], ["c"])


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
