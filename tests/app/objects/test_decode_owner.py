"""ReplicaSets, StatefulSets and ReplicationControllers to the core's values."""

import json
from collections.abc import Callable
from typing import Final, TypeAlias

import pytest

from app.objects.decode_kinds import decode_replica_set, decode_replication_controller, decode_stateful_set
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from core.objects.owner import ReplicaSet, ReplicationController, StatefulSet
from tests.builders import expressed, labelled

Owner: TypeAlias = ReplicaSet | StatefulSet | ReplicationController
Decoder: TypeAlias = Callable[[bytes], Owner]

METADATA: Final = {"name": "web-abc", "namespace": "shop"}

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
