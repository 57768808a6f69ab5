"""ReplicaSets to the core's values, whole or as metadata alone."""

import json

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_owner import decode_replica_set
from core.objects.owner import ControllerRef, ReplicaSet

METADATA = {
    "name": "web-abc",
    "namespace": "shop",
    "uid": "u-1",
    "resourceVersion": "7",
    "labels": {"app": "web", "pod-template-hash": "abc"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}],
}


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 3}}, id="whole"),
        pytest.param({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}, id="metadata-alone"),
        pytest.param({}, id="item-of-a-list"),
    ],
)
def test_a_replica_set_is_read_from_its_metadata(told: dict[str, object]) -> None:
    expected = ReplicaSet(
        namespace="shop",
        name="web-abc",
        labels={"app": "web", "pod-template-hash": "abc"},
        controller=ControllerRef("Deployment", "web", "d"),
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_replica_set(json.dumps({**told, "metadata": METADATA}).encode())


def test_what_is_not_metadata_is_not_looked_at() -> None:
    assert decode_replica_set(b'{"metadata":{"name":"x"},"spec":7,"status":[]}').name == "x"


def test_another_kind_is_not_taken_for_metadata_alone() -> None:
    with pytest.raises(DecodeError, match=r"^kind: expected ReplicaSet, got PartialObjectMetadataList$"):
        decode_replica_set(b'{"kind":"PartialObjectMetadataList","metadata":{"name":"x"}}')
