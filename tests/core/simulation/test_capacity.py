"""How many more fit: up to a number or until none, where, what stops the next one, and how many nodes it would take."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import ForkError
from core.objects.kinds import ControllerRef
from core.objects.pod import PodClaim
from core.objects.volumes import CSINode, PersistentVolumeClaim, StorageClass
from core.simulation.capacity import Allowance, Capacity, Fill, Template, capacity
from core.simulation.moves import Basis
from core.simulation.new_nodes import NodeLike
from core.simulation.placing import Fate
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.simulation.setting import HOSTNAME, NOTHING_MORE, ZONE, node, replica, result_of, schedulers

POOL = "karpenter.sh/nodepool"


def template(builder: PodBuilder | None = None, share: int = 1) -> Template:
    return Template(pod_of(builder or replica("new", "new")), share)


def more(
    mirror: ClusterMirror,
    templates: Sequence[Template],
    number: int | None = None,
    *,
    like: NodeLike | None = None,
    orders: int = 1,
) -> Capacity:
    """Ask; nothing is left of it."""
    basis = Basis(mirror, schedulers(mirror), NOTHING_MORE, orders)
    return result_of(mirror, capacity(basis, templates, number, like=like))


def pooled(name: str, pool: str, cpu: int = 2, zone: str = "a") -> NodeBuilder:
    return node(name, cpu, zone).label(POOL, pool)


def test_as_many_as_fit_by_zone_and_pool_and_what_stops_the_next_one() -> None:
    mirror = mirror_of(pooled("n1", "small"), pooled("n2", "large", 4, "b"), replica("r").on("n1"))
    found = more(mirror, [template()])
    assert (found.placed, found.least, found.most, found.by_template) == (5, 5, 5, [5])
    assert (found.by_zone, found.by_pool) == ({"a": 1, "b": 4}, {"small": 1, "large": 4})
    assert (found.stopped_at, found.quota) == (0, "")
    assert found.rejected is not None
    assert (found.rejected.fate, found.rejected.reasons) == (Fate.UNSCHEDULABLE, {"Insufficient cpu": 2})
    assert (found.fill["cpu"], found.fill["pods"]) == (Fill(6000, 6000), Fill(6, 40))


def test_up_to_a_number_nothing_stops() -> None:
    mirror = mirror_of(node("n1", cpu=9))
    found = more(mirror, [template()], 3)
    assert (found.placed, found.stopped_at, found.rejected) == (3, -1, None)
    assert more(mirror, [template()], 0).placed == 0
    assert more(mirror_of(node("n1", cpu=4000).allocatable(pods=2500)), [template()]).placed == 2500


def test_pending_pods_come_first_and_those_without_a_place_are_named() -> None:
    mirror = mirror_of(node("n1"), replica("waiting"), replica("huge", "huge", cpu=9), make_pod("gated").gated("g"))
    found = more(mirror, [template()])
    assert (found.pending_placed, found.placed) == (1, 1)
    assert [(name, each.fate) for name, each in found.pending_unplaced] == [
        ("default/gated", Fate.GATED),
        ("default/huge", Fate.UNSCHEDULABLE),
    ]
    assert more(mirror, []).pending_placed == 1


def test_a_pending_pod_that_is_being_deleted_takes_no_place() -> None:
    found = more(mirror_of(node("n1"), replica("gone").terminating()), [template()])
    assert (found.pending_placed, found.pending_unplaced, found.placed) == (0, [], 2)


def test_a_pending_pod_that_a_replica_helps_comes_before_the_next_replica() -> None:
    """kube-scheduler tries it when a pod comes that it must be near, or that evens out its spread."""
    near = replica("a", "a").required_affinity(term(ZONE, labelled(app="new")))
    last = replica("z", "z").required_affinity(term(ZONE, labelled(app="a")))
    found = more(mirror_of(node("n1", cpu=9), node("n2", cpu=9, zone="b"), last, near), [template()])
    assert (found.pending_placed, found.placed, found.pending_unplaced) == (2, 16, [])
    assert more(mirror_of(node("n1", cpu=9), near), [template()], 0).pending_placed == 0
    other = [template(replica("o", "o")), template()]
    assert more(mirror_of(node("n1", cpu=9), last, near), other).by_template == [4, 3]
    even = replica("s", "s", cpu=2).label("of", "x").spread(ZONE, labelled(of="x"))
    uneven = replica("r", "r").label("of", "x").on("n1")
    cluster = mirror_of(node("n1", cpu=4), node("n2", cpu=1, zone="b"), uneven, even)
    evens_out = template(replica("new", "new").label("of", "x").node_selector({ZONE: "b"}))
    assert (more(cluster, [evens_out]).pending_placed, more(cluster, [template()]).pending_placed) == (1, 0)


def test_a_node_is_added_for_a_pending_pod_that_a_replica_helps() -> None:
    near = replica("a", "a", cpu=2).required_affinity(term(ZONE, labelled(app="new")))
    found = more(mirror_of(node("n1"), near), [template()], 1, like=NodeLike("n1"))
    assert (found.placed, found.pending_placed, found.added) == (1, 1, ["n1-copy-1"])


def test_templates_take_turns_until_one_has_no_place() -> None:
    large = template(replica("large", "large", cpu=2))
    found = more(mirror_of(node("n1", cpu=9)), [template(share=2), large])
    assert (found.by_template, found.stopped_at, found.placed) == ([5, 2], 0, 7)
    assert found.rejected is not None


def test_a_quota_stops_before_the_nodes_are_full() -> None:
    mirror = mirror_of(node("n1", cpu=9))
    left = Allowance("ResourceQuota default/q: cpu", 5)
    limited = template()._replace(uses=[(left, 2), (Allowance("ResourceQuota default/q: memory", 99), 1)])
    found = more(mirror, [limited])
    assert (found.placed, found.stopped_at, found.quota) == (2, 0, "ResourceQuota default/q: cpu")
    assert found.rejected is None
    assert more(mirror, [limited], 2).quota == ""
    assert more(mirror, [limited._replace(uses=[(left, 1)])], 3).quota == ""
    assert more(mirror, [limited._replace(uses=[(Allowance("none is left", -1), 1)])], 3).placed == 0


def test_templates_use_a_quota_together() -> None:
    left = Allowance("ResourceQuota default/q: pods", 5)
    found = more(
        mirror_of(node("n1", cpu=9)),
        [template(share=2)._replace(uses=[(left, 1)]), template()._replace(uses=[(left, 1)])],
    )
    assert (found.by_template, found.stopped_at, found.quota) == ([4, 1], 1, left.text)


def test_each_replica_brings_its_claims() -> None:
    mirror = mirror_of(node("n1", cpu=9))
    mirror.apply(
        ClusterEvent("Add", StorageClass(name="c", provisioner="p", volume_binding_mode="WaitForFirstConsumer"))
    )
    claims = [PersistentVolumeClaim(namespace="default", name=name, storage_class="c") for name in ("data", "x-log")]
    owned = replace(claims[1], controller=ControllerRef("Pod", "x", "x"))
    pod = replace(pod_of(replica("x")), volumes=(PodClaim("data"), PodClaim("x-log", ephemeral=True), PodClaim("none")))
    without = replace(pod, volumes=pod.volumes[:2])
    assert more(mirror, [Template(without, claims=[claims[0], owned])], 3).placed == 3
    assert more(mirror, [Template(pod, claims=[claims[0], owned])], 3).placed == 0


def test_over_several_orders_the_least_and_the_most_are_told() -> None:
    spread = replica("new", "new").spread(ZONE, labelled(app="new"))
    found = more(mirror_of(node("n1"), node("n2", cpu=1, zone="b")), [template(spread)], orders=3)
    assert (found.orders, found.least <= found.placed <= found.most) == (3, True)


def test_nodes_are_added_while_they_help_with_the_pods_that_come_with_them() -> None:
    old = (
        node("n1", zone="b")
        .taint("dedicated", "x", "PreferNoSchedule")
        .taint("node.kubernetes.io/not-ready", "", "NoSchedule")
    )
    daemon = make_pod("d").owned_by("DaemonSet", "d", "d").requests(cpu="500m").on("n1")
    other = make_pod("e").owned_by("DaemonSet", "e", "e").node_selector({"gpu": "1"}).requests(cpu=1).on("n1")
    static = make_pod("s-n1").requests(cpu="250m").on("n1")
    twin = make_pod("d2").owned_by("DaemonSet", "d", "d").requests(cpu="500m").on("full")
    full = node("full", cpu="500m")
    mirror = mirror_of(old, full, daemon, twin, other, static, replica("waiting"), replica("huge", "huge", cpu=9))
    mirror.apply(ClusterEvent("Add", CSINode(name="n1")))
    found = more(mirror, [template()], 2, like=NodeLike("n1"))
    assert (found.placed, found.pending_placed, found.stopped_at) == (2, 1, -1)
    assert found.added == ["n1-copy-1", "n1-copy-2", "n1-copy-3"]
    assert found.added_zone == "b"
    assert [name for name, _ in found.pending_unplaced] == ["default/huge"]
    assert found.fill["cpu"] == Fill(500 + 500 + 1000 + 250 + 3 * (500 + 250 + 1000), 8500)


def test_no_node_is_added_for_a_pod_that_another_one_helps() -> None:
    near = replica("a", "a").required_affinity(term(ZONE, labelled(app="b"))).priority(1)
    found = more(mirror_of(node("n1"), near, replica("b", "b")), [], like=NodeLike("n1"))
    assert (found.pending_placed, found.added) == (2, [])
    found = more(mirror_of(node("n1"), near, replica("b", "b"), replica("r").on("n1")), [], like=NodeLike("n1"))
    assert (found.pending_placed, found.added) == (2, ["n1-copy-1"])
    full = node("n1", cpu=1), replica("r").on("n1")
    found = more(mirror_of(*full, near, replica("b", "b")), [], like=NodeLike("n1"))
    assert (found.pending_placed, found.added) == (2, ["n1-copy-1", "n1-copy-2"])


def test_the_copies_may_have_another_zone_and_a_bound() -> None:
    mirror = mirror_of(node("n1", cpu=1), replica("r").on("n1"))
    one = more(mirror, [template()], 3, like=NodeLike("n1", most=1, zone="z"))
    assert (one.placed, one.added, one.added_zone, one.stopped_at) == (1, ["n1-copy-1"], "z", 0)
    taken = mirror_of(node("n1", cpu=1), node("n1-copy-1", cpu=1))
    assert more(taken, [template()], 4, like=NodeLike("n1")).added == ["n1-copy-2", "n1-copy-3"]
    elsewhere = template(replica("new", "new").node_selector({ZONE: "q"}))
    assert more(mirror, [elsewhere], 2, like=NodeLike("n1")).added == []
    with pytest.raises(ForkError, match="node none is not there"):
        more(mirror, [template()], like=NodeLike("none"))


def test_a_pod_of_a_daemon_set_is_pinned_to_the_copy_in_each_of_its_terms() -> None:
    pinned = make_pod("d").owned_by("DaemonSet", "d", "d").requests(cpu="500m")
    pinned = pinned.required_node_affinity(
        {
            "matchExpressions": [{"key": HOSTNAME, "operator": "Exists"}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
    )
    mirror = mirror_of(node("n1", cpu=1), pinned.on("n1"), replica("r", cpu="500m").on("n1"))
    found = more(mirror, [template(replica("new", "new", cpu="500m"))], 2, like=NodeLike("n1"))
    assert (found.placed, found.added) == (2, ["n1-copy-1", "n1-copy-2"])
