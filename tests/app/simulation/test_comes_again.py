"""What comes in the place of a pod: its owner's next pod, and not a copy of the running one."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from app.objects.decode_pod import decode_pod
from app.simulation.comes_again import OF_GROUP, ClusterFacts, Created
from app.simulation.owner_rules import INDEX_FAILS, NO_MORE, NO_RETRY
from app.simulation.raw_objects import RawObjects
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GROUP_LABEL
from core.objects.kinds import ControllerRef
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.simulation.facts import OF_NODE, REPLACED, UNMANAGED, Again
from tests.builders import PodBuilder, make_pod

Object = dict[str, Any]


class Found(NamedTuple):
    """What comes in the place of a pod, and the uncertainty about it."""

    leaves: Pod
    again: Again | str
    uncertainty: str = ""


def template(cpu: str = "2", **labels: str) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [container]}}


def deployment(**spec: object) -> Object:
    metadata = {"name": "web", "namespace": "default"}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": metadata,
        "spec": {"template": template()} | spec,
    }


def replica_set(revision: str, number: int, of: Object) -> Object:
    """Return a ReplicaSet of Deployment web, as the API server lists it."""
    labelled = {**of, "metadata": {"labels": {**of["metadata"]["labels"], "pod-template-hash": revision}}}
    metadata = {
        "name": f"web-{revision}",
        "namespace": "default",
        "uid": f"uid-{revision}",
        "labels": labelled["metadata"]["labels"],
        "annotations": {"deployment.kubernetes.io/revision": str(number)},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}],
    }
    return {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": metadata, "spec": {"template": labelled}}


def running(name: str = "web-1a-x", kind: str = "ReplicaSet", owner: str = "web-1a") -> PodBuilder:
    pod = make_pod(name).uid("u-1").label("app", "web").label("pod-template-hash", "1a").on("n1")
    return pod.requests(cpu="1").owned_by(kind, owner, "r1")


def at_hand(*objects: Object) -> tuple[ClusterMirror, RawObjects]:
    raw = RawObjects()
    for each in objects:
        raw.take(each["kind"], json.dumps(each).encode())
    return ClusterMirror(), raw


def again(pod: PodBuilder | Object, *objects: Object) -> Found:
    """Return what comes in the place of a pod on n1, with these raw objects at hand."""
    mirror, raw = at_hand(*objects)
    text = json.dumps(pod).encode() if isinstance(pod, dict) else pod.json()
    stored = decode_pod(text)
    for each in (Node("n1", {}), stored):
        mirror.apply(ClusterEvent("Add", each))
    raw.take("Pod", text)
    facts = ClusterFacts(mirror, raw)
    found = facts.comes_again(stored)
    return Found(stored, found, *(each.why for each in facts.uncertainties))


def made(found: Found) -> Pod:
    assert isinstance(found.again, Again)
    return found.again.instead_of(found.leaves)


def test_it_is_of_the_deployments_template_and_not_as_the_running_pod() -> None:
    found = again(running(), deployment())
    assert (made(found).requests, found.uncertainty) == ({"cpu": 2000}, "")
    assert (made(found).name, made(found).uid, made(found).node_name) == ("web-1a-x", "supposed/u-1", "")


def test_that_a_member_of_a_group_is_placed_by_itself_is_said() -> None:
    member = running().label(GROUP_LABEL, "train")
    assert again(member, deployment()).uncertainty == OF_GROUP
    assert again(member).uncertainty == f"as the running pod, no Deployment is at hand; {OF_GROUP}"


class Server:
    """An API server that adds a node selector, or says something else."""

    def __init__(self, other: Created | None = None) -> None:
        self.sent: list[Object] = []
        self._other = other

    def create_all(self, pods: Sequence[Object]) -> Sequence[Created]:
        """Return what is said of each pod."""
        assert pods  # else there is nothing to ask for
        self.sent += pods
        return [self._created(each) for each in pods]

    def _created(self, pod: Object) -> Created:
        if self._other is not None:
            return self._other
        stored = {**pod, "metadata": {**pod["metadata"], "name": "generated", "uid": "generated"}}
        return Created(json.dumps({**stored, "spec": {**pod["spec"], "nodeSelector": {"disk": "ssd"}}}).encode())


def leaving_together(server: Server, pods: Sequence[PodBuilder], *objects: Object) -> list[Found]:
    """Return what comes in the place of pods that leave together, by an API server."""
    mirror, raw = at_hand(*objects)
    stored = [decode_pod(each.json()) for each in pods]
    mirror.apply(ClusterEvent("Add", Node("n1", {})))
    for pod in stored:
        mirror.apply(ClusterEvent("Add", pod))
    facts = ClusterFacts(mirror, raw, server)
    facts.prepare(stored)
    sent = len(server.sent)
    found = [(each, facts.comes_again(each)) for each in stored]
    assert len(server.sent) == sent  # a pod that is prepared is not asked for again
    return [Found(*each, *(every.why for every in facts.uncertainties)) for each in found]


def test_the_api_server_is_asked_once_for_alike_pods_and_its_pod_comes() -> None:
    server, static = Server(), make_pod("static-n1").on("n1")
    pods = [running(f"web-1a-{name}").uid(f"u-{name}") for name in "xyz"]
    found = leaving_together(server, [*pods, static, make_pod("bare").on("n1")], deployment())
    assert [each["metadata"]["name"] for each in server.sent] == ["web-1a-x"]
    assert "priority" not in server.sent[0]["spec"]  # what admission adds is the API server's
    assert [(made(each).name, made(each).uid) for each in found[:3]] == [
        (f"web-1a-{name}", f"supposed/u-{name}") for name in "xyz"
    ]
    assert {made(each).node_affinity for each in found[:3]} != {made(again(running(), deployment())).node_affinity}
    assert [each.again for each in found[3:]] == [OF_NODE, UNMANAGED]


def test_each_replica_with_a_name_of_its_own_is_asked_for() -> None:
    server = Server()
    pods = [running(f"db-{number}", "StatefulSet", "db").uid(f"u-{number}") for number in range(3)]
    found = leaving_together(server, pods, stateful_set())
    assert [each["metadata"]["name"] for each in server.sent] == ["db-0", "db-1", "db-2"]
    claims = [[each.name for each in made(one).volumes if isinstance(each, PodClaim)] for one in found]
    assert claims == [[f"data-db-{number}"] for number in range(3)]


def test_what_the_api_server_refuses_does_not_come_and_what_it_does_not_say_is_made_here() -> None:
    ((_, denied, *_),) = leaving_together(Server(Created(denied="violates PodSecurity")), [running()], deployment())
    assert isinstance(denied, Again)
    assert denied.of_template is not None
    assert (denied.denied, denied.of_template.requests) == ("violates PodSecurity", {"cpu": 2000})
    (unknown,) = leaving_together(Server(Created(unknown="no right")), [running()], deployment())
    assert made(unknown).requests == {"cpu": 2000}
    assert unknown.uncertainty == "as made here and not by the API server: no right"
    (odd,) = leaving_together(Server(Created(b"[]")), [running()], deployment())
    assert odd.uncertainty.startswith("as made here and not by the API server: ")
    (copied,) = leaving_together(Server(Created(denied="no")), [running()])  # without its owner, nothing can be sent
    assert copied.uncertainty == "as the running pod, no Deployment is at hand"


def test_in_a_rollout_it_is_of_the_newest_replica_set() -> None:
    old, new = replica_set("1a", 9, template("1")), replica_set("2b", 10, template("3"))
    pod = made(again(running(), old, new))
    assert pod.requests == {"cpu": 3000}
    assert pod.labels["pod-template-hash"] == "2b"
    assert pod.controller is not None
    assert pod.controller.name == "web-2b"


STUCK = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}


@pytest.mark.parametrize(("spec", "conditions"), [({"paused": True}, []), ({}, [STUCK])])
def test_while_a_rollout_stands_still_it_is_of_its_own_replica_set(spec: Object, conditions: list[Object]) -> None:
    of = {**deployment(template=template("5"), **spec), "status": {"conditions": conditions}}
    found = again(running(), of, replica_set("1a", 9, template("1")), replica_set("2b", 10, template("3")))
    assert (made(found).requests, made(found).labels["pod-template-hash"]) == ({"cpu": 1000}, "1a")
    assert made(found).controller == ControllerRef("ReplicaSet", "web-1a", "uid-1a", "apps/v1")
    why = "because the rollout of its Deployment stands still, and its ReplicaSet is not at hand"
    assert again(running(), of).uncertainty == f"as the running pod, {why}"
    assert made(again(running(), {**of, "status": {}, "spec": deployment()["spec"]})).requests == {"cpu": 2000}


def test_with_the_deployment_the_revision_is_that_of_its_equal_replica_set() -> None:
    sets = [replica_set("1a", 9, template("1")), replica_set("2b", 10, template("2"))]
    assert made(again(running(), deployment(), *sets)).labels["pod-template-hash"] == "2b"


def test_without_any_replica_set_the_revision_is_taken_for_the_running_pods() -> None:
    assert made(again(running(), deployment())).labels["pod-template-hash"] == "1a"


def test_a_template_that_no_replica_set_has_is_a_new_revision() -> None:
    pod = made(again(running(), deployment(), replica_set("1a", 9, template("1"))))
    assert pod.labels["pod-template-hash"] == "new-revision"


def test_a_replica_set_of_its_own_makes_it_of_its_template() -> None:
    alone = {**replica_set("1a", 1, template("4"))}
    alone["metadata"] = {**alone["metadata"], "ownerReferences": []}
    assert made(again(running(), alone)).requests == {"cpu": 4000}


@pytest.mark.parametrize(
    ("owner", "deployments", "why"),
    [
        (("ReplicaSet", "web-1a"), (), "no Deployment is at hand"),
        (("ReplicaSet", "web-1a"), ("other",), "there is no Deployment of its name"),
        (("CloneSet", "web"), ("web",), "no CloneSet is at hand"),
        (("Job", "web"), (), "no Job is at hand"),
    ],
)
def test_without_its_owners_object_it_is_as_the_running_pod(
    owner: tuple[str, str], deployments: tuple[str, ...], why: str
) -> None:
    objects = [{**deployment(), "metadata": {"name": name, "namespace": "default"}} for name in deployments]
    found = again(running(kind=owner[0], owner=owner[1]), *objects)
    assert found.uncertainty == f"as the running pod, {why}"
    assert found.again == Again()
    assert (made(found).requests, made(found).node_name) == ({"cpu": 1000}, "")


def test_a_template_that_the_api_server_would_refuse_is_said() -> None:
    rejected = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "two"}}}]}}
    found = again(running(), deployment(template=rejected))
    assert found.uncertainty.startswith("as the running pod, because of its template: ")


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("bare").on("n1"), UNMANAGED),
        (running(kind="DaemonSet", owner="proxy"), OF_NODE),
        (make_pod("etcd-n1").on("n1"), OF_NODE),
        (make_pod("etcd").on("n1").owned_by("Node", "n1", "u"), OF_NODE),
        (running().terminating(), REPLACED),
    ],
)
def test_pods_in_whose_place_nothing_comes(pod: PodBuilder, why: str) -> None:
    assert again(pod, deployment())[1:] == (why, "")


def stateful_set(**spec: object) -> Object:
    metadata = {"name": "db", "namespace": "default"}
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    of = {"template": template(), "volumeClaimTemplates": claims, **spec}
    return {"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": metadata, "spec": of}


def test_a_replica_of_a_stateful_set_keeps_its_name_and_its_claims() -> None:
    pod = made(again(running("db-2", "StatefulSet", "db"), stateful_set()))
    assert pod.name == "db-2"
    assert pod.labels["apps.kubernetes.io/pod-index"] == "2"
    assert pod.volumes == (PodClaim("data-db-2"),)


def partitioned(start: int = 0, update: str = "db-new") -> Object:
    found = stateful_set(
        ordinals={"start": start}, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    )
    return {**found, "status": {"currentRevision": "db-old", "updateRevision": update}}


def in_rollout(start: int = 0, **strategy: object) -> Object:
    """Return a StatefulSet of whose pods 3 are still of the revision before."""
    found = stateful_set(ordinals={"start": start}, updateStrategy={"type": "RollingUpdate", **strategy})
    return {**found, "status": {"currentRevision": "db-old", "updateRevision": "db-new", "currentReplicas": 3}}


@pytest.mark.parametrize(
    ("name", "of", "cpu"),
    [
        ("db-1", partitioned(), 7000),
        ("db-2", partitioned(), 2000),
        ("db-2", partitioned(start=1), 7000),
        ("db-1", partitioned(update="db-old"), 2000),
        ("db-1", stateful_set(updateStrategy={"type": "OnDelete"}), 2000),
        ("db-1", in_rollout(), 7000),
        ("db-2", in_rollout(), 2000),  # it is one of the 3 no more
        ("db-2", in_rollout(start=1), 7000),
        ("db-1", in_rollout(rollingUpdate={}), 2000),
    ],
)
def test_a_replica_below_the_partition_is_of_the_revision_before(name: str, of: Object, cpu: int) -> None:
    """In stateful_set_utils.go, newVersionedStatefulSetPod."""
    metadata = {"name": "db-old", "namespace": "default", "ownerReferences": [{"kind": "StatefulSet", "name": "db"}]}
    data = {"spec": {"template": {**template("7"), "$patch": "replace"}}}
    revision = {"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata, "data": data}
    pod = made(again(running(name, "StatefulSet", "db"), of, revision))
    assert (pod.requests, pod.volumes) == ({"cpu": cpu}, (PodClaim(f"data-{name}"),))
    is_before = cpu == 7000
    assert (pod.labels["controller-revision-hash"] == "db-old") is is_before
    without = again(running(name, "StatefulSet", "db"), of).uncertainty
    why = "as the running pod, because of the rollout of its StatefulSet: revision db-old is not at hand"
    assert without == (why if is_before else "")
    ends = made(again(running("db-2", "StatefulSet", "db").terminating(), in_rollout(), revision))
    assert ends.requests == {"cpu": 7000}


def test_a_terminating_replica_of_a_stateful_set_comes_again() -> None:
    assert made(again(running("db-2", "StatefulSet", "db").terminating(), stateful_set())).name == "db-2"


def test_each_pod_has_the_generic_ephemeral_volumes_of_its_name() -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}
    of = template()
    of["spec"]["volumes"] = [volume]
    facts = ClusterFacts(*at_hand(deployment(template=of)))
    for name in ("web-1a-x", "web-1a-y"):
        found = facts.comes_again(decode_pod(running(name).json()))
        assert isinstance(found, Again)
        assert found.of_template is not None
        assert found.of_template.volumes == (PodClaim(f"{name}-scratch", ephemeral=True),)


def test_a_pod_of_an_indexed_job_keeps_its_index() -> None:
    pod = running("work-3-x", "Job", "work").label("batch.kubernetes.io/job-completion-index", "3")
    metadata = {"name": "work", "namespace": "default", "uid": "j"}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata}
    job["spec"] = {"completionMode": "Indexed", "template": template()}
    assert made(again(pod, job)).labels["batch.kubernetes.io/job-completion-index"] == "3"


def job(status: Object | None = None, group: str = "batch/v1", **spec: object) -> Object:
    metadata, of = {"name": "work", "namespace": "default", "uid": "j"}, {"template": template(), **spec}
    return {"kind": "Job", "apiVersion": group, "metadata": metadata, "spec": of, "status": status or {}}


IGNORES = {"rules": [{"action": "Ignore"}]}


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (job(backoffLimit=0), NO_RETRY),
        (job({"failed": 1}, backoffLimit=2), ""),
        (job({"failed": 2}, backoffLimit=2), NO_RETRY),
        (job({"failed": 5}), ""),
        (job({"failed": 6}), NO_RETRY),
        (job({"failed": 6}, "batch.volcano.sh/v1alpha1"), ""),
        (job({"failed": "6"}), ""),
        (job(backoffLimit=0, podFailurePolicy=IGNORES), ""),
        (job(backoffLimit=0, backoffLimitPerIndex=3), NO_RETRY),
        (job({"failed": 9}, backoffLimitPerIndex=3), ""),
        (job(backoffLimitPerIndex=2), INDEX_FAILS),
        (job(backoffLimitPerIndex=2, podFailurePolicy=IGNORES), ""),
        (job({"succeeded": 1}), NO_MORE),
        (job({"succeeded": 1}, completions=2), ""),
    ],
)
def test_a_job_without_a_retry_left_makes_no_other_pod(of: Object, why: str) -> None:
    pod = running("work-x", "Job", "work").annotated("batch.kubernetes.io/job-index-failure-count", "2")
    assert again(pod, of).again == why if why else isinstance(again(pod, of).again, Again)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_pod_of_a_job_that_goes_takes_a_retry(number: int) -> None:
    """With 2 retries left, the Job outlives 2 of the pods that leave together. One that ends already is counted."""
    mirror, raw = at_hand(job({"failed": 1}, backoffLimit=3))
    pods = [decode_pod(running(f"work-{at}", "Job", "work").uid(f"u-{at}").json()) for at in range(number)]
    others = running("work-t", "Job", "work").terminating(), running("w", "Job", "other"), running("web-1a-x")
    mirror.apply(ClusterEvent("Add", Node("n1", {})))
    for pod in pods:
        mirror.apply(ClusterEvent("Add", pod))
    facts = ClusterFacts(mirror, raw)
    facts.prepare([*pods, *(decode_pod(each.json()) for each in others)])
    assert [facts.comes_again(each) == NO_RETRY for each in pods] == [number == 3] * number
    facts.prepare(pods[:1])
    assert isinstance(facts.comes_again(pods[0]), Again)


def test_pods_of_an_owner_share_what_its_template_makes() -> None:
    facts = ClusterFacts(*at_hand(deployment()))
    pods = [decode_pod(running(f"web-1a-{name}").uid(name).json()) for name in "xy"]
    one, other = (made(Found(each, facts.comes_again(each))) for each in pods)
    assert one.labels is other.labels
    assert (one.name, other.name) == ("web-1a-x", "web-1a-y")


def test_without_priority_classes_at_hand_the_priority_is_the_running_pods() -> None:
    pod = running().obj()
    pod["spec"]["priority"] = 7
    of = template()
    of["spec"]["priorityClassName"] = "high"
    assert made(again(pod, deployment(template=of))).priority == 7


def test_a_doubt_counts_each_pod_once() -> None:
    mirror, raw = at_hand()
    facts, pods = ClusterFacts(mirror, raw), {name: decode_pod(running(name).uid(name).json()) for name in "xy"}
    for pod in pods.values():
        mirror.apply(ClusterEvent("Add", pod))
    for name in "xyx":
        facts.comes_again(pods[name])
    (uncertainty,) = facts.uncertainties
    assert (uncertainty.owner, uncertainty.pods) == ("Deployment default/web", 2)
