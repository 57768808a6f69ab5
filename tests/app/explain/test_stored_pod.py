"""The pod that would be stored for a manifest: each default, each plugin of admission, and each controller."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from app.explain.explain_request import Manifest, decode_manifest
from app.explain.templates import AtHand
from app.objects.decode import DecodeError
from app.objects.decode_pod import decode_pod
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import ALL_ADDRESSES, HostPort
from core.releases.differences import rules_of
from core.releases.release import nearest
from tests.builders import make_pod

Objects = Mapping[str, Sequence[Mapping[str, Any]]]


def at_hand(objects: Objects, release: str = "1.36") -> AtHand:
    return AtHand(ClusterMirror(rules=rules_of(nearest(release).release)), lambda kind: objects.get(kind, ()))


def manifest(of: object, objects: Objects | None = None, release: str = "1.36") -> Manifest:
    return decode_manifest(json.dumps(of).encode(), at_hand(objects or {}, release))


def stored(spec: object, objects: Objects | None = None, **metadata: object) -> dict[str, Any]:
    """Return the spec of a pod as it would be stored."""
    pod = {"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}
    spec_of: dict[str, Any] = json.loads(decode_manifest(json.dumps(pod).encode(), at_hand(objects or {})).json)["spec"]
    return spec_of


def pod(**spec: object) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "p", "labels": {"app": "web", "tenant": "t"}}, "spec": spec}


def container(name: str = "c", **resources: Mapping[str, object]) -> dict[str, Any]:
    return {"name": name, "image": "x", "resources": resources}


# Defaults of the API.


def test_a_limit_is_the_request_of_each_container_that_has_none() -> None:
    limited = container(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": 0.125})
    first = container("init", limits={"example.com/gpu": 1})
    found = stored({"containers": [limited], "initContainers": [first, container("second")]})
    assert found["containers"][0]["resources"]["requests"] == {"cpu": 0.125, "memory": "1Gi"}
    assert [each["resources"].get("requests") for each in found["initContainers"]] == [{"example.com/gpu": 1}, None]


def test_a_fraction_keeps_its_digits() -> None:
    text = (
        b'{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.10}}}]}}'
    )
    assert b'"requests":{"cpu":0.10}' in decode_manifest(text, at_hand({})).json


@pytest.mark.parametrize(
    ("host", "ports"), [(True, {HostPort(80, "TCP", ALL_ADDRESSES), HostPort(9, "UDP", ALL_ADDRESSES)}), (False, set())]
)
def test_ports_are_host_ports_with_the_network_of_the_host(host: bool, ports: set[HostPort]) -> None:  # noqa: FBT001 - a case
    listed = [{"containerPort": 80, "hostPort": 0}, {"containerPort": 9, "protocol": "UDP"}]
    found = manifest(pod(hostNetwork=host, containers=[{"name": "c", "ports": listed}])).pod
    assert found.demand.host_ports == ports


@pytest.mark.parametrize(("release", "memory"), [("1.36", "1Gi"), ("1.37", "64Mi")])
def test_a_limit_range_comes_before_requests_of_the_whole_pod_since_1_37(release: str, memory: str) -> None:
    item = {"type": "Container", "defaultRequest": {"memory": "64Mi"}}
    objects = {"LimitRange": [{"metadata": {"name": "l"}, "spec": {"limits": [item]}}]}
    whole = pod(resources={"limits": {"memory": "1Gi"}}, containers=[{"name": "c"}])
    required = make_pod("w").requests(memory=memory).obj()
    assert manifest(whole, objects, release).pod.requests == manifest(required).pod.requests


def test_requests_of_containers_are_those_of_the_whole_pod() -> None:
    asking = [container(requests={"cpu": "500m"}), container("d", limits={"cpu": "1"})]
    found = stored({"containers": asking, "resources": {"limits": {"cpu": "4", "memory": "1Gi", "x.example/y": "1"}}})
    assert found["resources"]["requests"] == {"cpu": "1500m", "memory": "1Gi"}


def test_a_pod_that_was_stored_is_unchanged() -> None:
    text = json.dumps({**pod(containers=[container(limits={"cpu": "9"})]), "metadata": {"name": "p", "uid": "u"}})
    found = decode_manifest(text.encode(), at_hand({}))
    assert (found.pod.uid, found.pod.requests, any(found.notes)) == ("u", {}, False)
    assert found.json == text.encode()


def test_to_complete_a_pod_again_changes_nothing() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    once = decode_manifest(
        json.dumps(
            pod(
                affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                containers=[container(limits={"cpu": "1"})],
                resources={"limits": {"memory": "1Gi"}},
            )
        ).encode(),
        at_hand({}),
    ).json
    assert decode_manifest(once, at_hand({})).json == once


# Admission.


def test_a_limit_range_is_of_its_namespace() -> None:
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}
    objects = {"LimitRange": [{"metadata": {"name": "l", "namespace": "shop"}, "spec": {"limits": [item]}}]}
    spec = {"containers": [{"name": "c"}], "initContainers": [container(requests={"cpu": "1"})]}
    found = stored(spec, objects, namespace="shop")
    assert found["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"memory": "1Mi", "cpu": "2"}}
    assert found["initContainers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Mi"}
    assert stored(spec, objects, namespace="other")["containers"] == [{"name": "c"}]


CLASSES = {
    "PriorityClass": [
        {"metadata": {"name": "high"}, "value": 9, "preemptionPolicy": "Never"},
        {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True},
        {"metadata": {"name": "low"}, "value": 2, "globalDefault": True},
    ]
}


@pytest.mark.parametrize(
    ("spec", "objects", "priority"),
    [
        ({"priorityClassName": "high"}, CLASSES, (9, "Never")),
        ({"priorityClassName": "absent"}, {}, (0, "")),
        ({"priorityClassName": "high", "priority": 9, "preemptionPolicy": "Never"}, CLASSES, (9, "Never")),
        ({}, CLASSES, (2, "")),
        ({}, {}, (0, "")),
        ({"priorityClassName": "system-node-critical"}, {}, (2_000_001_000, "")),
        ({"priority": 5}, {}, (5, "")),
    ],
)
def test_the_priority_is_that_of_the_class(spec: dict[str, Any], objects: Objects, priority: tuple[int, str]) -> None:
    found = manifest(pod(**spec, containers=[]), objects).pod
    assert (found.priority, found.preemption_policy) == priority


def test_classes_of_the_file_alone_do_not_say_that_another_is_absent() -> None:
    own = pod(priorityClassName="absent", runtimeClassName="absent", priority=3)
    next_to = [{"kind": kind, "metadata": {"name": "other"}} for kind in ("PriorityClass", "RuntimeClass")]
    found = manifest({"kind": "List", "items": [own, *next_to]})
    assert (found.pod.priority, [each.partition(":")[0] for each in found.notes.unknown]) == (
        3,
        ["runtimeClassName absent"],
    )


@pytest.mark.parametrize(
    ("present", "added"),
    [
        ([], ["not-ready", "unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], ["unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], ["not-ready", "unreachable"]),
        ([{"operator": "Exists"}], []),
    ],
)
def test_a_node_that_is_not_ready_is_tolerated_for_a_time(present: list[Any], added: list[str]) -> None:
    found = stored({"tolerations": present}).get("tolerations", [])[len(present) :]
    keys = [f"node.kubernetes.io/{each}" for each in added]
    assert found == [{"key": k, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for k in keys]


def test_label_keys_of_affinity_terms_are_merged_into_their_selectors() -> None:
    def term(**keys: list[str]) -> dict[str, Any]:
        return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, **keys}

    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    everybody = {"topologyKey": "zone", "matchLabelKeys": ["app"]}  # no selector matches no pod, and stays so
    found = stored(
        {
            "affinity": {
                "podAffinity": {required: [term(matchLabelKeys=["app", "absent"]), everybody]},
                "podAntiAffinity": {preferred: [{"weight": 1, "podAffinityTerm": term(mismatchLabelKeys=["tenant"])}]},
            }
        },
        labels={"app": "web", "tenant": "t"},
    )["affinity"]
    like, unlike = found["podAffinity"][required], found["podAntiAffinity"][preferred][0]["podAffinityTerm"]
    assert like[0]["labelSelector"]["matchExpressions"] == [{"key": "app", "operator": "In", "values": ["web"]}]
    assert like[1] == everybody
    again = {"affinity": {"podAffinity": {required: [term(matchLabelKeys=["none"])]}}}
    terms = stored(again, labels={"none": None})["affinity"]["podAffinity"][required]
    assert terms[0]["labelSelector"]["matchExpressions"] == [{"key": "none", "operator": "In", "values": [""]}]
    assert unlike["labelSelector"]["matchExpressions"] == [{"key": "tenant", "operator": "NotIn", "values": ["t"]}]


# The pods of controllers.


def of_kind(kind: str, version: str, spec: object, **metadata: object) -> Manifest:
    return manifest({"kind": kind, "apiVersion": version, "metadata": {"name": "web", **metadata}, "spec": spec})


TEMPLATE = {"metadata": {"name": "ignored", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
JOB = {"job-name": "web", "batch.kubernetes.io/job-name": "web"}


@pytest.mark.parametrize(
    ("kind", "version", "spec", "labels", "owner"),
    [
        ("Deployment", "apps/v1", {}, {"pod-template-hash": "new-revision"}, "ReplicaSet web-new-revision"),
        ("ReplicaSet", "apps/v1", {}, {}, "ReplicaSet web"),
        ("DaemonSet", "apps/v1", {}, {"controller-revision-hash": "new-revision"}, "DaemonSet web"),
        (
            "StatefulSet",
            "apps/v1",
            {"ordinals": {"start": 3}},
            {
                "statefulset.kubernetes.io/pod-name": "web-3",
                "apps.kubernetes.io/pod-index": "3",
                "controller-revision-hash": "new-revision",
            },
            "StatefulSet web",
        ),
        (
            "Job",
            "batch/v1",
            {"completionMode": "Indexed"},
            {
                **JOB,
                "controller-uid": "new-revision",
                "batch.kubernetes.io/controller-uid": "new-revision",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "Job web",
        ),
        ("Job", "batch/v1", {"manualSelector": True}, {}, "Job web"),
        ("Job", "batch.volcano.sh/v1alpha1", {}, {}, "Job web"),
        ("Rollout", "argoproj.io/v1alpha1", {}, {}, "Rollout web"),
    ],
)
def test_a_template_means_the_pod_of_its_controller(
    kind: str, version: str, spec: dict[str, object], labels: dict[str, str], owner: str
) -> None:
    found = of_kind(kind, version, {**spec, "template": TEMPLATE}, namespace="shop").pod
    assert found.labels == {"app": "web", **labels}
    assert found.name == ("web-3" if kind == "StatefulSet" else "web-0")
    assert found.controller is not None
    assert f"{found.controller.kind} {found.controller.name}" == owner


@pytest.mark.parametrize(
    ("pods", "name", "which"),
    [
        ({"web-0": "n1"}, "web-1", "the first that is missing"),
        # kubernetes/kubernetes#67250: its claim is there, and no web-2 is made before it runs
        ({"web-0": "n1", "web-1": ""}, "web-1", "which waits for a node, made again"),
        ({"web-0": "n1", "web-1": "", "web-2": "n1"}, "web-1", "which waits for a node, made again"),
    ],
)
def test_the_pod_of_a_stateful_set_is_the_first_without_a_node(pods: Mapping[str, str], name: str, which: str) -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1")))
    for each, node in pods.items():
        made = make_pod(each).on(node) if node else make_pod(each).unschedulable("", "")
        mirror.apply(ClusterEvent("Add", decode_pod(made.json())))
    text = json.dumps({"kind": "StatefulSet", "metadata": {"name": "web"}, "spec": {"template": TEMPLATE}}).encode()
    found = decode_manifest(text, AtHand(mirror, lambda _: ()))
    assert found.pod.name == name
    assert f"pod {name}, {which}, with its labels" in found.notes.done


def test_a_cron_job_makes_the_pod_of_a_job() -> None:
    found = of_kind("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": TEMPLATE}}}).pod
    assert found.labels["batch.kubernetes.io/job-name"] == "web-0"
    assert found.controller is not None
    assert (found.controller.kind, found.controller.name) == ("Job", "web-0")


def test_a_job_set_makes_the_pod_of_its_first_job() -> None:
    job = {"name": "workers", "replicas": 2, "template": {"spec": {"template": TEMPLATE}}}
    found = of_kind("JobSet", "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [job, job]}).pod
    assert (
        found.labels.items()
        >= {
            "jobset.sigs.k8s.io/replicatedjob-name": "workers",
            "jobset.sigs.k8s.io/global-replicas": "4",
            "job-name": "web-workers-0",
            "batch.kubernetes.io/job-completion-index": "0",
        }.items()
    )


def test_labels_that_a_stored_job_has_stay() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"controller-uid": "u1"}}}
    assert of_kind("Job", "batch/v1", {"template": template}, uid="u1").pod.labels["controller-uid"] == "u1"


@pytest.mark.parametrize(("strategy", "gone"), [({}, 1), ({"rollingUpdate": {"maxSurge": "25%"}}, 0)])
def test_a_daemon_set_deletes_a_pod_before_it_makes_the_next_but_for_its_surge(strategy: object, gone: int) -> None:
    hand = at_hand({})
    hand.mirror.apply(ClusterEvent("Add", Node("n1", {})))
    stored = make_pod("web-x").owned_by("DaemonSet", "web", "d1").on("n1")
    hand.mirror.apply(ClusterEvent("Add", decode_pod(stored.json())))
    of = {"kind": "DaemonSet", "metadata": {"name": "web"}, "spec": {"template": TEMPLATE, "updateStrategy": strategy}}
    assert len(decode_manifest(json.dumps(of).encode(), hand).replaced) == gone


REVISION = {
    "metadata": {
        "name": "web-5f",
        "labels": {"controller-revision-hash": "5f"},
        "ownerReferences": [{"kind": "StatefulSet", "name": "web"}, {"kind": "DaemonSet", "name": "web"}],
    },
    "data": {"spec": {"template": {**TEMPLATE, "$patch": "replace"}}},
}


@pytest.mark.parametrize(
    ("kind", "image", "label"),
    [("StatefulSet", None, "web-5f"), ("DaemonSet", None, "5f"), ("DaemonSet", "other", "new-revision")],
)
def test_the_revision_is_that_of_an_equal_template(kind: str, image: str | None, label: str) -> None:
    containers = [{"name": "c", **({"image": image} if image else {})}]
    template = {**TEMPLATE, "spec": {"containers": containers}}
    of = {"kind": kind, "metadata": {"name": "web"}, "spec": {"template": template}}
    assert manifest(of, {"ControllerRevision": [REVISION]}).pod.labels["controller-revision-hash"] == label


def test_the_pod_of_a_template_has_a_name_that_no_pod_has() -> None:
    hand = at_hand({})
    hand.mirror.apply(ClusterEvent("Add", Node("n1", {})))
    for each in ({"metadata": {"name": "web-0"}, "spec": {"nodeName": "n1"}}, {"metadata": {"name": "web-1"}}):
        hand.mirror.apply(ClusterEvent("Add", decode_pod(json.dumps(each).encode())))
    of = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": TEMPLATE}}
    assert decode_manifest(json.dumps(of).encode(), hand).pod.name == "web-2"


def test_labels_of_unknown_controllers_matter_if_the_pod_has_affinity_or_spreads() -> None:
    spec = {"containers": [{"name": "c"}], "affinity": {"podAntiAffinity": {}}}
    unknown = of_kind("RayCluster", "ray.io/v1", {"head": {"template": {"spec": spec}}}).notes.unknown
    assert unknown == ["kind RayCluster: the labels that its controller adds are not known"]
    assert of_kind("RayCluster", "ray.io/v1", {"head": {"template": TEMPLATE}}).notes.unknown == []


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "DaemonSet", "StatefulSet", "CronJob", "JobSet", "Other"])
@pytest.mark.parametrize(
    "path", ["kind", "metadata", "spec", "spec.template", "spec.template.metadata", "spec.template.spec", "spec.x"]
)
def test_what_is_no_manifest_is_a_mistake_of_its_sender(path: str, kind: str) -> None:
    values: tuple[Any, ...] = (None, [], 7, "x", {"": []}, [7])
    for value in values:
        of: dict[str, Any] = {"kind": kind, "metadata": {"name": "p"}, "spec": {"template": {"spec": {}}}}
        *outer, last = path.split(".")
        inner = of
        for name in outer:
            inner = inner[name]
        inner[last] = value
        with suppress(DecodeError):  # and nothing else is raised
            assert manifest(of).pod.name
