"""A dump in every form that kubectl prints is the same mirror; what is broken is named, and refused or left out."""

import json

import pytest
import yaml

from app.feeds.dump_text import SnapshotError, read_dump
from app.objects.resources import DUMP_COMMAND, RESOURCES
from core.events import Kind
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from core.objects.kinds import Namespace, PodDisruptionBudget, ReplicaSet, Service
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import CSINode
from tests.app.feeds.dumps import as_json, kinded, listed, load
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.app.questions import NEAR_WEB, ZONE, mirror_of, state
from tests.builders import REQUIRED, Object, expressed, make_namespace, make_node, make_pod, term
from tests.core.mirror.audit import owner_counts

INSTEAD = f"; a dump is what `{DUMP_COMMAND}` prints"
NODES = (make_node("n1").label(ZONE, "a"), make_node("n2").label(ZONE, "b"))
PODS = (make_pod("web").label("app", "web").on("n1"), make_pod("api").on("n2").required_anti_affinity(NEAR_WEB))
NAMESPACES = (make_namespace("default").label("team", "shop"),)
ITEMS = kinded(*NODES, *PODS, *NAMESPACES)


def without_kinds(objects: list[Object]) -> list[Object]:
    return [{key: value for key, value in each.items() if key not in {"kind", "apiVersion"}} for each in objects]


def separate_lists() -> list[Object]:
    return [
        listed(*without_kinds(kinded(*NODES)), kind="NodeList"),
        listed(*without_kinds(kinded(*PODS)), kind="PodList"),
        listed(*without_kinds(kinded(*NAMESPACES)), kind="NamespaceList"),
    ]


FORMS = {
    "json-list": as_json(listed(*ITEMS)),
    "json-in-one-line": json.dumps(listed(*ITEMS)).encode(),
    "json-after-blank-lines": b"\n \t\n" + as_json(listed(*ITEMS)),
    "json-with-byte-order-mark": b"\xef\xbb\xbf" + as_json(listed(*ITEMS)),
    "json-in-utf-16": as_json(listed(*ITEMS)).decode().encode("utf-16"),
    "yaml-list": yaml.safe_dump(listed(*ITEMS)).encode(),
    "yaml-list-after-a-marker": b"---\n" + yaml.safe_dump(listed(*ITEMS)).encode(),
    "yaml-documents": yaml.safe_dump_all(ITEMS).encode(),
    "yaml-documents-with-empty-ones": b"---\n---\n# nothing\n---\n" + yaml.safe_dump_all(ITEMS).encode() + b"---\n",
    "yaml-documents-of-lists": yaml.safe_dump_all([listed(*ITEMS[:2]), listed(*ITEMS[2:])]).encode(),
    "yaml-lists-of-one-kind-without-item-kinds": yaml.safe_dump_all(separate_lists()).encode(),
    "yaml-with-json-documents": b"".join(b"---\n" + as_json(item) for item in ITEMS),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=form) for form, text in FORMS.items()])
def test_every_form_of_a_dump_is_the_same_mirror(text: bytes) -> None:
    mirror, summary = load(text)
    assert state(mirror_of(*NODES, *PODS, *NAMESPACES)) == state(mirror)
    assert str(summary) == "2 nodes, 2 pods, 1 namespaces"


def test_a_single_object_is_a_dump() -> None:
    mirror, summary = load(as_json(kinded(*NODES)[0]))
    assert list(mirror.nodes.slots) == ["n1"]
    assert str(summary) == "1 nodes, 0 pods, 0 namespaces"


def test_an_empty_list_is_an_empty_mirror() -> None:
    mirror, summary = load(as_json(listed()))
    assert state(ClusterMirror()) == state(mirror)
    assert str(summary) == "0 nodes, 0 pods, 0 namespaces"


OTHERS = [kind for kind in RESOURCES if kind not in (Node, Pod, Namespace)]
each_other_kind = pytest.mark.parametrize("kind", OTHERS, ids=lambda kind: kind.__name__)


def stated(kind: Kind) -> Object:
    """Make an object as kubectl prints it."""
    return {"apiVersion": RESOURCES[kind].api_version, "kind": RESOURCES[kind].api_kind, **FULL_OBJECTS[kind]}


@each_other_kind
@pytest.mark.parametrize("form", ["item", "list-of-the-kind", "document"])
def test_every_kind_that_can_be_followed_can_be_in_a_dump(kind: Kind, form: str) -> None:
    resource = RESOURCES[kind]
    alone = listed(FULL_OBJECTS[kind], kind=f"{resource.api_kind}List")
    listed_alone = {**alone, "apiVersion": resource.api_version}
    texts = {
        "item": as_json(listed(*ITEMS, stated(kind))),
        "list-of-the-kind": yaml.safe_dump_all([listed(*ITEMS), listed_alone]).encode(),
        "document": yaml.safe_dump_all([*ITEMS, stated(kind)]).encode(),
    }
    mirror, summary = load(texts[form])
    expected = resource.decode(json.dumps(FULL_OBJECTS[kind]).encode())
    assert list(mirror.objects(kind).values()) == [expected]
    assert str(summary) == f"2 nodes, 2 pods, 1 namespaces, 1 {resource.name}"


def test_all_kinds_are_counted_in_one_line() -> None:
    pending = {**stated(Pod), "spec": {}}
    _, summary = load(as_json(listed(*[stated(kind) for kind in OTHERS], *kinded(*NODES), pending, {"kind": "Widget"})))
    assert str(summary) == (
        "2 nodes, 1 pods, 0 namespaces, 1 persistentvolumes, 1 persistentvolumeclaims, 1 storageclasses, 1 csinodes, "
        "1 csidrivers, 1 csistoragecapacities, 1 volumeattachments, 1 services, 1 poddisruptionbudgets, 1 replicasets, "
        "1 statefulsets, 1 replicationcontrollers, 1 deviceclasses, 1 resourceslices, 1 resourceclaims, "
        "1 devicetaintrules, 1 podgroups, 1 podgroups.scheduling.k8s.io (1 pods pending or ended: not counted); "
        "skipped: 1 Widget"
    )


def test_an_older_version_of_a_scheduling_group_is_read() -> None:
    older = {**stated(SchedulingGroup), "apiVersion": "scheduling.k8s.io/v1alpha2"}
    assert list(load(as_json(listed(older)))[0].objects(SchedulingGroup)) == ["shop/train"]


@pytest.mark.parametrize("kind", [kind for kind in OTHERS if not RESOURCES[kind].kind_name])
def test_an_object_that_does_not_say_its_api_is_taken_for_the_kind_that_is_known(kind: Kind) -> None:
    assert load(as_json(listed({**stated(kind), "apiVersion": None})))[1].taken == {kind.__name__: 1}


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        (PodDisruptionBudget, "policy/v1beta1"),
        (Service, "serving.knative.dev/v1"),
        (ReplicaSet, "extensions/v1beta1"),
        (CSINode, "storage.k8s.io/v1beta1"),
    ],
    ids=["older", "another-group", "former-group", "beta"],
)
def test_a_kind_of_another_api_version_is_passed_over(kind: Kind, api_version: str) -> None:
    summary = load(as_json(listed({**stated(kind), "apiVersion": api_version})))[1]
    assert summary.other_kinds == {f"{kind.__name__} of {api_version}": 1}


def test_other_kinds_are_passed_over_and_named_and_not_looked_into() -> None:
    others = [
        {"kind": kind, "metadata": 7, "spec": "broken"}
        for kind in ("Deployment", "ConfigMap", "Deployment", "NodeMetrics")
    ]
    mirror, summary = load(as_json(listed(*others, *ITEMS)))
    assert summary.other_kinds == {"Deployment": 2, "ConfigMap": 1, "NodeMetrics": 1}
    assert str(summary) == "2 nodes, 2 pods, 1 namespaces; skipped: 1 ConfigMap, 2 Deployment, 1 NodeMetrics"
    assert list(mirror.nodes.slots) == ["n1", "n2"]
    assert load(as_json(listed({"metadata": {"name": "web"}}, kind="DeploymentList")))[1].other_kinds == {
        "Deployment": 1
    }


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param({"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n9"}}, id="its-node"),
        pytest.param(
            listed({"metadata": {"name": "n9"}}, kind="NodeList") | {"apiVersion": "longhorn.io/v1beta2"}, id="its-list"
        ),
    ],
)
def test_a_node_of_another_api_is_not_a_node_of_the_cluster(foreign: Object) -> None:
    dump = yaml.safe_dump_all([listed(*ITEMS), foreign if "items" in foreign else listed(foreign)]).encode()
    mirror, summary = load(dump)
    assert list(mirror.nodes.slots) == ["n1", "n2"]
    assert str(summary) == "2 nodes, 2 pods, 1 namespaces; skipped: 1 Node of longhorn.io/v1beta2"


def test_pending_and_finished_pods_are_taken_and_do_not_count() -> None:
    pods = (
        make_pod("placed").on("n1"),
        make_pod("terminating").on("n1").terminating(),
        make_pod("pending"),
        make_pod("succeeded").on("n1").phase("Succeeded"),
        make_pod("failed").on("n1").phase("Failed"),
    )
    mirror, summary = load(as_json(listed(*kinded(make_node("n1"), *pods))))
    assert sorted(mirror.pods.rows) == ["default/placed", "default/terminating"]
    assert summary.unassigned_pods == 3
    assert str(summary) == "1 nodes, 5 pods, 0 namespaces (3 pods pending or ended: not counted)"


def test_pending_pods_keep_their_nominations() -> None:
    pods = (make_pod("pending"), make_pod("next").nominated("n1"), make_pod("done").nominated("n1").phase("Failed"))
    mirror, summary = load(as_json(listed(*kinded(make_node("n1"), *pods))))
    assert sorted(pod.name for pod in mirror.pending) == ["next", "pending"]
    assert [*mirror.pending.nominated_for("n1")] == ["default/next"]
    assert str(summary) == ("1 nodes, 3 pods, 0 namespaces (3 pods pending or ended: not counted but for 1 nominated)")


def test_a_pod_on_a_node_that_the_dump_lacks_is_held() -> None:
    mirror, summary = load(as_json(listed(*kinded(make_pod("early").on("late")))))
    assert list(mirror.pods.rows) == ["default/early"]
    assert summary.unassigned_pods == 0


# YAML as Kubernetes reads it.


def test_a_label_that_looks_like_a_day_stays_text() -> None:
    text = b"kind: Node\nmetadata:\n  name: n1\n  labels:\n    release: 2026-01-01\n"
    assert dict(load(text)[0].nodes)[0].labels == {"release": "2026-01-01"}


def test_a_label_that_yaml_takes_for_a_number_is_refused_as_kubernetes_does() -> None:
    with pytest.raises(
        SnapshotError, match=r"^the object \(Node n1\): metadata\.labels\[release\]: expected str \| null, got int$"
    ):
        load(b"kind: Node\nmetadata: {name: n1, labels: {release: 7}}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"kind":"List","items":[', "malformed JSON: input data was truncated", id="truncated"),
        pytest.param(b"just text", "expected object | array, got str", id="text"),
        pytest.param(b'{"kind":3}', f"kind: expected str | null, got int{INSTEAD}", id="kind-number"),
        pytest.param(b'{"kind":"List","items":{}}', "items: expected array | null, got object", id="items-object"),
        pytest.param(b'{"items":' + b"[" * 100_000, "malformed JSON: nested too deeply", id="deep"),
        pytest.param(
            b"a: 1\n---\nkind: List\nitems: 3\n",
            f"document 1 kind: required, found a{INSTEAD}",
            id="first-of-two-documents",
        ),
        pytest.param(
            b"kind: List\nitems: []\n---\nkind: List\nitems: 3\n",
            "document 2 items: expected array | null, got int",
            id="second-document",
        ),
        pytest.param(
            b'{"kind":"Status","message":"pods is forbidden"}', "an error of the API server: pods is forbidden"
        ),
        pytest.param(b'{"kind":"Table","rows":[]}', f"kind: a Table has rows instead of objects{INSTEAD}"),
    ],
)
def test_what_is_no_dump_is_refused_with_the_field(text: bytes, expected: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        read_dump(text)
    assert expected == str(caught.value)


def test_the_versions_of_kubelets_are_told_as_far_as_they_can_be_read() -> None:
    nodes = kinded(*(make_node(f"n{number}") for number in range(5)))
    for node, version in zip(nodes, ("v1.36.1", "v1.35.2", "v1.36.1", 1.36, ""), strict=True):
        node["status"] = {"nodeInfo": {"kubeletVersion": version}}
    _, summary = load(as_json(listed(*nodes, *kinded(make_node("n5")))))
    assert summary.kubelet_versions == {"v1.36.1", "v1.35.2"}


# What is broken.


NEAR = term(ZONE, expressed("app", "Near"))
BROKEN_TERM = (
    f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: "
    '"Near" is not a valid label selector operator'
)
GOOD = kinded(make_node("n1").label(ZONE, "a"), make_pod("web").label("app", "web").on("n1"), make_namespace("default"))


def pod(**members: object) -> Object:
    return {**kinded(make_pod("bad").in_namespace("shop"))[0], **members}


# id -> a broken object, what stands for it in the message, what is said of it

BROKEN: dict[str, tuple[object, str, str]] = {
    "null": (None, "unreadable", "expected object, got null"),
    "number": (3, "unreadable", "expected object, got int"),
    "no-kind": ({"metadata": {"name": "x", "namespace": "y"}}, "? y/x", "kind: required"),
    "kind-number": ({"kind": 3}, "unreadable", "kind: expected str | null, got int"),
    "node-without-name": ({"kind": "Node", "metadata": {}}, "Node ?", "metadata.name: required"),
    "node-without-metadata": ({"kind": "Node"}, "Node ?", "metadata.name: required"),
    "node-with-broken-labels": (
        {"kind": "Node", "metadata": {"name": "x", "labels": []}},
        "Node x",
        "metadata.labels: expected object | null, got array",
    ),
    "namespace-with-broken-label": (
        {"kind": "Namespace", "metadata": {"name": "x", "labels": {"a": 1}}},
        "Namespace x",
        "metadata.labels[a]: expected str | null, got int",
    ),
    "pod-with-broken-spec": (pod(spec=3), "Pod shop/bad", "spec: expected object | null, got int"),
    "pod-with-broken-node-name": (
        pod(spec={"nodeName": []}),
        "Pod shop/bad",
        "spec.nodeName: expected str | null, got array",
    ),
    "pod-with-broken-affinity": (
        pod(spec={"affinity": {"podAffinity": {REQUIRED: 3}}}),
        "Pod shop/bad",
        f"spec.affinity.podAffinity.{REQUIRED}: expected array | null, got int",
    ),
    "node-with-broken-quantity": (
        {"kind": "Node", "metadata": {"name": "x"}, "status": {"allocatable": {"cpu": "4K"}}},
        "Node x",
        "status.allocatable.cpu: unable to parse quantity's suffix",
    ),
    "budget-with-broken-selector-type": (
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}, "spec": {"selector": 3}},
        "PodDisruptionBudget x",
        "spec.selector: expected object | null, got int",
    ),
    "node-twice": (kinded(make_node("n1"))[0], "Node n1", "metadata.name: already used by the Node at items[0]"),
    "pod-twice": (
        kinded(make_pod("web").uid("other"))[0],
        "Pod default/web",
        "metadata.name: already used by the Pod at items[1]",
    ),
    "uid-twice": (
        kinded(make_pod("other").uid("default/web"))[0],
        "Pod default/other",
        "metadata.uid: already used by the Pod at items[1]",
    ),
    "namespace-twice": (
        kinded(make_namespace("default").label("team", "shop"))[0],
        "Namespace default",
        "metadata.name: already used by the Namespace at items[2]",
    ),
}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}


@pytest.mark.parametrize(
    ("broken", "identity", "problem"), [pytest.param(*case, id=name) for name, case in BROKEN.items()]
)
def test_a_broken_object_is_refused_with_its_place_its_name_and_the_field_or_left_out_and_counted(
    broken: object, identity: str, problem: str
) -> None:
    with pytest.raises(SnapshotError) as caught:
        load(as_json(listed(*GOOD, broken)))
    assert f"items[3] ({identity}): {problem}" == str(caught.value)
    last = kinded(make_node("n2"))
    mirror, summary = load(as_json(listed(*GOOD, broken, *last, {"kind": "Node"})), skip_invalid=True)
    assert state(load(as_json(listed(*GOOD, *last)), skip_invalid=True)[0]) == state(mirror)
    assert summary.invalid == [f"items[3] ({identity}): {problem}", "items[5] (Node ?): metadata.name: required"]
    assert str(summary) == "2 nodes, 1 pods, 1 namespaces; invalid: 2"


def test_another_object_of_a_name_is_refused_if_no_version_tells_which_is_newer() -> None:
    with pytest.raises(
        SnapshotError, match=r"^items\[1\] \(Service shop/web\): metadata\.name: already used by the Service"
    ):
        load(as_json(listed(SERVICE, {**SERVICE, "spec": {"selector": {"app": "web"}}})))
    elsewhere = {**SERVICE, "metadata": {"name": "web", "namespace": "other"}}
    assert load(as_json(listed(SERVICE, elsewhere)))[1].taken == {"Service": 2}


def test_the_document_of_a_broken_object_is_named_where_there_are_several() -> None:
    text = b"---\n".join(as_json(listed(*items)) for items in (GOOD, [kinded(make_node("n2"))[0], {"kind": "Node"}]))
    with pytest.raises(SnapshotError, match=r"^document 2 items\[1\] \(Node \?\): metadata\.name: required$"):
        load(b"---\n" + text)
    with pytest.raises(SnapshotError, match=r"^document 2 \(Pod \?\): metadata\.name: required$"):
        load(b"kind: Node\nmetadata: {name: n1}\n---\nkind: Pod\n")


def test_an_item_of_a_pod_list_that_says_another_kind_is_refused() -> None:
    with pytest.raises(SnapshotError, match=r"^items\[0\] \(Pod n1\): kind: expected Pod, got Node$"):
        load(as_json(listed(*kinded(make_node("n1")), kind="PodList")))


def test_an_object_is_not_the_repetition_of_one_that_was_left_out() -> None:
    twin = make_pod("api").on("n1").uid("default/web")  # the uid of `web`, so it is left out
    real = make_pod("api").on("n1").uid("real")
    mirror, summary = load(as_json(listed(*GOOD, *kinded(twin, real))), skip_invalid=True)
    assert [problem.partition(" ")[0] for problem in summary.invalid] == ["items[3]"]
    assert sorted(mirror.pods.rows) == ["default/web", "real"]


# Pods of which only terms are broken.

HALF_BROKEN = (
    make_pod("api")
    .label("app", "api")
    .on("n1")
    .required_affinity(NEAR)
    .required_affinity(NEAR_WEB)
    .required_anti_affinity(NEAR_WEB)
)


def test_a_pod_with_a_broken_term_is_refused_or_stays_without_the_broken_list() -> None:
    with pytest.raises(SnapshotError) as caught:
        load(as_json(listed(*GOOD, *kinded(HALF_BROKEN))))
    assert f"items[3] (Pod default/api): {BROKEN_TERM}" == str(caught.value)
    mirror, summary = load(as_json(listed(*GOOD, *kinded(HALF_BROKEN))), skip_invalid=True)
    assert [f"items[3] (Pod default/api): {BROKEN_TERM}"] == summary.invalid
    whole = make_pod("api").label("app", "api").on("n1").required_anti_affinity(NEAR_WEB)
    without_errors = load(as_json(listed(*GOOD, *kinded(whole))))[0]
    assert owner_counts(without_errors) == owner_counts(mirror)
    assert without_errors.pods.rows.keys() == mirror.pods.rows.keys()
