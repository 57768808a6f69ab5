"""ReplicaSets, StatefulSets and ReplicationControllers to the core's values."""

import json
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_owner import decode_replica_set, decode_replication_controller, decode_stateful_set
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from core.objects.owner import ControllerRef, ReplicaSet, ReplicationController, StatefulSet
from tests.builders import Object, expressed, labelled

Owner: TypeAlias = ReplicaSet | StatefulSet | ReplicationController
Decoder: TypeAlias = Callable[[bytes], Owner]

METADATA: Final = {
    "name": "web-abc",
    "namespace": "shop",
    "uid": "u-1",
    "resourceVersion": "7",
    "labels": {"app": "web", "pod-template-hash": "abc"},
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}],
}
WEB: Final = Selector((Requirement("app", Operator.IN, ("web",)),))

decoders = {
    "ReplicaSet": decode_replica_set,
    "StatefulSet": decode_stateful_set,
    "ReplicationController": decode_replication_controller,
}
each_kind = pytest.mark.parametrize(
    ("kind", "decode"), [pytest.param(kind, decode, id=kind) for kind, decode in decoders.items()]
)
each_set = pytest.mark.parametrize(
    "decode", [decode_replica_set, decode_stateful_set], ids=["ReplicaSet", "StatefulSet"]
)


def encoded(spec: object, **members: object) -> bytes:
    return json.dumps({"metadata": METADATA, "spec": spec, **members}).encode()


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"apiVersion": "apps/v1", "kind": "ReplicaSet", "status": {"replicas": 3}}, id="whole"),
        pytest.param({}, id="item-of-a-list"),
    ],
)
def test_a_replica_set_is_reduced_to_metadata_and_selector(told: Object) -> None:
    expected = ReplicaSet(
        namespace="shop",
        name="web-abc",
        labels={"app": "web", "pod-template-hash": "abc"},
        controller=ControllerRef("Deployment", "web", "d", "apps/v1"),
        selector=WEB,
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_replica_set(encoded({"replicas": 3, "selector": labelled(app="web")}, **told))


def test_a_stateful_set_is_reduced_to_its_selector() -> None:
    told = encoded({"selector": labelled(app="web")}, apiVersion="apps/v1", kind="StatefulSet")
    assert StatefulSet("shop", "web-abc", WEB, "u-1", "7") == decode_stateful_set(told)


def test_a_replication_controller_is_reduced_to_its_selector() -> None:
    told = encoded({"selector": {"app": "web"}}, apiVersion="v1", kind="ReplicationController")
    assert ReplicationController("shop", "web-abc", WEB, "u-1", "7") == decode_replication_controller(told)


@each_set
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(None, NOTHING, id="no-spec"),
        pytest.param({"selector": None}, NOTHING, id="null"),
        pytest.param({"selector": {}}, EVERYTHING, id="empty"),
        pytest.param(
            {"selector": expressed("a", "Exists")}, Selector((Requirement("a", Operator.EXISTS),)), id="expression"
        ),
        # spread.go, DefaultSelector: what LabelSelectorAsSelector refuses is passed over
        pytest.param({"selector": {**labelled(app="web"), **expressed("a", "Near")}}, NOTHING, id="invalid"),
    ],
)
def test_the_selector_of_a_set_is_a_label_selector(decode: Decoder, spec: object, expected: Selector) -> None:
    assert expected == decode(encoded(spec)).selector


@pytest.mark.parametrize("spec", [None, {}, {"selector": None}, {"selector": {}}], ids=str)
def test_a_replication_controller_without_a_selector_selects_no_pod(spec: object) -> None:
    assert decode_replication_controller(encoded(spec)).selector == NOTHING


@each_kind
def test_what_is_neither_metadata_nor_selector_is_not_looked_at(kind: str, decode: Decoder) -> None:
    told = encoded({"replicas": "x", "template": 7}, kind=kind, status=[])
    assert decode(told).full_name == "shop/web-abc"


@each_kind
def test_another_kind_is_refused(kind: str, decode: Decoder) -> None:
    with pytest.raises(DecodeError, match=f"^kind: expected {kind}, got PartialObjectMetadata$"):
        decode(encoded({}, kind="PartialObjectMetadata"))


@each_kind
def test_a_selector_of_another_type_is_refused_with_the_field(kind: str, decode: Decoder) -> None:
    with pytest.raises(DecodeError, match=r"^spec\.selector: expected object \| null, got array$"):
        decode(encoded({"selector": []}, kind=kind))
