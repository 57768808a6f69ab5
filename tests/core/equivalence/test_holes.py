"""The holes 1 to 5 that upstream's equivalence cache had, by their numbers in the list, none of which is here."""

from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.interface import AnyFilter
from core.objects.labels import Operator, Requirement
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.node_selector import NodeSelector, NodeSelectorTerm
from core.objects.pod import Pod
from core.objects.pod_volumes import PodClaim
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeSource
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumezone import VolumeZone
from tests.builders import expressed, labelled, make_node, make_pod, term
from tests.core.decoded import node_of, pod_of
from tests.core.equivalence.held_cluster import TTL, HeldCluster, on
from tests.core.equivalence.said_plugin import scores, statuses, whole

ZONE: Final = "topology.kubernetes.io/zone"
EBS: Final = "ebs.csi.aws.com"
A, B, C = (node_of(make_node(name).label("zone", zone)) for name, zone in (("a", "x"), ("b", "x"), ("c", "y")))
"""Two nodes of one zone, and one of another."""
WEB, DB = (make_pod(app).label("app", app) for app in ("web", "db"))
SMALL_NODE: Final = node_of(make_node("a").allocatable(cpu="1", memory="1Gi", pods=10))
HALF: Final = pod_of(WEB.requests(cpu="600m"))


def affinity(*nodes: Node) -> HeldCluster:
    return HeldCluster(*(nodes or (A, B, C)), filters=(InterPodAffinity(),))


# 1. A pod added by anyone (seen in the watch, not assumed here) invalidated nothing.


def test_hole_1_a_pod_that_anybody_placed_takes_its_resources() -> None:
    cluster = HeldCluster(SMALL_NODE, filters=(NodeResourcesFit(),))
    assert cluster.fits(HALF) == ["a"]

    cluster.sees(on("a", HALF, "of-another-scheduler"))
    assert cluster.answers(HALF) == {"a": ("Insufficient cpu",)}


def test_hole_1_a_pod_that_anybody_placed_takes_its_ports() -> None:
    pod = pod_of(WEB.host_port(80))
    cluster = HeldCluster(A, B, filters=(NodePorts(),))
    assert cluster.fits(pod) == ["a", "b"]

    cluster.sees(on("a", pod, "of-a-daemon-set"))
    assert cluster.fits(pod) == ["b"]


def test_hole_1_a_pod_that_waited_for_its_node_counts_when_the_node_comes() -> None:
    cluster = HeldCluster(on("a", HALF, "early"), filters=(NodeResourcesFit(),))
    cluster.answers(HALF)
    cluster.sees(SMALL_NODE)

    assert cluster.answers(HALF) == {"a": ("Insufficient cpu",)}


# 2. "A new pod cannot break affinity" is false, and over the whole topology domain, not one node.


def test_hole_2_a_sibling_repels_its_own_class_from_the_whole_domain() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(on("a", pod, "sibling"))
    assert cluster.fits(pod) == ["c"]

    cluster.loses(on("a", pod, "sibling"))
    assert cluster.fits(pod) == ["a", "b", "c"]


def test_hole_2_a_pod_repels_another_class_that_says_nothing_itself() -> None:
    """Mutual anti-affinity, of which one side is enough (kubernetes issue 67680)."""
    plain, guard = pod_of(WEB), pod_of(DB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(plain) == ["a", "b", "c"]

    cluster.sees(on("b", guard))
    assert cluster.fits(plain) == ["c"]


def test_hole_2_two_classes_that_repel_each_other() -> None:
    web = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    db = pod_of(DB.required_anti_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["a", "b", "c"])

    cluster.sees(on("a", web))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b", "c"], ["c"])

    cluster.sees(on("c", db))
    assert (cluster.fits(web), cluster.fits(db)) == (["a", "b"], ["c"])


def test_hole_2_a_pod_attracts_another_class_to_its_whole_domain() -> None:
    pod = pod_of(WEB.required_affinity(term("zone", labelled(app="db"))))
    cluster = affinity()
    assert cluster.fits(pod) == []

    cluster.sees(on("b", pod_of(DB)))
    assert cluster.fits(pod) == ["a", "b"]


def test_hole_2_the_second_pod_of_a_series_has_to_follow_the_first() -> None:
    pod = pod_of(WEB.required_affinity(term("zone", labelled(app="web"))))
    cluster = affinity()
    assert cluster.fits(pod) == ["a", "b", "c"]

    cluster.sees(on("c", pod, "first"))
    assert cluster.fits(pod) == ["c"]


def test_hole_2_a_pod_changes_the_skew_of_all_domains() -> None:
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


# 3. Forget and expiry of an assumed pod invalidated nothing; negative answers stayed.

_LET_GO: Final = [
    pytest.param(lambda cluster: cluster.mirror.forget("assumed"), id="forgotten"),
    pytest.param(
        lambda cluster: (cluster.mirror.finish_binding("assumed", 0.0), cluster.mirror.expire(2 * TTL)), id="expired"
    ),
    pytest.param(lambda cluster: cluster.loses(on("a", HALF, "assumed")), id="deleted"),
]


@pytest.mark.parametrize("let_go", _LET_GO)
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
def test_hole_3_what_an_assumed_pod_held_is_free_again_when_it_is_let_go(
    let_go: Callable[[HeldCluster], object], filters: tuple[AnyFilter, ...], pod: Pod, nodes: Sequence[Node]
) -> None:
    cluster = HeldCluster(*nodes, filters=filters)
    before = cluster.fits(pod)
    assert "a" in before

    cluster.mirror.assume(replace(pod, uid="assumed", name="assumed"), "a", now=0.0)
    assert "a" not in cluster.fits(pod)

    let_go(cluster)
    assert cluster.fits(pod) == before


# 4. A result computed before an event and written after it, for negatives and for non-node inputs too.

_CLAIMING: Final = replace(pod_of(WEB), volumes=(PodClaim("c"),))
_CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", volume="pv", bind_completed=True)
_UNBOUND: Final = PersistentVolumeClaim(namespace="default", name="c", uid="c", storage_class="s")
_WAITING: Final = StorageClass(name="s", provisioner=EBS, volume_binding_mode="WaitForFirstConsumer")
_IN_X: Final = NodeSelector((NodeSelectorTerm((Requirement("zone", Operator.IN, ("x",)),)),))
_VOLUME: Final = PersistentVolume(name="pv", source=VolumeSource(EBS, "vol-1"), node_affinity=_IN_X)
_SELECTED: Final = pod_of(
    WEB.required_anti_affinity(term("zone", labelled(app="db"), namespace_selector=labelled(team="red")))
)


@pytest.mark.parametrize(
    ("plugin", "pod", "before", "then", "expected"),
    [
        pytest.param(
            VolumeBinding(),
            _CLAIMING,
            (_CLAIM, _VOLUME),
            replace(_VOLUME, node_affinity=None),
            ["a", "b", "c"],
            id="PV",
        ),
        pytest.param(VolumeBinding(), _CLAIMING, (_CLAIM, _VOLUME), replace(_CLAIM, phase="Lost"), [], id="PVC"),
        pytest.param(
            VolumeBinding(),
            _CLAIMING,
            (_UNBOUND, _WAITING),
            replace(_WAITING, allowed_topologies=_IN_X),
            ["a", "b"],
            id="StorageClass",
        ),
        pytest.param(
            InterPodAffinity(),
            _SELECTED,
            (Namespace("other"), replace(on("a", pod_of(DB)), namespace="other")),
            Namespace("other", {"team": "red"}),
            ["c"],
            id="Namespace-labels",
        ),
        pytest.param(
            NodeAffinity(),
            pod_of(WEB.node_selector({"disk": "ssd"})),
            (),
            replace(A, labels={**A.labels, "disk": "ssd"}),
            ["a"],
            id="Node-negative",
        ),
        pytest.param(
            InterPodAffinity(),
            pod_of(WEB.required_affinity(term("zone", labelled(app="db")))),
            (),
            on("c", pod_of(DB)),
            ["c"],
            id="Pod-negative",
        ),
    ],
)
def test_hole_4_nothing_from_before_an_event_is_written_after_it(
    plugin: AnyFilter, pod: Pod, before: tuple[Object, ...], then: Object, expected: list[str]
) -> None:
    cluster = HeldCluster(A, B, C, *before, filters=(plugin,))
    early = cluster.cache.evaluation(pod)
    statuses(early, plugin, cluster.mirror.batch(["a"]))  # of which the others' cells are still missing
    cluster.sees(then)
    statuses(early, plugin, whole(cluster.mirror))

    assert cluster.fits(pod) == expected


# 5. Only *old* node labels were looked at (a label added); only *new* PV zone labels (a label removed).


@pytest.mark.parametrize(
    ("operator", "bare", "labelled_as"),
    [
        pytest.param("Exists", [], ["a"], id="exists"),
        pytest.param("DoesNotExist", ["a"], [], id="does-not-exist"),
        pytest.param("In", [], ["a"], id="in"),
        pytest.param("NotIn", ["a"], [], id="not-in"),
    ],
)
def test_hole_5_a_node_label_counts_when_it_comes_and_when_it_goes(
    operator: str, bare: list[str], labelled_as: list[str]
) -> None:
    values = ("ssd",) if operator in ("In", "NotIn") else ()
    pod = pod_of(WEB.required_node_affinity(expressed("disk", operator, *values)))
    cluster = HeldCluster(unlabelled := Node("a"), filters=(NodeAffinity(),))
    assert cluster.fits(pod) == bare

    cluster.sees(replace(unlabelled, labels={"disk": "ssd"}))
    assert cluster.fits(pod) == labelled_as

    cluster.sees(unlabelled)
    assert cluster.fits(pod) == bare


def test_hole_5_a_topology_label_that_is_added_brings_a_node_into_a_domain() -> None:
    pod = pod_of(WEB.required_anti_affinity(term("zone", labelled(app="db"))))
    cluster = affinity(A, Node("b"))
    cluster.sees(on("a", pod_of(DB)))
    assert cluster.fits(pod) == ["b"]

    cluster.sees(B)
    assert cluster.fits(pod) == []

    cluster.sees(Node("b"))
    assert cluster.fits(pod) == ["b"]


def test_hole_5_a_zone_label_of_a_volume_counts_when_it_comes_and_when_it_goes() -> None:
    bare = PersistentVolume(name="pv")
    cluster = HeldCluster(Node("a", {ZONE: "x"}), Node("c", {ZONE: "y"}), _CLAIM, bare, filters=(VolumeZone(),))
    assert cluster.fits(_CLAIMING) == ["a", "c"]

    for zone in ("x", "y"):
        cluster.sees(replace(bare, labels={ZONE: zone}))
        assert cluster.fits(_CLAIMING) == [{"x": "a", "y": "c"}[zone]]

    cluster.sees(bare)
    assert cluster.fits(_CLAIMING) == ["a", "c"]
