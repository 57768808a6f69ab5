"""Whose pod it is, and how it can leave for good. Each owner is as its controller behaves, see core's owners.py."""

from collections.abc import Sequence

import pytest

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.explaining.owners import Way, owner_of
from core.explaining.pod_steps import Kind
from core.explaining.remedy import AddNode, RemovePod
from core.profile import full_profile
from tests.builders import PodBuilder, labelled, make_pod, named, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.diagnosis.deciding import HOST, ZONE, asking, helps, of_kind, roomy, using

PREEMPTED = Way.PREEMPTED


def of_deployment(pod: PodBuilder, revision: str, name: str = "web") -> PodBuilder:
    """Return a pod of a revision of a Deployment."""
    replica_set = f"{name}-{revision}"
    return pod.label("pod-template-hash", revision).owned_by("ReplicaSet", replica_set, replica_set)


def pending(pod: PodBuilder, name: str) -> PodBuilder:
    """Return the pod as another one that waits for a node."""
    return pod.uid(name).unschedulable("", "")


def ways(pod: PodBuilder, *running: PodBuilder) -> Sequence[tuple[str, Way, str, str]]:
    """Return how which pod may leave n1 for the pod: name, way, owner's kind and name."""
    found = of_kind(Kind.REMOVE_POD, helps(pod, roomy("n1"), *running))
    steps = [step for _, steps in found for step in steps]
    return [(each.pod, each.way, each.owner_kind, each.owner) for each in steps if isinstance(each, RemovePod)]


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("ReplicaSet", "web-5f7", ("Deployment", "default/web")),
        ("ReplicaSet", "bare", ("ReplicaSet", "default/bare")),
        ("StatefulSet", "db", ("StatefulSet", "default/db")),
    ],
)
def test_a_revision_of_a_deployment_belongs_to_the_deployment(kind: str, name: str, expected: tuple[str, str]) -> None:
    owner = owner_of(pod_of(using("p", "n1").label("pod-template-hash", "5f7").owned_by(kind, name, "u")))
    assert owner is not None
    assert (owner.kind, owner.name) == expected


def test_a_pod_without_an_owner_is_removed() -> None:
    assert ways(asking(cpu="8"), using("p", "n1", cpu="1")) == [("default/p", Way.DELETED, "", "")]


def test_kube_scheduler_preempts_where_it_does_the_least_harm() -> None:
    """Source: defaultpreemption/default_preemption.go, preemption.go (pickOneNodeForPreemption)."""
    web = of_deployment(using("web", "n1", cpu="7"), "1").priority(5)
    low = [using(f"low-{at}", "n2", cpu="4").priority(-1) for at in (1, 2)]
    requested = asking(cpu="8").priority(9)
    nodes = roomy("n1"), roomy("n2")
    assert PREEMPTED not in {way for _, way, *_ in ways(requested.preemption_policy("Never"), web)}
    assert ways(requested, web)[0] == ("default/web", PREEMPTED, "Deployment", "default/web")
    assert PREEMPTED not in {way for _, way, *_ in ways(asking(cpu="8").priority(5), web)}
    (first, *_) = helps(requested, *nodes, web, *low)
    assert [getattr(each, "pod", "") for each in first.steps] == ["default/low-1", "default/low-2"]
    assert first.node == "n2"


def test_a_pod_that_preempted_nothing_when_it_was_tried_does_not_later() -> None:
    low = using("low", "n1", cpu="7").priority(-1)
    assert PREEMPTED not in {way for _, way, *_ in ways(asking(cpu="8").unschedulable("Unschedulable", "no"), low)}
    assert not any(way is PREEMPTED for _, way, *_ in ways(asking(cpu="8"), low.terminating()))


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_a_pod_that_its_node_gets_again_at_once_is_not_removed(kind: str) -> None:
    """kubernetes/kubernetes#141227, kubernetes-sigs/descheduler#303."""
    assert not ways(asking(cpu="8"), using("p", "n1", cpu="1").owned_by(kind, "o", "o"))
    terminating = using("p", "n1", cpu="1").owned_by(kind, "o", "o").terminating()
    assert not ways(asking(cpu="8"), terminating)


def test_a_mirror_without_its_controller_is_known_by_its_name() -> None:
    assert not ways(asking(cpu="8"), using("etcd-n1", "n1", cpu="1"))
    assert ways(asking(cpu="8"), using("etcd-n11", "n1", cpu="1"))


def test_a_pod_of_the_same_controller_is_not_removed() -> None:
    """It would be the pending pod's place for the pod that is made again: the same problem with another name."""
    for kind in ("ReplicaSet", "StatefulSet", "Job"):
        sibling = using("p-0", "n1", cpu="1").owned_by(kind, "o", "o")
        assert not ways(asking(cpu="8").owned_by(kind, "o", "o"), sibling)
    other = using("p-0", "n1", cpu="1").owned_by("StatefulSet", "o", "o")
    assert ways(asking(cpu="8").in_namespace("elsewhere").owned_by("StatefulSet", "o", "o"), other)


def test_the_owner_of_another_pod_is_scaled_down() -> None:
    running = of_deployment(using("web-1-x", "n1", cpu="1"), "1")
    assert ways(asking(cpu="8"), running) == [("default/web-1-x", Way.SCALED_DOWN, "Deployment", "default/web")]


def test_a_deployment_that_owns_a_pod_itself_does_not_lose_it_when_it_is_scaled() -> None:
    """Apache Flink makes its task managers, with the Deployment of the job manager as their controller."""
    worker = using("flink-taskmanager-1-1", "n1", cpu="1").owned_by("Deployment", "flink", "flink")
    assert [each[1] for each in ways(asking(cpu="8"), worker)] == [Way.OWNER_ENDS]
    manager = using("flink-1-x", "n1", cpu="1").label("pod-template-hash", "1").owned_by("ReplicaSet", "flink-1", "r")
    assert not ways(asking(cpu="8").owned_by("Deployment", "flink", "flink"), manager)
    next_manager = asking(cpu="8").label("pod-template-hash", "2").owned_by("ReplicaSet", "flink-2", "r2")
    assert not ways(next_manager, worker)


def test_a_pod_of_a_deployment_config_leaves_when_that_is_scaled() -> None:
    """OpenShift sets the replicas of its ReplicationController again."""
    running = using("web-3-x", "n1", cpu="1").label("deploymentconfig", "web")
    running = running.owned_by("ReplicationController", "web-3", "rc")
    expected = [("default/web-3-x", Way.SCALED_DOWN, "DeploymentConfig", "default/web")]
    assert ways(asking(cpu="8"), running) == expected
    next_one = asking(cpu="8").label("deploymentconfig", "web").owned_by("ReplicationController", "web-4", "rc4")
    assert not ways(next_one, running)


@pytest.mark.parametrize(("kind", "label"), [("ReplicationController", "deploymentconfig"), ("Deployment", "x")])
def test_no_placed_pod_is_made_again_that_would_be_as_it_was(kind: str, label: str) -> None:
    """The ReplicationController of a DeploymentConfig has the old template, and so has a worker of Flink."""
    own = asking().label("app", "web").label(label, "web").required_anti_affinity(term(HOST, labelled(app="web")))
    placed = using("web-3-x", "n1").label("app", "web").label(label, "web").owned_by(kind, "web-3", "rc")
    placed = placed.required_anti_affinity(term(HOST, labelled(app="web")))
    assert not of_kind(Kind.PREFER_TERMS, helps(own.owned_by(kind, "web-3", "rc"), roomy("n1"), placed))


def test_an_owner_with_a_pod_that_waits_deletes_that_one_first() -> None:
    """ActivePodsWithRanks: pods without a node come first."""
    running = of_deployment(using("web-1-x", "n1", cpu="1"), "1")
    assert not ways(asking(cpu="8"), running, pending(of_deployment(asking(cpu="9"), "1"), "web-1-y"))
    assert ways(asking(cpu="8"), running, pending(of_deployment(asking(cpu="9"), "2"), "web-2-y"))


def test_a_pod_that_has_not_started_goes_before_one_of_the_least_cost() -> None:
    """controller_utils.go, ActivePodsWithRanks.Less: the phase comes before the deletion cost."""
    started = of_deployment(using("web-1-x", "n1", cpu="1").started("2026-01-01T00:00:00Z"), "1")
    next_to = of_deployment(using("web-1-y", "n0"), "1")
    assert not ways(asking(cpu="8"), started, next_to)
    assert ways(asking(cpu="8"), started, next_to.started("2026-01-01T00:00:00Z"))


def removals(pod: PodBuilder, *running: PodBuilder) -> Sequence[tuple[str, int, int]]:
    steps = [step for _, steps in of_kind(Kind.REMOVE_POD, helps(pod, roomy("n1"), *running)) for step in steps]
    return [(each.pod, each.siblings, each.max_unavailable) for each in steps if isinstance(each, RemovePod)]


def test_the_pod_that_leaves_is_told_to_its_controller_if_there_are_others() -> None:
    running = [of_deployment(using(f"web-1-{at}", f"n{at}", cpu="1"), "1") for at in (1, 2, 3)]
    assert removals(asking(cpu="8"), *running) == [("default/web-1-1", 2, 0)]
    assert removals(asking(cpu="8"), running[0]) == [("default/web-1-1", 0, 0)]


def test_a_rolling_update_takes_an_old_pod_away_beyond_the_unavailable_ones() -> None:
    """deployment/rolling.go, reconcileOldReplicaSets: the new pods that wait use maxUnavailable up."""
    old = [of_deployment(using(f"web-1-{at}", f"n{at}").host_port(80), "1") for at in (1, 2, 3)]
    new = of_deployment(asking().host_port(80), "2")
    assert removals(new, old[0]) == [("default/web-1-1", 0, 1)]
    assert removals(new, *old) == [("default/web-1-1", 2, 2)]
    assert removals(new, *old, pending(new, "web-2-y")) == [("default/web-1-1", 2, 3)]


def test_of_two_old_revisions_it_is_not_known_which_loses_a_pod() -> None:
    old = [of_deployment(using(f"web-{at}-x", f"n{at}").host_port(80), str(at)) for at in (1, 2)]
    assert not ways(of_deployment(asking().host_port(80), "3"), *old)


@pytest.mark.parametrize(
    ("kind", "then"),
    [
        (
            "StatefulSet",
            "delete it: its StatefulSet makes it again with the change, unless its partition holds the change back",
        ),
        ("ReplicaSet", "delete it: its ReplicaSet makes it again with the change"),
        ("ReplicationController", "delete it: its ReplicationController makes it again with the change"),
        ("Job", "make its Job again: the template cannot be changed"),
        ("", "make it again: what it asks for cannot be changed"),
        ("Deployment", ""),
    ],
)
def test_a_pod_that_no_owner_replaces_has_to_be_made_again(kind: str, then: str) -> None:
    """A StatefulSet waits for its pod (OrderedReady); a Job's template and a pod's spec are immutable."""
    pod = asking(cpu="9").unschedulable("")
    if kind == "Deployment":
        pod = of_deployment(pod, "1")
    elif kind:
        pod = pod.owned_by(kind, "o", "o")
    mirror = mirror_of(roomy("n1"), using("p", "n1", cpu="1"), pod)
    found = find_remedies(Diagnosis(full_profile(), mirror, pod_of(pod), mirror.batch(["n1"])), 9)
    assert {each.then for each in found if each.kind is Kind.LOWER_REQUESTS} == {then}
    assert not any(each.then for each in helps(pod, roomy("n1")))  # a pod that is only asked about


def test_a_toleration_is_added_to_a_pod_itself() -> None:
    """pkg/apis/core/validation, ValidatePodUpdate: additions to existing tolerations are allowed."""
    pod = asking().unschedulable("")
    mirror = mirror_of(roomy("n1").taint("x", "", "NoSchedule"), pod)
    found = find_remedies(Diagnosis(full_profile(), mirror, pod_of(pod), mirror.batch(["n1"])), 9)
    assert [each.then for each in found if each.kind is Kind.TOLERATE_TAINTS] == [""]


def test_of_a_stateful_set_only_the_last_pod_leaves() -> None:
    """stateful_set_control.go deletes the largest ordinal first, also of pods that wait."""
    pods = [using(f"db-{at}", f"n{at}", cpu="1").owned_by("StatefulSet", "db", "db") for at in (1, 10)]
    assert not ways(asking(cpu="8"), *pods)
    assert ways(asking(cpu="8"), pods[0]) == [("default/db-1", Way.SCALED_DOWN, "StatefulSet", "default/db")]


def test_a_stateful_set_with_a_replica_that_waits_is_not_scaled_down() -> None:
    """By default it deletes none before that one runs: statefulset/stateful_set_control.go, processReplica."""
    last = using("db-1", "n1", cpu="1").owned_by("StatefulSet", "db", "db")
    waiting = make_pod("db-0").uid("db-0").image("i").requests(cpu="9").owned_by("StatefulSet", "db", "db")
    assert not ways(asking(cpu="8"), last, waiting.unschedulable("", ""))
    assert ways(asking(cpu="8"), last, using("db-0", "n0").owned_by("StatefulSet", "db", "db"))


def test_in_a_rollout_the_largest_replica_set_loses_a_pod() -> None:
    """deployment/sync.go, scale: what proportions leave over is of the largest, of equal ones of the older."""
    large = [of_deployment(using(f"web-1-{at}", f"n{at}", cpu="1"), "1") for at in (1, 2, 3)]
    small = [of_deployment(using(f"web-2-{at}", f"n{at}", cpu="1"), "2") for at in (1, 4)]
    assert not ways(asking(cpu="8"), small[0], *large[1:])
    assert not ways(asking(cpu="8"), small[0], small[1], *large[1:])
    assert not ways(asking(cpu="8"), large[0], *small[1:], of_deployment(using("web-2-5", "n5"), "2"))
    assert ways(asking(cpu="8"), large[0], large[1], small[1])


def test_a_job_is_not_scaled_but_ends() -> None:
    running = using("test-x", "n1", cpu="1").owned_by("Job", "test", "test")
    assert ways(asking(cpu="8"), running) == [("default/test-x", Way.OWNER_ENDS, "Job", "default/test")]


def test_an_old_pod_of_the_same_deployment_leaves_first() -> None:
    """The new pod waits for the port of the old one, which goes only when the new one runs."""
    old = of_deployment(using("web-1-x", "n1").host_port(80), "1")
    found = ways(of_deployment(asking().host_port(80), "2"), old)
    assert found == [("default/web-1-x", Way.ROLLED_OVER, "Deployment", "default/web")]


def test_a_pod_that_terminates_is_waited_for() -> None:
    ending = using("p", "n1", cpu="1").owned_by("Job", "test", "test").terminating()
    found = helps(asking(cpu="8"), roomy("n1"), ending)
    assert found[0].text == "wait until pod default/p, which is being deleted, has left n1 (then it fits on n1)"
    assert [each.text for each in found].count(found[0].text) == 1


def test_all_pods_that_terminate_are_waited_for_if_it_takes_them_all() -> None:
    ending = [using(f"p{at}", "n1", cpu=cpu).terminating() for at, cpu in enumerate(("3", "1", "3"))]
    steps = of_kind(Kind.REMOVE_POD, helps(asking(cpu="7"), roomy("n1"), *ending))[0][1]
    assert [each.pod for each in steps if isinstance(each, RemovePod)] == ["default/p0", "default/p2"]


def test_a_pod_that_terminates_elsewhere_is_waited_for() -> None:
    repelling = using("db", "n2").label("app", "db").terminating()
    pod = asking().required_anti_affinity(term(ZONE, labelled(app="db")))
    nodes = roomy("n1", zone="a"), roomy("n2", zone="a").unschedulable()
    assert "wait until pod default/db, which is being deleted, has left n2 (then it fits on n1)" in [
        each.text for each in helps(pod, *nodes, repelling)
    ]


def test_a_pod_that_comes_again_or_cannot_end_is_not_waited_for() -> None:
    """A StatefulSet makes the same pod as soon as the old one has ended; a node that is gone ends no pod."""
    assert not ways(asking(cpu="8"), using("db-0", "n1", cpu="1").owned_by("StatefulSet", "db", "db").terminating())
    unreachable = roomy("n1").taint("node.kubernetes.io/unreachable", "", "NoExecute")
    pod = asking(cpu="8").toleration("node.kubernetes.io/unreachable", "Exists")
    assert not of_kind(Kind.REMOVE_POD, helps(pod, unreachable, using("p", "n1", cpu="1").terminating()))


def test_a_pod_of_a_daemon_set_keeps_its_node() -> None:
    """Its controller asks for the node's name in each pod, and makes another pod for another node."""
    pod = asking().owned_by("DaemonSet", "agent", "agent").required_node_affinity(named("In", "n9"))
    assert not helps(pod, roomy("n1"))


def test_a_new_node_has_the_pods_that_come_with_a_node() -> None:
    agent = using("agent", "n1", cpu="1").owned_by("DaemonSet", "agent", "agent")
    nodes = roomy("n1").label(HOST, "n1"), roomy("n2", cpu="9")
    full = [using("a", "n1", cpu="7"), using("b", "n2", cpu="9")]
    found = of_kind(Kind.ADD_NODE, helps(asking(cpu="8"), *nodes, agent, *full))
    assert found == [("n2-copy", [AddNode("n2-copy", "n2", "")])]
