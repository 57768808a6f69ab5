"""The law of snapshots: one that follows the mirror now and then is one made afresh, whatever happened in between."""

from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from msgspec.structs import replace

from core.events import Action, ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.cluster_figures import ClusterFigures
from core.mirror.frozen_node_info import FrozenNodeInfo
from core.mirror.resource_figures import PlacedRequests
from core.mirror.snapshot import Snapshot
from core.objects.disruption import PodDisruptionBudget
from core.objects.labels import EVERYTHING, Selector, parse_selector
from core.objects.node import Node
from core.objects.owner import ReplicaSet
from core.objects.pod import Pod
from tests.core.decoded import counter_of
from tests.properties import mirrored_values
from tests.properties.mirrored_values import state_of

SNAPSHOTS: Final = 2
NAMESPACES: Final = ("default", "other")
COVERING: Final = (parse_selector({"app": "x"}, ()), parse_selector({}, [("app", "Exists", [])]), EVERYTHING)
PODS: Final = tuple(Pod("x", namespace, "x", labels) for namespace in NAMESPACES for labels in ({"app": "x"}, {}))
arrivals: st.SearchStrategy[Action] = st.sampled_from(("Add", "Update"))
numbers = st.integers(0, SNAPSHOTS - 1)

budgets = st.builds(
    PodDisruptionBudget,
    st.sampled_from(NAMESPACES),
    st.sampled_from("bc"),
    st.sampled_from(COVERING),
    st.integers(0, 1),
)
replica_sets = st.builds(
    ReplicaSet, st.sampled_from(NAMESPACES), st.sampled_from("rs"), st.sampled_from(({"app": "x"}, {"app": "y"}, {}))
)


def content(snapshot: Snapshot) -> dict[str, object]:
    """Give all that a snapshot answers; the names in its lists must belong to its values."""
    infos = {info.name: info for info in snapshot.list()}
    assert (snapshot.num_nodes, len(infos)) == (len(infos), len(snapshot.list()))
    lists = {
        "affinity": snapshot.have_pods_with_affinity(),
        "anti-affinity": snapshot.have_pods_with_required_anti_affinity(),
        "in": snapshot.in_partition(),
        "out": snapshot.out_of_partition(),
    }
    for members in lists.values():
        assert len({info.name for info in members}) == len(members)
        assert all(infos[info.name] is info is snapshot.get(info.name) for info in members)
    return {
        "infos": infos,
        **{name: {info.name for info in members} for name, members in lists.items()},
        "budgets": snapshot.pdb_items(),
        "of-pods": [snapshot.pdbs_of_pod(pod) for pod in PODS],
        "of-owners": [
            (snapshot.pdbs_of_owner("ReplicaSet", name), snapshot.owner_labels("ReplicaSet", name))
            for name in ("default/r", "default/s", "other/r")
        ],
        "owners": [snapshot.owners_of_pdb(f"{namespace}/b", "ReplicaSet") for namespace in NAMESPACES],
    }


class Snapshots(RuleBasedStateMachine):
    """Changes a mirror, and lets snapshots follow at their own pace; things are supposed in them all the while."""

    def __init__(self) -> None:
        super().__init__()
        self.mirror = ClusterMirror()
        self.snapshots = [Snapshot() for _ in range(SNAPSHOTS)]
        self.figures = ClusterFigures()
        self.seen = [content(snapshot) for snapshot in self.snapshots]  # at the last update, nothing supposed
        self.supposed: list[dict[str, tuple[Pod, str, frozenset[str]]]] = [{} for _ in range(SNAPSHOTS)]

    # What changes the mirror.

    @rule(action=arrivals, thing=st.one_of(mirrored_values.seen_pods(), mirrored_values.nodes(), budgets, replica_sets))
    def something_arrives_or_changes(self, action: Action, thing: Object) -> None:
        self.mirror.apply(ClusterEvent(action, thing))

    @rule(thing=st.one_of(mirrored_values.seen_pods(), mirrored_values.nodes(), budgets, replica_sets))
    def something_is_deleted(self, thing: Object) -> None:
        self.mirror.apply(ClusterEvent("Delete", thing))

    @rule(name=mirrored_values.node_names)
    def node_goes_and_comes_again(self, name: str) -> None:
        self.mirror.apply(ClusterEvent("Delete", Node(name)))
        self.mirror.apply(ClusterEvent("Add", Node(name, {"zone": "b"})))

    @rule(pod=mirrored_values.unassigned_pods(), name=mirrored_values.node_names)
    def pod_is_assumed_or_forgotten(self, pod: Pod, name: str) -> None:
        if not self.mirror.is_mirrored(pod.uid):
            self.mirror.assume(pod, name, 0.0)
        elif self.mirror.is_assumed(pod.uid):
            self.mirror.forget(pod.uid)

    @rule(selector=mirrored_values.selectors)
    def partition_changes(self, selector: Selector) -> None:
        self.mirror.set_partition_selector(selector)

    @rule(name=mirrored_values.node_names, how=st.sampled_from(("in", "out", "clear")))
    def node_changes_sides(self, name: str, how: str) -> None:
        match how:
            case "in":
                self.mirror.set_node_in_partition(name)
            case "out":
                self.mirror.set_node_out_of_partition(name)
            case _:
                self.mirror.clear_node_partition(name)

    # What follows it.

    @rule(number=numbers)
    def snapshot_follows(self, number: int) -> None:
        """Update a snapshot: it is one made afresh, and an unchanged node has the very same value as before."""
        before = self.seen[number]["infos"]
        self.mirror.update_snapshot(self.snapshots[number])
        self.supposed[number].clear()
        fresh = Snapshot()
        self.mirror.update_snapshot(fresh)
        self.seen[number] = found = content(self.snapshots[number])
        assert content(fresh) == found
        assert isinstance(before, dict)
        for info in self.snapshots[number].list():
            assert info is fresh.get(info.name)
            old = before.get(info.name)
            assert (old is info) is (old is not None and old.generation == info.generation)
        assert self.snapshots[number].generation == self.mirror.generation

    @rule()
    def figures_follow(self) -> None:
        """Add up what has changed since an earlier look: it is what a first look adds up."""
        known = self.mirror.nodes.known
        assert ClusterFigures().follow(known) == self.figures.follow(known)

    # What is supposed in them.

    @rule(number=numbers, pod=mirrored_values.unassigned_pods(), data=st.data())
    def something_is_supposed(self, number: int, pod: Pod, data: st.DataObject) -> None:
        snapshot = self.snapshots[number]
        if not snapshot.num_nodes:
            return
        info = snapshot.get(data.draw(st.sampled_from(sorted(info.name for info in snapshot.list()))))
        taken = {uid for _, where, victims in self.supposed[number].values() if where == info.name for uid in victims}
        if pod.uid in self.supposed[number] or pod.uid in info.pods or pod.uid in taken:
            return
        victims = frozenset(data.draw(st.sets(st.sampled_from(sorted(info.pods)))) if info.pods else ())
        snapshot.assume(pod, info.name, victims)
        self.supposed[number][pod.uid] = (replace(pod, node_name=info.name), info.name, victims)

    @precondition(lambda self: any(self.supposed))
    @rule(data=st.data())
    def something_supposed_is_forgotten(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([number for number in range(SNAPSHOTS) if self.supposed[number]]))
        uid = data.draw(st.sampled_from(sorted(self.supposed[number])))
        self.snapshots[number].forget(uid)
        del self.supposed[number][uid]

    # What holds after each of them.

    @invariant()
    def a_snapshot_is_its_last_update_and_what_is_supposed(self) -> None:
        for snapshot, seen, supposed in zip(self.snapshots, self.seen, self.supposed, strict=True):
            found, infos = content(snapshot), seen["infos"]
            assert isinstance(infos, dict)
            assert all(found[name] == seen[name] for name in ("budgets", "of-pods", "of-owners", "owners", "in", "out"))
            assert infos.keys() == {info.name for info in snapshot.list()}
            for name, real in infos.items():
                here = [(pod, victims) for pod, where, victims in supposed.values() if where == name]
                if here:
                    check_supposed(snapshot.get(name), real, here)
                else:
                    assert snapshot.get(name) is real

    @invariant()
    def the_mirror_stands_a_recount(self) -> None:
        assert self.mirror.audit() == []

    def teardown(self) -> None:
        """Let everything follow for the last time; the mirror itself is as one told only of what is there."""
        for number in range(SNAPSHOTS):
            self.snapshot_follows(number)
        self.figures_follow()
        fresh = ClusterMirror()
        counter_of(fresh, (mirrored_values.MATCHER,), "zone")
        for uid in self.mirror.pods.rows:
            pod = self.mirror.get_pod(uid)
            assert pod is not None
            fresh.apply(ClusterEvent("Add", pod))
        for _, node in self.mirror.nodes:
            fresh.apply(ClusterEvent("Add", node))
            if not self.mirror.node_in_partition(node.name):
                fresh.set_node_out_of_partition(node.name)
        assert state_of(fresh) == state_of(self.mirror)


def check_supposed(found: FrozenNodeInfo, real: FrozenNodeInfo, what_ifs: list[tuple[Pod, frozenset[str]]]) -> None:
    """Compare a node of which something is supposed with what a plain loop makes of it."""
    pods = {**real.pods, **{pod.uid: pod for pod, _ in what_ifs}}
    for _, victims in what_ifs:
        for uid in victims:
            pods.pop(uid, None)
    requested = PlacedRequests()
    for pod in pods.values():
        requested.count(pod, 1)
    assert found.pods == pods
    assert (found.guaranteed_requested, found.best_effort_requested) == (requested.guaranteed, requested.best_effort)
    assert (found.node, found.generation, found.in_partition) == (real.node, real.generation, real.in_partition)
    assert set(found.pods_with_required_anti_affinity) == {
        uid for uid, pod in pods.items() if pod.affinity.required_anti_affinity
    }


def test_a_snapshot_that_follows_is_one_made_afresh() -> None:
    run_machine(Snapshots)


def test_a_snapshot_that_missed_more_than_the_journal_holds_is_one_made_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.mirror.generation_store.JOURNAL_LENGTH", 1)
    run_machine(Snapshots)
