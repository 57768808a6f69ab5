"""The table of what can be followed, and reading no more than who an object is."""

import json
from typing import get_args

import pytest

from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES, Resource, decode_identity
from core.events import Object
from core.objects.kinds import ReplicaSet
from core.objects.node import Node, NodeMetrics
from core.objects.pod import Pod
from tests.app.objects.full_objects import FULL_OBJECTS

each_resource = pytest.mark.parametrize(
    "resource", [pytest.param(resource, id=resource.plural) for resource in RESOURCES.values()]
)


def test_every_kind_that_the_core_knows_has_a_resource_but_the_one_that_cannot_be_watched() -> None:
    assert set(get_args(Object)) - {NodeMetrics} == set(RESOURCES)
    assert all(resource.kind is kind for kind, resource in RESOURCES.items())


@pytest.mark.parametrize(
    ("kind", "path", "api_version"),
    [
        ("Node", "/api/v1/nodes", "v1"),
        ("Pod", "/api/v1/pods", "v1"),
        ("Namespace", "/api/v1/namespaces", "v1"),
        ("PersistentVolume", "/api/v1/persistentvolumes", "v1"),
        ("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims", "v1"),
        ("Service", "/api/v1/services", "v1"),
        ("StorageClass", "/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1"),
        ("CSINode", "/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io/v1"),
        ("CSIDriver", "/apis/storage.k8s.io/v1/csidrivers", "storage.k8s.io/v1"),
        ("CSIStorageCapacity", "/apis/storage.k8s.io/v1/csistoragecapacities", "storage.k8s.io/v1"),
        ("VolumeAttachment", "/apis/storage.k8s.io/v1/volumeattachments", "storage.k8s.io/v1"),
        ("PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets", "policy/v1"),
        ("ReplicaSet", "/apis/apps/v1/replicasets", "apps/v1"),
        ("StatefulSet", "/apis/apps/v1/statefulsets", "apps/v1"),
        ("DeviceClass", "/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1"),
        ("PodGroup", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "scheduling.x-k8s.io/v1alpha1"),
        ("SchedulingGroup", "/apis/scheduling.k8s.io/v1/podgroups", "scheduling.k8s.io/v1"),
        ("ReplicationController", "/api/v1/replicationcontrollers", "v1"),
    ],
)
def test_each_resource_is_listed_where_the_api_has_it(kind: str, path: str, api_version: str) -> None:
    (resource,) = (resource for each, resource in RESOURCES.items() if each.__name__ == kind)
    assert (path, api_version) == (resource.path, resource.api_version)


def test_only_pods_that_have_not_ended_are_followed() -> None:
    assert RESOURCES[Pod].field_selector == "status.phase!=Succeeded,status.phase!=Failed"
    assert {resource.field_selector for kind, resource in RESOURCES.items() if kind is not Pod} == {""}


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(RESOURCES[Node], 'apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]', id="core"),
        pytest.param(
            RESOURCES[ReplicaSet],
            'apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list", "watch"]',
            id="group",
        ),
    ],
)
def test_the_rbac_rule_can_be_pasted_into_a_cluster_role(resource: Resource, expected: str) -> None:
    assert expected == resource.rbac_rule


# Identities.


@each_resource
def test_the_identity_is_what_the_whole_object_says(resource: Resource) -> None:
    full = FULL_OBJECTS[resource.kind]
    if hasattr(resource.kind, "namespace"):
        told = full
    else:
        told = {**full, "metadata": {key: value for key, value in full["metadata"].items() if key != "namespace"}}
    text = json.dumps(told).encode()
    decoded = resource.decode(text)
    assert (decoded.full_name, decoded.uid, decoded.resource_version) == decode_identity(text)


def test_an_identity_is_read_from_an_object_that_cannot_be_decoded() -> None:
    text = b'{"kind":7,"metadata":{"name":"p","namespace":"x","uid":"u","resourceVersion":"9","labels":3},"spec":[]}'
    with pytest.raises(DecodeError):
        RESOURCES[Pod].decode(text)
    assert decode_identity(text) == ("x/p", "u", "9")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"name": "n"}, ("n", "", ""), id="name-alone"),
        pytest.param({"name": "n", "namespace": "", "uid": None, "resourceVersion": None}, ("n", "", ""), id="nulls"),
    ],
)
def test_what_the_metadata_does_not_say_is_empty(metadata: object, expected: tuple[str, str, str]) -> None:
    assert expected == decode_identity(json.dumps({"metadata": metadata}).encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"{}", "metadata.name: required", id="no-metadata"),
        pytest.param(b'{"metadata":null}', "metadata.name: required", id="null"),
        pytest.param(b'{"metadata":{"name":""}}', "metadata.name: required", id="no-name"),
        pytest.param(b'{"metadata":{"name":7}}', "metadata.name: expected str | null, got int", id="name-number"),
        pytest.param(b"[]", "expected object, got array", id="array"),
        pytest.param(b'{"metadata":{"name":"a"', "malformed JSON: input data was truncated", id="truncated"),
    ],
)
def test_an_object_without_a_readable_name_is_refused(text: bytes, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_identity(text)
    assert expected == str(caught.value)
