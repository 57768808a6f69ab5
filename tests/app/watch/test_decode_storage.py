"""StorageClasses and CSINodes to the core's values."""

import json

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_storage import decode_csi_node, decode_storage_class
from core.objects.volumes import CSINode, StorageClass

ZONE_A = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}
SSD_IN_B = {"matchLabelExpressions": [{"key": "zone", "values": ["b", "c"]}, {"key": "disk", "values": ["ssd"]}]}


def storage_class(**members: object) -> StorageClass:
    return decode_storage_class(json.dumps({"metadata": {"name": "fast"}, **members}).encode())


def csi_node(*drivers: object, **metadata: object) -> CSINode:
    told = {"metadata": {"name": "n1", **metadata}, "spec": {"drivers": drivers}}
    return decode_csi_node(json.dumps(told).encode())


# StorageClasses.


def test_a_class_is_reduced_to_what_volume_binding_reads() -> None:
    told = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "uid": "u-1", "resourceVersion": "7"},
        "provisioner": "csi.example.com",
        "parameters": {"type": "ssd"},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    expected = StorageClass(
        name="fast",
        provisioner="csi.example.com",
        volume_binding_mode="WaitForFirstConsumer",
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_storage_class(json.dumps(told).encode())


@pytest.mark.parametrize("members", [{}, {"volumeBindingMode": None}], ids=["absent", "null"])
def test_a_binding_mode_that_is_not_set_is_none(members: dict[str, object]) -> None:
    assert storage_class(**members).volume_binding_mode is None


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        pytest.param([ZONE_A], {"zone": "a"}, True, id="allowed"),
        pytest.param([ZONE_A], {"zone": "b"}, False, id="another-zone"),
        pytest.param([ZONE_A], {}, False, id="no-zone"),
        pytest.param([ZONE_A, SSD_IN_B], {"zone": "c", "disk": "ssd"}, True, id="second-term"),
        pytest.param([SSD_IN_B], {"zone": "c", "disk": "hdd"}, False, id="every-expression"),
        pytest.param([{}], {"zone": "a"}, False, id="empty-term"),
        pytest.param([{"matchLabelExpressions": None}], {"zone": "a"}, False, id="null-term"),
        pytest.param([{}, ZONE_A], {"zone": "a"}, True, id="empty-term-beside-another"),
        pytest.param([{"matchLabelExpressions": [{"key": "zone"}]}], {"zone": "a"}, False, id="broken-term"),
        pytest.param([{"matchLabelExpressions": [{"values": ["a"]}]}], {"": "a"}, False, id="no-key"),
    ],
)
def test_allowed_topologies_are_ored_terms(
    terms: object,
    labels: dict[str, str],
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    topologies = storage_class(allowedTopologies=terms).allowed_topologies
    assert topologies is not None
    assert expected is topologies.matches(labels, "n1")


@pytest.mark.parametrize("terms", [None, []], ids=["null", "empty"])
def test_a_class_without_topologies_allows_every_node(terms: object) -> None:
    assert storage_class(allowedTopologies=terms).allowed_topologies is None


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({"provisioner": 1}, "provisioner: expected str | null, got int", id="provisioner"),
        pytest.param(
            {"allowedTopologies": [{"matchLabelExpressions": [{"values": "a"}]}]},
            "allowedTopologies[0].matchLabelExpressions[0].values: expected array | null, got str",
            id="topology-values",
        ),
    ],
)
def test_a_broken_class_is_refused_with_the_field(members: dict[str, object], expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        storage_class(**members)
    assert expected == str(caught.value)


# CSINodes.


def test_a_csi_node_is_reduced_to_its_limits_and_migrated_plugins() -> None:
    told = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": "n1",
            "uid": "u-1",
            "resourceVersion": "7",
            "annotations": {
                "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/cinder"
            },
        },
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "i", "allocatable": {"count": 8}}]},
    }
    expected = CSINode(
        name="n1",
        volume_limits={"csi.example.com": 8},
        migrated_plugins=frozenset({"kubernetes.io/aws-ebs", "kubernetes.io/cinder"}),
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_csi_node(json.dumps(told).encode())


def test_only_drivers_with_a_count_have_a_limit_and_zero_is_one() -> None:
    drivers = [
        {"name": "none", "allocatable": {"count": 0}},
        {"name": "unsaid"},
        {"name": "null", "allocatable": None},
        {"name": "no-count", "allocatable": {"count": None}},
    ]
    assert csi_node(*drivers).volume_limits == {"none": 0}


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"other": "a"}, {"storage.alpha.kubernetes.io/migrated-plugins": ""}],
    ids=["null", "none", "another", "empty"],
)
def test_a_node_without_the_annotation_has_migrated_nothing(annotations: object) -> None:
    assert csi_node(annotations=annotations).migrated_plugins == frozenset()


@pytest.mark.parametrize("spec", [None, {}, {"drivers": None}], ids=["null", "empty", "null-drivers"])
def test_a_csi_node_without_drivers_has_no_limits(spec: object) -> None:
    assert decode_csi_node(json.dumps({"metadata": {"name": "n1"}, "spec": spec}).encode()).volume_limits == {}


def test_a_broken_limit_is_refused_with_the_field() -> None:
    with pytest.raises(DecodeError, match=r"^spec\.drivers\[0\]\.allocatable\.count: expected int \| null, got str$"):
        csi_node({"name": "a", "allocatable": {"count": "8"}})
