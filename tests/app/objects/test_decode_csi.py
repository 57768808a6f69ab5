"""CSIDrivers, CSIStorageCapacities and VolumeAttachments to the core's values."""

import json

import pytest

from app.objects.decode_storage import decode_csi_driver, decode_csi_storage_capacity, decode_volume_attachment
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.objects.volumes import CSIDriver, CSIStorageCapacity, VolumeAttachment
from tests.builders import expressed


def driver(spec: object) -> CSIDriver:
    return decode_csi_driver(json.dumps({"metadata": {"name": "csi.example.com"}, "spec": spec}).encode())


def capacity(**members: object) -> CSIStorageCapacity:
    return decode_csi_storage_capacity(json.dumps({"metadata": {"name": "c-1"}, **members}).encode())


def attachment(spec: object) -> VolumeAttachment:
    return decode_volume_attachment(json.dumps({"metadata": {"name": "csi-1"}, "spec": spec}).encode())


# CSIDrivers.


@pytest.mark.parametrize("spec", [None, {}, {"storageCapacity": None}, {"storageCapacity": False}])
def test_a_driver_that_does_not_say_so_publishes_none(spec: object) -> None:
    assert driver(spec).storage_capacity is False


# CSIStorageCapacities.


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param({}, None, id="neither"),
        pytest.param({"capacity": None, "maximumVolumeSize": None}, None, id="nulls"),
        pytest.param({"capacity": "5"}, 5, id="capacity"),
        pytest.param({"capacity": "5", "maximumVolumeSize": "7"}, 7, id="the-maximum-is-more-precise"),
        pytest.param({"capacity": "5", "maximumVolumeSize": "0"}, 0, id="even-if-it-is-0"),
        pytest.param({"capacity": 5}, 5, id="number"),
        pytest.param({"capacity": "1500m"}, 2, id="rounded-up"),
    ],
)
def test_the_limit_is_the_maximum_volume_size_else_the_capacity(
    members: dict[str, object], expected: int | None
) -> None:
    assert capacity(**members).limit == expected


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        pytest.param(None, NOTHING, id="null"),
        pytest.param({}, EVERYTHING, id="empty"),
        pytest.param(expressed("zone", "In", "b", "a"), parse_selector({}, [("zone", "In", ["a", "b"])]), id="in"),
        pytest.param(expressed("zone", "Near", "a"), NOTHING, id="invalid"),
    ],
)
def test_the_topology_selects_nodes_and_none_if_it_is_absent_or_invalid(topology: object, expected: Selector) -> None:
    assert capacity(nodeTopology=topology).topology == expected


# VolumeAttachments.


@pytest.mark.parametrize("source", [None, {}, {"persistentVolumeName": None}, {"inlineVolumeSpec": {"csi": {}}}])
def test_an_attachment_of_a_volume_without_an_object_names_none(source: object) -> None:
    assert attachment({"attacher": "a", "nodeName": "n1", "source": source}).volume == ""


def test_an_attachment_without_a_spec_says_nothing() -> None:
    assert attachment(None) == VolumeAttachment(name="csi-1")
