"""StorageClasses and CSINodes to the core's values."""

import json

import pytest

from app.objects.decode_storage import decode_csi_node, decode_storage_class
from core.objects.volumes import CSINode, StorageClass

ZONE_A = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}
SSD_IN_B = {"matchLabelExpressions": [{"key": "zone", "values": ["b", "c"]}, {"key": "disk", "values": ["ssd"]}]}


def storage_class(**members: object) -> StorageClass:
    return decode_storage_class(json.dumps({"metadata": {"name": "fast"}, **members}).encode())


def csi_node(*drivers: object, **metadata: object) -> CSINode:
    told = {"metadata": {"name": "n1", **metadata}, "spec": {"drivers": drivers}}
    return decode_csi_node(json.dumps(told).encode())


# StorageClasses.


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


# CSINodes.


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
