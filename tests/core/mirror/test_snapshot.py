"""Snapshots: what they share, what an update costs, and what is supposed in one without anybody noticing."""

from collections.abc import Sequence
from itertools import permutations
from typing import Final

import pytest

from core.mirror import generation_store
from core.mirror.cluster import ClusterMirror
from core.mirror.frozen_node_info import FrozenNodeInfo
from core.mirror.node_info import NodeInfo
from core.mirror.snapshot import NodeNotInSnapshotError, Snapshot, WhatIfError
from core.objects.labels import NOTHING
from core.objects.pod import Pod
from tests.core.mirror.values import ATTRACTED, REPELLING, budget, mirror_of, node, pod, selecting, tell

NA: Final = node("na", cpu=100)
NB: Final = node("nb", cpu=100)
NC: Final = node("nc", cpu=100)


def snapshot_of(mirror: ClusterMirror) -> Snapshot:
    snapshot = Snapshot()
    mirror.update_snapshot(snapshot)
    return snapshot


def by_name(infos: tuple[FrozenNodeInfo, ...]) -> dict[str, FrozenNodeInfo]:
    assert len({info.name for info in infos}) == len(infos)
    return {info.name: info for info in infos}


def content(snapshot: Snapshot) -> list[object]:
    return [
        by_name(snapshot.list()),
        set(by_name(snapshot.have_pods_with_affinity())),
        set(by_name(snapshot.have_pods_with_required_anti_affinity())),
        set(by_name(snapshot.in_partition())),
        set(by_name(snapshot.out_of_partition())),
        snapshot.pdb_items(),
    ]


def rebuilt(mirror: ClusterMirror, snapshot: Snapshot) -> set[str]:
    """Update a snapshot; return the names of the nodes that have another value than before."""
    before = by_name(snapshot.list())
    mirror.update_snapshot(snapshot)
    assert content(snapshot_of(mirror)) == content(snapshot)
    assert mirror.audit() == []
    return {name for name, info in by_name(snapshot.list()).items() if before.get(name) is not info}


def test_a_new_snapshot_is_empty() -> None:
    snapshot = Snapshot()
    assert (snapshot.generation, snapshot.num_nodes, content(snapshot)) == (0, 0, [{}, set(), set(), set(), set(), ()])


def test_a_snapshot_has_the_known_nodes_with_their_pods() -> None:
    one, two = pod("1", "na", cpu=5), pod("2", "na")
    mirror = mirror_of(NA, NB, one, pod("3", "unknown"))
    mirror.assume(pod("2"), "na", 0.0)
    snapshot = snapshot_of(mirror)
    assert (snapshot.num_nodes, snapshot.generation) == (2, mirror.generation)
    assert set(by_name(snapshot.list())) == {"na", "nb"}
    assert snapshot.get("na").pods == {"1": one, "2": two}
    assert snapshot.get("nb").pods == {}


def test_a_node_that_is_not_there_is_named() -> None:
    snapshot = snapshot_of(mirror_of(NA, pod("1", "unknown")))
    with pytest.raises(NodeNotInSnapshotError, match=r"^node unknown is not in the snapshot$") as caught:
        snapshot.get("unknown")
    assert caught.value.name == "unknown"
    assert isinstance(caught.value, KeyError)


def test_nodes_are_found_by_the_terms_of_their_pods() -> None:
    mirror = mirror_of(
        NA, NB, NC, pod("1", "na", affinity=REPELLING), pod("2", "nb", affinity=ATTRACTED), pod("3", "nc")
    )
    snapshot = snapshot_of(mirror)
    assert set(by_name(snapshot.have_pods_with_affinity())) == {"na", "nb"}
    assert by_name(snapshot.have_pods_with_required_anti_affinity()) == {"na": snapshot.get("na")}
    tell(mirror, "Delete", pod("1"), pod("2"))
    tell(mirror, "Add", pod("4", "nc", affinity=REPELLING))
    mirror.update_snapshot(snapshot)
    for infos in (snapshot.have_pods_with_affinity(), snapshot.have_pods_with_required_anti_affinity()):
        assert by_name(infos) == {"nc": snapshot.get("nc")}


def test_events_do_not_reach_a_snapshot_between_two_updates() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", affinity=REPELLING), budget("a/x", NOTHING))
    snapshot = snapshot_of(mirror)
    before = content(snapshot)
    tell(mirror, "Delete", pod("1"), NB)
    tell(mirror, "Add", NC, pod("2", "na"), budget("a/x", selecting(app="a")))
    mirror.set_node_out_of_partition("na")
    assert before == content(snapshot)


def test_unchanged_nodes_are_the_very_same_values_in_every_snapshot() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na"))
    one, other = snapshot_of(mirror), snapshot_of(mirror)
    for name in ("na", "nb"):
        assert one.get(name) is other.get(name)
    tell(mirror, "Add", pod("2", "na"))
    assert rebuilt(mirror, one) == {"na"}
    mirror.update_snapshot(other)
    for name in ("na", "nb"):
        assert one.get(name) is other.get(name)


def test_an_update_costs_only_the_nodes_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_of(*(node(f"n{number}") for number in range(60)), pod("1", "n1"))
    snapshot = snapshot_of(mirror)
    made: list[str] = []
    make = mirror.nodes.frozen

    def counted(info: NodeInfo, pods: Sequence[Pod]) -> FrozenNodeInfo:
        made.append(info.name)
        return make(info, pods)

    monkeypatch.setattr(mirror.nodes, "frozen", counted)
    mirror.update_snapshot(snapshot)
    assert made == []
    tell(mirror, "Update", pod("1", "n2"), node("n3", cpu=1), node("n4"), pod("9", "unknown"))
    mirror.set_node_out_of_partition("n5")
    mirror.update_snapshot(snapshot)
    assert sorted(made) == ["n1", "n2", "n3", "n5"]


def test_what_changes_nothing_makes_no_value_anew() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", cpu=1))
    snapshot = snapshot_of(mirror)
    tell(mirror, "Update", NA, pod("1", "na", cpu=1))
    tell(mirror, "Delete", pod("2", "na"), NC)
    mirror.set_node_in_partition("na")
    mirror.finish_binding("1", 0.0)
    assert mirror.generation == snapshot.generation
    assert rebuilt(mirror, snapshot) == set()


def test_a_newer_version_of_a_pod_is_seen() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", version="1"))
    snapshot = snapshot_of(mirror)
    tell(mirror, "Update", pod("1", "na", version="2"))
    assert rebuilt(mirror, snapshot) == {"na"}
    assert snapshot.get("na").pods["1"].resource_version == "2"


def test_a_node_that_is_gone_is_gone_and_comes_again_with_its_pods() -> None:
    mirror = mirror_of(NA, NB, pod("1", "na", affinity=REPELLING))
    mirror.set_node_out_of_partition("na")
    snapshot = snapshot_of(mirror)
    tell(mirror, "Delete", NA)
    assert rebuilt(mirror, snapshot) == set()
    assert set(by_name(snapshot.list())) == {"nb"}
    tell(mirror, "Add", NA)
    assert rebuilt(mirror, snapshot) == {"na"}
    assert set(snapshot.get("na").pods) == {"1"}


def test_a_node_that_went_and_came_between_two_updates_is_a_new_one() -> None:
    mirror = mirror_of(NA, NB)
    snapshot = snapshot_of(mirror)
    tell(mirror, "Delete", NA)
    tell(mirror, "Add", NC, NA)
    tell(mirror, "Delete", NC)
    assert rebuilt(mirror, snapshot) == {"na"}


def test_a_snapshot_that_missed_more_removals_than_the_journal_holds_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation_store, "JOURNAL_LENGTH", 3)
    many = [node(f"n{number}") for number in range(10)]
    mirror = mirror_of(NA, *many)
    snapshot = snapshot_of(mirror)
    kept = snapshot.get("na")
    tell(mirror, "Delete", *many)
    tell(mirror, "Add", many[3])
    assert rebuilt(mirror, snapshot) == {"n3"}
    assert snapshot.num_nodes == 2
    assert snapshot.get("na") is kept


def test_nodes_change_sides_with_the_partition() -> None:
    mirror = mirror_of(node("na", labels={"disk": "ssd"}), NB, NC)
    snapshot = snapshot_of(mirror)
    assert set(by_name(snapshot.in_partition())) == {"na", "nb", "nc"}
    mirror.set_partition_selector(selecting(disk="ssd"))
    assert rebuilt(mirror, snapshot) == {"nb", "nc"}
    assert by_name(snapshot.in_partition()) == {"na": snapshot.get("na")}
    mirror.set_node_in_partition("nc")
    assert rebuilt(mirror, snapshot) == {"nc"}
    assert by_name(snapshot.out_of_partition()) == {"nb": snapshot.get("nb")}


def test_a_snapshot_follows_one_mirror_and_no_other() -> None:
    snapshot = snapshot_of(mirror_of(NA))
    before = content(snapshot)
    with pytest.raises(ValueError, match="one mirror and no other"):
        mirror_of(NB).update_snapshot(snapshot)
    assert before == content(snapshot)


# What if.

VICTIM: Final = pod("victim", "na", affinity=REPELLING, cpu=50)
BYSTANDER: Final = pod("bystander", "na", cpu=10)


def cluster() -> ClusterMirror:
    return mirror_of(NA, NB, VICTIM, BYSTANDER)


def test_a_pod_is_supposed_on_a_node_in_place_of_its_victims() -> None:
    mirror = cluster()
    snapshot = snapshot_of(mirror)
    snapshot.assume(pod("p", affinity=ATTRACTED, cpu=70), "na", ["victim"])
    info = snapshot.get("na")
    assert info.pods == {"bystander": BYSTANDER, "p": pod("p", "na", affinity=ATTRACTED, cpu=70)}
    assert info.guaranteed_requested == {"cpu": 80, "pods": 2}
    assert by_name(snapshot.have_pods_with_affinity()) == {"na": info}
    assert snapshot.have_pods_with_required_anti_affinity() == ()
    assert by_name(snapshot.list())["na"] is info
    assert by_name(snapshot.in_partition())["na"] is info


def test_a_pod_may_be_supposed_without_victims() -> None:
    snapshot = snapshot_of(cluster())
    snapshot.assume(pod("p"), "nb")
    assert snapshot.get("nb").pods == {"p": pod("p", "nb")}


def test_neither_the_mirror_nor_another_snapshot_notices_what_is_supposed() -> None:
    mirror = cluster()
    snapshot, other = snapshot_of(mirror), snapshot_of(mirror)
    before, generation = content(other), mirror.generation
    snapshot.assume(pod("p"), "na", ["victim"])
    assert (before, generation) == (content(other), mirror.generation)
    assert before == content(snapshot_of(mirror))
    assert (mirror.pod_count(), mirror.is_assumed("p"), mirror.audit()) == (2, False, [])


def test_the_real_values_are_back_when_all_is_forgotten() -> None:
    snapshot = snapshot_of(cluster())
    real, before = snapshot.get("na"), content(snapshot)
    snapshot.assume(pod("p"), "na", ["victim"])
    snapshot.forget("p")
    assert snapshot.get("na") is real
    assert before == content(snapshot)


@pytest.mark.parametrize("order", list(permutations("pqr")), ids="".join)
def test_several_may_be_forgotten_in_any_order(order: tuple[str, ...]) -> None:
    snapshot = snapshot_of(cluster())
    real = snapshot.get("na")
    what_ifs: dict[str, list[str]] = {"p": ["victim"], "q": [], "r": ["bystander", "p"]}
    for uid, victims in what_ifs.items():
        snapshot.assume(pod(uid, cpu=1), "na", victims)
    assert set(snapshot.get("na").pods) == {"q", "r"}
    for number, uid in enumerate(order, start=1):
        snapshot.forget(uid)
        left = [supposed for supposed in what_ifs if supposed not in order[:number]]
        gone = {victim for supposed in left for victim in what_ifs[supposed]}
        assert {"victim", "bystander", *left} - gone == set(snapshot.get("na").pods)
    assert snapshot.get("na") is real


def test_what_is_supposed_on_one_node_leaves_the_others_alone() -> None:
    snapshot = snapshot_of(cluster())
    other = snapshot.get("nb")
    snapshot.assume(pod("p"), "na", ["victim"])
    assert snapshot.get("nb") is other
    snapshot.assume(pod("q"), "nb")
    snapshot.forget("p")
    assert set(snapshot.get("na").pods) == {"victim", "bystander"}
    assert set(snapshot.get("nb").pods) == {"q"}


def test_an_update_drops_what_is_still_supposed() -> None:
    mirror = cluster()
    snapshot = snapshot_of(mirror)
    real, before = snapshot.get("na"), content(snapshot)
    snapshot.assume(pod("p"), "na", ["victim"])
    mirror.update_snapshot(snapshot)
    assert snapshot.get("na") is real
    assert before == content(snapshot)
    with pytest.raises(WhatIfError):
        snapshot.forget("p")
    snapshot.assume(pod("p"), "na", ["victim"])
    tell(mirror, "Delete", NA)
    mirror.update_snapshot(snapshot)
    assert set(by_name(snapshot.list())) == {"nb"}


def test_what_was_supposed_does_not_hide_what_changed_meanwhile_or_later() -> None:
    mirror = cluster()
    snapshot = snapshot_of(mirror)
    snapshot.assume(pod("p"), "na", ["victim"])
    tell(mirror, "Add", pod("new", "na"))
    assert rebuilt(mirror, snapshot) == {"na"}
    assert set(snapshot.get("na").pods) == {"victim", "bystander", "new"}
    assert rebuilt(mirror, snapshot) == set()
    assert set(snapshot.get("na").pods) == {"victim", "bystander", "new"}


@pytest.mark.parametrize(
    ("supposed", "where", "victims", "message"),
    [
        pytest.param(pod("q"), "nx", [], "node nx is not in the snapshot", id="unknown-node"),
        pytest.param(pod("bystander"), "na", [], r"\(bystander\) .* not on na again", id="is-on-the-node"),
        pytest.param(pod("victim"), "na", [], r"\(victim\) .* not on na again", id="is-a-victim-there"),
        pytest.param(pod("p"), "na", [], r"\(p\) .* not on na again", id="is-supposed-there"),
        pytest.param(pod("p"), "nb", [], r"\(p\) .* not on nb again", id="is-supposed-elsewhere"),
        pytest.param(pod("q"), "nb", ["bystander"], "no pod bystander on nb", id="victim-on-another-node"),
        pytest.param(pod("q"), "na", ["bystander", "x"], "no pod x on na", id="unknown-victim"),
        pytest.param(pod("q"), "na", ["victim"], "no pod victim on na", id="victim-of-another"),
        pytest.param(pod("q"), "na", ["q"], "no pod q on na", id="its-own-victim"),
    ],
)
def test_what_cannot_be_supposed_changes_nothing(supposed: Pod, where: str, victims: list[str], message: str) -> None:
    snapshot = snapshot_of(cluster())
    real = snapshot.get("na")
    snapshot.assume(pod("p"), "na", ["victim"])
    before = content(snapshot)
    with pytest.raises(NodeNotInSnapshotError if where == "nx" else WhatIfError, match=message):
        snapshot.assume(supposed, where, victims)
    assert before == content(snapshot)
    snapshot.forget("p")
    assert snapshot.get("na") is real


def test_a_victim_of_one_node_may_be_supposed_on_another() -> None:
    snapshot = snapshot_of(cluster())
    snapshot.assume(pod("p"), "na", ["victim"])
    snapshot.assume(VICTIM, "nb")
    assert snapshot.get("nb").pods["victim"].node_name == "nb"


def test_forgetting_what_is_not_supposed_is_an_error() -> None:
    snapshot = snapshot_of(cluster())
    for uid in ("victim", "unknown"):
        with pytest.raises(WhatIfError, match=f"nothing is supposed with pod {uid}"):
            snapshot.forget(uid)
