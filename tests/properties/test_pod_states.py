"""The law of pod states: whatever is assumed, forgotten, expires and is seen, the mirror is as a plain model has it."""

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from msgspec.structs import replace

from core.events import Action, ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import PodState, PodStateError, PodTransition
from core.objects.node import Node
from core.objects.pod import Pod
from tests.core.decoded import counter_of
from tests.core.mirror.audit import audit
from tests.properties import mirrored_values
from tests.properties.mirrored_values import NODES, UIDS, state_of

TTL: Final = 30.0
arrivals: st.SearchStrategy[Action] = st.sampled_from(("Add", "Update"))

Reported = tuple[str, PodState, PodState, str, str]


class Assumed(NamedTuple):
    """What the model keeps of an assumed pod."""

    at: float
    deadline: float | None


class PodStates(RuleBasedStateMachine):
    """Does to a mirror and to a model of two dicts whatever may happen to pods, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.mirror = ClusterMirror(assumed_pod_ttl=TTL)
        self.now = 0.0
        self.stored: dict[str, Pod] = {}  # uid -> the pod, assumed or added
        self.assumed: dict[str, Assumed] = {}  # uid -> since when and how long
        self.nodes: dict[str, Node] = {}
        self.shuffler = Random()  # noqa: S311 - replaced by hypothesis's own

    @initialize(shuffler=st.randoms(use_true_random=False), nodes=st.lists(mirrored_values.nodes(), max_size=4))
    def start(self, shuffler: Random, nodes: Sequence[Node]) -> None:
        self.shuffler = shuffler
        counter_of(self.mirror, (mirrored_values.MATCHER,), "zone")
        for node in nodes:
            self.node_arrives("Add", node)

    # What is decided here.

    @rule(seconds=st.sampled_from((0.0, 1.0, 10.0, 29.5, 30.0, 30.5)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(pod=mirrored_values.unassigned_pods(), node=mirrored_values.node_names)
    def assume(self, pod: Pod, node: str) -> None:
        if pod.uid in self.stored:
            with pytest.raises(PodStateError, match="cannot be assumed"):
                self.mirror.assume(pod, node, self.now)
            return
        placed = replace(pod, node_name=node)
        assert placed == self.mirror.assume(pod, node, self.now)
        self.stored[pod.uid] = placed
        self.assumed[pod.uid] = Assumed(self.now, None)

    @rule(uid=mirrored_values.uids)
    def finish_binding(self, uid: str) -> None:
        self.mirror.finish_binding(uid, self.now)
        if uid in self.assumed:
            self.assumed[uid] = Assumed(self.assumed[uid].at, self.now + TTL)

    @rule(uid=mirrored_values.uids)
    def forget(self, uid: str) -> None:
        if uid not in self.assumed:
            with pytest.raises(PodStateError, match="cannot be forgotten"):
                self.mirror.forget(uid)
            return
        self.mirror.forget(uid)
        del self.stored[uid], self.assumed[uid]

    @rule()
    def expire(self) -> None:
        due = {uid for uid, each in self.assumed.items() if each.deadline is not None and self.now > each.deadline}
        expired = {pod.uid: pod for pod in self.mirror.expire(self.now)}
        assert expired == {uid: self.stored[uid] for uid in due}
        for uid in due:
            del self.stored[uid], self.assumed[uid]

    # What the watch shows.

    @rule(action=arrivals, pod=mirrored_values.seen_pods())
    def pod_is_seen(self, action: Action, pod: Pod) -> None:
        self.see(action, pod)

    @rule(pod=mirrored_values.seen_pods())
    def pod_is_deleted(self, pod: Pod) -> None:
        """Delete a pod, known or not; its last known state may be another than the mirror's."""
        self.see("Delete", pod)

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), pod=mirrored_values.unassigned_pods(), action=arrivals)
    def pod_is_seen_on_its_node(self, data: st.DataObject, pod: Pod, action: Action) -> None:
        """Confirm a pod that is assumed, or update one that is added."""
        known = self.stored[data.draw(st.sampled_from(sorted(self.stored)))]
        self.see(action, replace(pod, uid=known.uid, name=known.name, node_name=known.node_name))

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), action=arrivals)
    def assumed_pod_is_seen_unassigned(self, data: st.DataObject, action: Action) -> None:
        known = self.stored[data.draw(st.sampled_from(sorted(self.assumed)))]
        self.see(action, replace(known, node_name="", labels={"app": "z"}, resource_version="4"))

    @precondition(lambda self: self.stored)
    @rule(data=st.data(), action=arrivals)
    def last_state_is_repeated(self, data: st.DataObject, action: Action) -> None:
        self.see(action, self.stored[data.draw(st.sampled_from(sorted(self.stored)))])

    @rule(action=arrivals, node=mirrored_values.nodes())
    def node_arrives(self, action: Action, node: Node) -> None:
        assert self.mirror.apply(ClusterEvent(action, node)) is None
        self.nodes[node.name] = node

    @rule(name=mirrored_values.node_names)
    def node_is_deleted(self, name: str) -> None:
        assert self.mirror.apply(ClusterEvent("Delete", Node(name))) is None
        self.nodes.pop(name, None)

    def see(self, action: Action, pod: Pod) -> None:
        """Apply a pod's event to the mirror and to the model; what the mirror tells must be what the model says."""
        transition = self.mirror.apply(ClusterEvent(action, pod))
        reported = None if transition is None else _reported(transition)
        assert self.model(pod, gone=action == "Delete" or pod.terminal, deleted=action == "Delete") == reported

    def model(self, pod: Pod, *, gone: bool, deleted: bool) -> Reported | None:
        """Apply a pod's event to the model; return what is worth telling."""
        was = self.stored.get(pod.uid)
        if pod.uid in self.assumed:
            assert was is not None
            return self.model_assumed(was, pod, gone=gone)
        if gone or not pod.node_name:
            self.stored.pop(pod.uid, None)
            if was is None and deleted and pod.assigned:
                return (pod.uid, PodState.INITIAL, PodState.DELETED, "", "")
            return None
        self.stored[pod.uid] = pod
        if was is None or was.node_name == pod.node_name:
            return None
        return (pod.uid, PodState.ADDED, PodState.ADDED, was.node_name, pod.node_name)

    def model_assumed(self, was: Pod, pod: Pod, *, gone: bool) -> Reported | None:
        """Apply an event of an assumed pod to the model."""
        if not gone and not pod.node_name:
            return None
        del self.assumed[pod.uid]
        if gone:
            del self.stored[pod.uid]
            return (pod.uid, PodState.ASSUMED, PodState.DELETED, was.node_name, "")
        self.stored[pod.uid] = pod
        return (pod.uid, PodState.ASSUMED, PodState.ADDED, was.node_name, pod.node_name)

    # What holds after each of them.

    @invariant()
    def the_mirror_has_the_model_s_pods(self) -> None:
        assert {uid: self.mirror.get_pod(uid) for uid in UIDS} == {uid: self.stored.get(uid) for uid in UIDS}
        assert [uid for uid in UIDS if self.mirror.is_mirrored(uid)] == [uid for uid in UIDS if uid in self.stored]
        assert [uid for uid in UIDS if self.mirror.is_assumed(uid)] == [uid for uid in UIDS if uid in self.assumed]
        assert self.mirror.pod_count() == len(self.stored)
        found = {uid: (each.pod, each.assumed_at, each.deadline) for uid, each in self.mirror.assumed.items()}
        assert found == {uid: (self.stored[uid], *each) for uid, each in self.assumed.items()}

    @invariant()
    def the_mirror_stands_a_recount(self) -> None:
        assert audit(self.mirror) == []

    def teardown(self) -> None:
        """Compare with a mirror that was told only of the objects that are there in the end, in another order."""
        things: list[Object] = [*self.stored.values(), *self.nodes.values()]
        self.shuffler.shuffle(things)
        fresh = ClusterMirror()
        for thing in things:
            fresh.apply(ClusterEvent("Add", thing))
        assert state_of(fresh) == state_of(self.mirror)
        for uid in UIDS:
            self.mirror.apply(ClusterEvent("Delete", Pod(uid, "default", uid)))
        for name in NODES:
            self.mirror.apply(ClusterEvent("Delete", Node(name)))
        assert (self.mirror.pod_count(), self.mirror.nodes.infos, audit(self.mirror)) == (0, {}, [])


def _reported(transition: PodTransition) -> Reported:
    return (
        transition.uid,
        transition.from_state,
        transition.to_state,
        transition.from_node,
        transition.to_node,
    )


def test_pods_are_where_the_last_decision_or_event_put_them() -> None:
    run_machine(PodStates)
