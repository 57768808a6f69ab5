"""The law of the mirror: after any events in any order, answers and counters are those of the objects present."""

import json
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict
from random import Random
from typing import Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from app.objects.decode_node import decode_namespace, decode_node
from app.objects.decode_pod import decode_pod
from core import events
from core.events import Action, ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.conformance.engine import ask
from tests.core.mirror.audit import audit_counters, match_counts, owner_counts
from tests.properties import strategies
from tests.properties.strategies import NAMESPACES, NODE_NAMES, UNMIRRORED, Args, Cluster, Labels, Object, name_of
from tests.reference.naive import NaiveCluster

MAX_QUESTIONS: Final = 4
# Node events outweigh their share of the objects, since each moves the counts of all pods on the node.
nodes = strategies.nodes(st.sampled_from((*NODE_NAMES, *UNMIRRORED)))
namespaces = strategies.namespaces(st.sampled_from(NAMESPACES))
numbers = strategies.pod_numbers()
existing_pods = strategies.existing_pods(numbers)
arrivals: st.SearchStrategy[Action] = st.sampled_from(("Add", "Update"))

Kind = Callable[[bytes], events.Object]  # the decoder of a kind stands for the kind


class EventStream(RuleBasedStateMachine):
    """Tells a mirror of events and keeps the v1 objects that are present; questions are asked after every event."""

    def __init__(self) -> None:
        super().__init__()
        self.mirror = ClusterMirror()
        self.present: dict[Kind, dict[str, Object]] = {decode_namespace: {}, decode_node: {}, decode_pod: {}}
        self.questions: list[Object] = []  # asked after every event
        self.requested: list[Object] = []  # all that were asked at least once
        self.plugin_args = Args(1, ignore_preferred_terms_of_existing_pods=False)
        self.shuffler = Random()  # noqa: S311 - replaced by hypothesis's own
        self.last: ClusterEvent | None = None

    def tell(self, action: Action, kind: Kind, changed: Object) -> None:
        """Apply an event to the mirror and to the objects that are present."""
        self.last = ClusterEvent(action, kind(json.dumps(changed).encode()))
        self.mirror.apply(self.last)
        if action == "Delete":
            self.present[kind].pop(name_of(changed), None)
        else:
            self.present[kind][name_of(changed)] = changed

    @initialize(
        cluster=strategies.clusters(),
        question=strategies.incoming_pods(),
        args=strategies.args(),
        shuffler=st.randoms(use_true_random=False),
    )
    def start(self, cluster: Cluster, question: Object, args: Args, shuffler: Random) -> None:
        """Begin with a cluster, told in the wrong order for counting: pods before their nodes and namespaces."""
        self.plugin_args, self.shuffler = args, shuffler
        self.questions.append(question)
        kinds = ((decode_pod, cluster.pods), (decode_node, cluster.nodes), (decode_namespace, cluster.namespaces))
        for kind, objects in kinds:
            for each in objects:
                self.tell("Add", kind, each)

    @precondition(lambda self: len(self.questions) < MAX_QUESTIONS)
    @rule(pod=strategies.incoming_pods())
    def question_after_every_event(self, pod: Object) -> None:
        self.questions.append(pod)

    @rule(pods=st.lists(strategies.incoming_pods(), min_size=1, max_size=3))
    def questions_requested_once(self, pods: Sequence[Object]) -> None:
        """Ask what no counter may exist for yet, so that it is counted from the state that events left."""
        self.check(pods)

    @rule(action=arrivals, pod=existing_pods)
    def pod_arrives_or_becomes_another(self, action: Action, pod: Object) -> None:
        self.tell(action, decode_pod, pod)

    @rule(number=numbers, node=st.sampled_from((*NODE_NAMES, *UNMIRRORED)))
    def pod_is_bound_or_moves(self, number: int, node: str) -> None:
        self.change_pod(number, "spec", nodeName=node)

    @rule(number=numbers, labels=strategies.labels(strategies.POD_LABELS))
    def pod_is_relabelled(self, number: int, labels: Labels) -> None:
        self.change_pod(number, "metadata", labels=labels)

    @rule(number=numbers, phase=st.sampled_from(("Succeeded", "Failed", "Running")))
    def pod_ends_or_runs(self, number: int, phase: str) -> None:
        self.change_pod(number, "status", phase=phase)

    @rule(number=numbers)
    def pod_terminates(self, number: int) -> None:
        self.change_pod(number, "metadata", deletionTimestamp="2026-01-01T00:00:00Z")

    @rule(last_known=existing_pods)
    def pod_is_deleted(self, last_known: Object) -> None:
        """Delete a pod, known or not; its last known state may be another than the mirror's."""
        self.tell("Delete", decode_pod, last_known)

    @rule(action=arrivals, node=nodes)
    def node_arrives_or_is_relabelled(self, action: Action, node: Object) -> None:
        self.tell(action, decode_node, node)

    @rule(last_known=nodes)
    def node_is_deleted(self, last_known: Object) -> None:
        self.tell("Delete", decode_node, last_known)

    @rule(number=numbers, labels=strategies.labels(strategies.NODE_LABELS))
    def node_with_a_pod_is_deleted_and_created_again(self, number: int, labels: Labels) -> None:
        name = self.node_of(number)
        if name is not None:
            self.tell("Delete", decode_node, {"metadata": {"name": name}})
            self.tell("Add", decode_node, {"metadata": {"name": name, "labels": {"host": name, **labels}}})

    @rule(number=numbers, labels=strategies.labels(strategies.NODE_LABELS))
    def node_with_a_pod_is_relabelled(self, number: int, labels: Labels) -> None:
        name = self.node_of(number)
        if name is not None:
            self.tell("Update", decode_node, {"metadata": {"name": name, "labels": {"host": name, **labels}}})

    @rule(action=arrivals, namespace=namespaces)
    def namespace_arrives_or_is_relabelled(self, action: Action, namespace: Object) -> None:
        self.tell(action, decode_namespace, namespace)

    @rule(last_known=namespaces)
    def namespace_is_deleted(self, last_known: Object) -> None:
        self.tell("Delete", decode_namespace, last_known)

    @precondition(lambda self: self.last is not None)
    @rule()
    def last_event_is_repeated(self) -> None:
        assert self.last is not None
        self.mirror.apply(self.last)

    def change_pod(self, number: int, member: str, **changes: object) -> None:
        """Update a pod that is present in one respect."""
        pod = deepcopy(self.present[decode_pod].get(f"p{number}"))
        if pod is not None:
            pod[member].update(changes)
            self.tell("Update", decode_pod, pod)

    def node_of(self, number: int) -> str | None:
        """Return the node that a pod names, if it is there and names one; the node may be unknown."""
        pod = self.present[decode_pod].get(f"p{number}", {})
        name: str = pod.get("spec", {}).get("nodeName", "")
        return name or None

    def check(self, questions: Sequence[Object]) -> None:
        """Ask the engine and the naive reference."""
        self.requested += [pod for pod in questions if pod not in self.requested]
        namespaces, nodes, pods = (kind.values() for kind in self.present.values())
        naive = NaiveCluster(namespaces, nodes, pods)
        plugin = InterPodAffinity(**asdict(self.plugin_args))
        for pod in questions:
            expected = naive.response(pod, **asdict(self.plugin_args))
            assert expected == ask(plugin, self.mirror, pod, self.present[decode_node])

    @invariant()
    def every_response_is_the_naive_one(self) -> None:
        self.check(self.questions)

    @invariant()
    def the_counters_stand_a_recount(self) -> None:
        assert audit_counters(self.mirror) == []

    def teardown(self) -> None:
        """Compare with a mirror that was told only of the objects present, in another order."""
        fresh = ClusterMirror()
        for event in self.shuffled(
            ClusterEvent("Add", kind(json.dumps(each).encode()))
            for kind, objects in self.present.items()
            for each in objects.values()
        ):
            fresh.apply(event)
        plugin = InterPodAffinity(**asdict(self.plugin_args))
        for pod in self.requested:
            ask(plugin, fresh, pod, self.present[decode_node])
        self.compare_counters(fresh)

    def shuffled(self, reported: Iterable[ClusterEvent]) -> Sequence[ClusterEvent]:
        """Return events in a random order."""
        order = list(reported)
        self.shuffler.shuffle(order)
        return order

    def compare_counters(self, fresh: ClusterMirror) -> None:
        """Hold all counters against those of the other mirror."""
        assert owner_counts(fresh) == owner_counts(self.mirror)
        assert match_counts(fresh) == match_counts(self.mirror)


class EventStreamWithEvictions(EventStream):
    """The same where match counters are evicted, so that the two mirrors need not hold the same ones in the end."""

    def compare_counters(self, fresh: ClusterMirror) -> None:
        assert owner_counts(fresh) == owner_counts(self.mirror)


def test_answers_and_counters_follow_every_event() -> None:
    run_machine(EventStream)


def test_answers_and_counters_follow_every_event_where_columns_and_counts_change_their_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What otherwise happens from hundreds of domains, label keys and one-off label values on.
    monkeypatch.setattr("core.mirror.topology._DENSE_FROM", 1)
    monkeypatch.setattr("core.mirror.pod_columns._SPARE_VALUES", 0)
    monkeypatch.setattr("core.mirror.pod_columns._MAX_LABEL_COLUMNS", 2)
    run_machine(EventStream)


def test_answers_follow_every_event_where_one_question_asks_for_more_counters_than_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A question asks for up to 8 match counters, 2 for each list of terms.
    monkeypatch.setattr("core.mirror.affinity_counts.MAX_MATCH_COUNTERS", 3)
    run_machine(EventStreamWithEvictions)
