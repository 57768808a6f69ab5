"""Files as people have them are read; what cannot be read says what it is; what a file lacks is not taken for empty."""

import json
from pathlib import Path

import pytest
import yaml

from app.feeds.dump_text import SnapshotError, read_dump, refuse_foreign
from app.objects.resources import DUMP_COMMAND, RESOURCES, dump_command
from core.events import Kind
from core.objects.devices import DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.groups import SchedulingGroup
from core.objects.kinds import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.app.feeds.dumps import as_json, kinded, listed, load
from tests.app.objects.full_objects import FULL_OBJECTS
from tests.app.questions import ZONE, mirror_of, state
from tests.builders import NamespaceBuilder, NodeBuilder, Object, PodBuilder, make_namespace, make_node, make_pod

DATA = Path(__file__).parent / "data"
NODES = (make_node("n1").label(ZONE, "a"), make_node("n2").label(ZONE, "b"))
PODS = (make_pod("web").label("app", "web").on("n1"), make_pod("waiting"))
NAMESPACES = (make_namespace("default").label("kubernetes.io/metadata.name", "default"),)
ITEMS = kinded(*NODES, *PODS, *NAMESPACES)
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "==== START logs"}}


def of_kind(kind: str, *built: NodeBuilder | PodBuilder | NamespaceBuilder) -> Object:
    """Make a list of one kind as a typed client prints it: the items have no kind."""
    return {"apiVersion": "v1", "kind": f"{kind}List", "metadata": {}, "items": [each.obj() for each in built]}


# `kubectl cluster-info dump` prints logs of pods between its lists. They may end without a line feed.
LOGS = (
    b"==== START logs for container app of pod default/web ====\n"
    b'{"level":"info","msg":"listening"}\n==== START of the work ====\nno line feed'
    b"==== END logs for container app of pod default/web ====\n"
)
CLUSTER_INFO = b"".join(
    [
        as_json(of_kind("Node", *NODES)),
        as_json({"apiVersion": "v1", "kind": "EventList", "items": []}),
        as_json(of_kind("Pod", *PODS)),
        LOGS,
        as_json(of_kind("Namespace", *NAMESPACES)),
        LOGS.rstrip(),
    ]
)
FORMS = {
    "lists-of-several-commands": b"".join(as_json(listed(each)) for each in ITEMS),
    "lines-of-objects": b"\n".join(json.dumps(each).encode() for each in ITEMS),
    "lists-in-a-row": b"".join(json.dumps(listed(each)).encode() for each in ITEMS),
    "with-byte-order-mark": b"\xef\xbb\xbf" + b"".join(as_json(listed(each)) for each in ITEMS),
    "cluster-info-dump": CLUSTER_INFO,
    "list-of-lists": as_json(listed(listed(*ITEMS[:2]), of_kind("Pod", *PODS), listed(listed(ITEMS[-1])))),
    "yaml-of-several-commands": b"".join(yaml.safe_dump(listed(each)).encode() for each in ITEMS),
    "json-added-to-yaml": yaml.safe_dump(listed(*ITEMS[:-1])).encode() + as_json(listed(ITEMS[-1])),
    "windows-line-ends": yaml.safe_dump_all([listed(each) for each in ITEMS]).replace("\n", "\r\n").encode(),
    "array-of-jq": as_json(ITEMS),
    "the-same-twice": as_json(listed(*ITEMS)) + as_json(listed(*ITEMS)),
}


@pytest.mark.parametrize("text", [pytest.param(text, id=form) for form, text in FORMS.items()])
def test_files_of_several_commands_are_read_as_one_list_of_all_objects(text: bytes) -> None:
    assert state(mirror_of(*NODES, *PODS, *NAMESPACES)) == state(load(text)[0])


@pytest.mark.parametrize(
    ("text", "other_kinds"),
    [
        pytest.param(yaml.safe_dump_all([CONFIG_MAP, *ITEMS, CONFIG_MAP]).encode(), {"ConfigMap": 2}, id="documents"),
        pytest.param(as_json(listed(CONFIG_MAP, listed(*ITEMS))), {"ConfigMap": 1}, id="items"),
        pytest.param((DATA / "kwok-export.yaml").read_bytes(), {"ConfigMap": 1, "Deployment of apps/v1": 1}, id="kwok"),
        pytest.param(
            (DATA / "must-gather.yaml").read_bytes(), {"ClusterVersion of config.openshift.io/v1": 1}, id="must-gather"
        ),
    ],
)
def test_objects_of_other_kinds_are_skipped_and_counted(text: bytes, other_kinds: dict[str, int]) -> None:
    summary = load(text)[1]
    assert (summary.other_kinds, summary.taken["Node"] >= 1) == (other_kinds, True)


def test_an_export_of_the_simulator_is_the_whole_cluster_and_no_member_is_dropped() -> None:
    # kubernetes-sigs/kube-scheduler-simulator#28 and #268; a member of another version is counted by its name.
    export = json.loads((DATA / "simulator-export.json").read_bytes())
    more = {"priorityClasses": [{"metadata": {"name": "high"}}], "schedulerConfig": {"profiles": []}, "pdbs": [{}, {}]}
    mirror, summary = load(as_json(export | more))
    assert state(load((DATA / "simulator-export-as-list.json").read_bytes())[0]) == state(mirror)
    assert [*mirror.objects(StorageClass)] == ["std"]
    assert summary.other_kinds == {"PriorityClass of scheduling.k8s.io/v1": 1, "schedulerConfig": 1, "pdbs": 2}
    assert summary.lacking() == []


# An object more than once.


def versioned(version: str | None, **labels: str) -> Object:
    (node,) = kinded(make_node("n1"))
    node["metadata"] = {**node["metadata"], "labels": labels, "resourceVersion": version}
    return node


@pytest.mark.parametrize("order", [1, -1], ids=["newer-last", "newer-first"])
def test_of_an_object_that_a_folder_has_twice_the_newer_one_counts(order: int) -> None:
    # openshift/must-gather has each pod in core/pods.yaml and in a file of its own, gathered at another moment.
    both = [versioned("998", at="first"), versioned("1002", at="second")][::order]
    mirror, summary = load(as_json(listed(*both)))
    assert (dict(mirror.nodes)[0].labels, summary.taken) == ({"at": "second"}, {"Node": 1})
    assert str(summary).endswith("; 1 there more than once (the newest counts)")
    assert summary.superseded == {f"items[{0 if order == 1 else 1}]"}


@pytest.mark.parametrize("versions", [(None, None), ("7", None), (None, "7"), ("x", "y")])
def test_two_objects_of_a_name_are_refused_if_versions_do_not_tell(versions: tuple[str | None, str | None]) -> None:
    first, second = versions
    with pytest.raises(SnapshotError, match="already used by the Node"):
        load(as_json(listed(versioned(first, at="first"), versioned(second, at="second"))))


def test_a_pod_that_was_made_again_replaces_the_one_of_its_name() -> None:
    # kubernetes/kubernetes#81020: a StatefulSet's pod is deleted and made again while the dump is taken.
    (old, new) = kinded(make_pod("db-0").uid("old").on("n1"), make_pod("db-0").uid("new"))
    old["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"] = "10", "11"
    mirror, summary = load(as_json(listed(*kinded(make_node("n1")), old, new)))
    assert ([*mirror.pods.rows], [pod.uid for pod in mirror.pending]) == ([], ["new"])
    assert (summary.taken["Pod"], summary.unassigned_pods) == (1, 1)


# Labels without a value, and keys that YAML takes for other things: kubernetes-sigs/yaml#47, garden-io/garden#7676.


def test_a_label_without_a_value_has_the_empty_one() -> None:
    mirror, _ = load((DATA / "label-without-a-value.yaml").read_bytes())
    assert dict(mirror.nodes)[0].labels["node-role.kubernetes.io/worker"] == ""
    (waiting,) = mirror.pending
    assert waiting.node_affinity.selector.matches(dict(mirror.nodes)[0].labels)


def test_keys_of_yaml_are_the_texts_that_kubernetes_makes_of_them() -> None:
    mirror, _ = load((DATA / "yes-key.yaml").read_bytes())
    assert dict(mirror.nodes)[0].labels == {"true": "1", "1.1": "legacy"}


# What cannot be read.

INSTEAD = f"; a dump is what `{DUMP_COMMAND}` prints"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            b"NAME       STATUS   ROLES    AGE\nnode-a   Ready    <none>   3d\n",
            "this is the table that kubectl prints; add -o json",
            id="table",  # radondb/radondb-mysql-kubernetes#524
        ),
        pytest.param(
            b"NAMESPACE     NAME   READY\nkube-system   coredns   1/1\n",
            "this is the table that kubectl prints; add -o json",
            id="table-of-all-namespaces",
        ),
        pytest.param(
            b"Name:         drupal-649465dd9f-s9cqd\nNamespace:    default\nLabels:       app=drupal\n"
            b"              pod-template-hash=649465dd9f\n",
            "this is what `kubectl describe` prints; use `kubectl get -o json`",
            id="described",  # IBM/drupal-on-kubernetes-sample#25
        ),
        pytest.param(
            b"<!DOCTYPE html>\n<html><head>", "this is a page of HTML or XML, such as that of a proxy or of a login",
            id="html",
        ),
        pytest.param(
            b'error: the server doesn\'t have a resource type "pzoo-0"\n',
            "this is a message of kubectl: error: the server doesn't have a resource type \"pzoo-0\"",
            id="message",  # Yolean/kubernetes-kafka#213
        ),
        pytest.param(
            b"Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout\n",
            "this is a message of kubectl: Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
            id="connection",
        ),
        pytest.param(b"I0726 10:00:00.1 1 schedule_one.go:86] pod\n", "this is a log", id="log"),
        pytest.param(b"2022-06-13T03:49:59Z INFO starting\n", "this is a log", id="log-with-times"),
        pytest.param(b"PK\x03\x04rest", "this is an archive; unpack it, and give the folder", id="zip"),
        pytest.param(b"./a" + b" " * 254 + b"ustar", "this is an archive; unpack it, and give the folder", id="tar"),
        pytest.param(b"k8s\x00\n\x09\n\x02v1", "this is an object in protobuf, as etcd has it", id="protobuf"),
        pytest.param(
            b'{"NodeList":[],"UnscheduledPodsCanBeScheduled":[]}',  # /snapshotz of Cluster Autoscaler
            f"kind: required, found NodeList, UnscheduledPodsCanBeScheduled{INSTEAD}",
            id="another-format",
        ),
        pytest.param(b'{"kind":"List"}{"a":', "document 2 malformed JSON: input data was truncated", id="cut"),
        pytest.param(
            b'{"kind":"List"}\nError from server (Forbidden): nodes is forbidden\n',
            "document 2 this is a message of kubectl: Error from server (Forbidden): nodes is forbidden",
            id="message-after-objects",
        ),
        pytest.param(b'{"nodes":{},"pods":[]}', "nodes: expected array | null, got object", id="member-of-an-export"),
        pytest.param(
            as_json(listed(listed(listed(listed(listed()))))), "items: lists more than 4 levels deep", id="lists"
        ),
        pytest.param(
            b"a: 1\nb:\n  ~: x\n", "YAML that has no JSON form: line 3: a key that is null, not a text", id="null-key"
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_it_is(text: bytes, expected: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        read_dump(text)
    assert expected == str(caught.value)


def test_what_cannot_be_read_is_named_by_file_document_and_key() -> None:
    with pytest.raises(SnapshotError, match=r"^core/pods\.yaml: document 2 kind: required, found a$"):
        read_dump(b"kind: List\nitems: []\n---\na: 1\n", "core/pods.yaml")
    dump = read_dump(as_json(of_kind("Pod", *PODS)), "core/pods.json")
    assert [item.place for item in dump.items] == ["core/pods.json: items[0]", "core/pods.json: items[1]"]


def test_a_manifest_is_no_dump() -> None:
    dump = read_dump(yaml.safe_dump_all([CONFIG_MAP, {"kind": "Deployment", "apiVersion": "apps/v1"}]).encode())
    with pytest.raises(SnapshotError, match=r"^no object that a rule reads, but ConfigMap, Deployment of apps/v1; "):
        refuse_foreign(dump)
    refuse_foreign(read_dump(as_json(listed(CONFIG_MAP, *ITEMS))))


# What a dump lacks.

ABSENT = {PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, CSIStorageCapacity}
ABSENT |= {
    VolumeAttachment,
    Service,
    PodDisruptionBudget,
    ReplicaSet,
    StatefulSet,
    ReplicationController,
    SchedulingGroup,
    ResourceSlice,
    ResourceClaim,
    DeviceTaintRule,
}


def with_kinds(*kinds: Kind) -> bytes:
    objects = [
        {"apiVersion": RESOURCES[kind].api_version, "kind": RESOURCES[kind].api_kind, **FULL_OBJECTS[kind]}
        for kind in kinds
    ]
    return as_json(listed(*ITEMS, *objects))


@pytest.mark.parametrize(
    ("kinds", "known"),
    [
        ((), set()),
        ((PersistentVolumeClaim,), {PersistentVolumeClaim}),
        ((CSINode,), {CSINode, CSIDriver, CSIStorageCapacity, VolumeAttachment}),
        ((CSIDriver,), {CSIDriver, CSIStorageCapacity}),
        ((ReplicaSet,), {ReplicaSet, StatefulSet, ReplicationController}),
        ((StatefulSet,), {StatefulSet}),
        ((DeviceClass,), set()),
        ((DeviceClass, ResourceClaim), {ResourceClaim, ResourceSlice}),
    ],
    ids=[
        "none",
        "claims",
        "csi-nodes",
        "csi-drivers",
        "replica-sets",
        "stateful-sets",
        "classes",
        "devices",
    ],
)
def test_a_kind_without_an_object_is_unknown_unless_the_dump_has_the_kind_beside_it(
    kinds: tuple[Kind, ...], known: set[Kind]
) -> None:
    assert {*load(with_kinds(*kinds))[1].lacking()} == ABSENT - known


def test_a_dump_with_devices_lacks_classes_if_it_has_none() -> None:
    assert DeviceClass in load(with_kinds(ResourceSlice))[1].lacking()
    assert DeviceClass not in load(with_kinds(ResourceSlice, DeviceClass))[1].lacking()


@pytest.mark.parametrize("items", [[], None], ids=["empty", "null"])
def test_an_empty_list_of_a_kind_says_that_there_are_none(items: object) -> None:
    claims = {"apiVersion": "v1", "kind": "PersistentVolumeClaimList", "items": items}
    assert PersistentVolumeClaim not in load(as_json(listed(*ITEMS)) + as_json(claims))[1].lacking()
    assert PersistentVolumeClaim in load(as_json(listed(*ITEMS)) + as_json(listed()))[1].lacking()


def test_namespaces_of_pods_exist_with_their_names() -> None:
    pods = kinded(make_pod("a").in_namespace("shop").on("n1"), make_pod("b").in_namespace("data"))
    mirror, summary = load(as_json(listed(*ITEMS, *pods)))
    assert Namespace in summary.lacking()
    assert dict(mirror.namespaces) == {
        name: {"kubernetes.io/metadata.name": name} for name in ("default", "shop", "data")
    }
    assert (summary.taken["Namespace"], Namespace in load(as_json(listed(*ITEMS)))[1].lacking()) == (1, False)


def test_the_command_asks_for_every_kind_that_the_servers_of_all_releases_have() -> None:
    requested = DUMP_COMMAND.removeprefix("kubectl get -A -o json ").split(",")
    short = {resource.short or resource.plural for resource in RESOURCES.values() if not resource.optional}
    devices = {"deviceclasses", "resourceslices", "resourceclaims"}
    assert {*requested} == short | devices | {
        "pc",
        "runtimeclasses",
        "limits",
        "controllerrevisions",
        "resourceclaimtemplates",
    }
    assert dump_command([Node, Pod, CSINode]) == "kubectl get -A -o json no,po,csinodes"
