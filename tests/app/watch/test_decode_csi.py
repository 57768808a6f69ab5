"""CSIDrivers, CSIStorageCapacities and VolumeAttachments to the core's values."""

import json

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_csi import decode_csi_driver, decode_csi_storage_capacity, decode_volume_attachment
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.objects.volumes import CSIDriver, CSIStorageCapacity, VolumeAttachment
from tests.builders import expressed, labelled


def driver(spec: object) -> CSIDriver:
    return decode_csi_driver(json.dumps({"metadata": {"name": "csi.example.com"}, "spec": spec}).encode())


def capacity(**members: object) -> CSIStorageCapacity:
    return decode_csi_storage_capacity(json.dumps({"metadata": {"name": "c-1"}, **members}).encode())


def attachment(spec: object) -> VolumeAttachment:
    return decode_volume_attachment(json.dumps({"metadata": {"name": "csi-1"}, "spec": spec}).encode())


# CSIDrivers.


def test_a_driver_is_reduced_to_whether_it_publishes_capacities() -> None:
    told = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"attachRequired": True, "storageCapacity": True},
    }
    expected = CSIDriver(name="csi.example.com", storage_capacity=True, uid="u-1", resource_version="7")
    assert expected == decode_csi_driver(json.dumps(told).encode())
    assert expected.full_name == "csi.example.com"


@pytest.mark.parametrize("spec", [None, {}, {"storageCapacity": None}, {"storageCapacity": False}])
def test_a_driver_that_does_not_say_so_publishes_none(spec: object) -> None:
    assert driver(spec).storage_capacity is False


# CSIStorageCapacities.


def test_a_capacity_is_reduced_to_what_volume_binding_reads() -> None:
    told = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": "c-1", "namespace": "kube-system", "uid": "u-1", "resourceVersion": "7"},
        "storageClassName": "fast",
        "nodeTopology": labelled(zone="a"),
        "capacity": "100Gi",
        "maximumVolumeSize": "10Gi",
    }
    expected = CSIStorageCapacity(
        namespace="kube-system",
        name="c-1",
        storage_class="fast",
        topology=parse_selector({"zone": "a"}, ()),
        limit=10 * 2**30,
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_csi_storage_capacity(json.dumps(told).encode())
    assert expected.full_name == "kube-system/c-1"


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


def test_an_attachment_is_reduced_to_what_is_attached_where() -> None:
    told = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "csi-1", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        "status": {"attached": True},
    }
    expected = VolumeAttachment(
        name="csi-1", attacher="csi.example.com", node="n1", volume="pv-1", uid="u-1", resource_version="7"
    )
    assert expected == decode_volume_attachment(json.dumps(told).encode())
    assert expected.full_name == "csi-1"


@pytest.mark.parametrize("source", [None, {}, {"persistentVolumeName": None}, {"inlineVolumeSpec": {"csi": {}}}])
def test_an_attachment_of_a_volume_without_an_object_names_none(source: object) -> None:
    assert attachment({"attacher": "a", "nodeName": "n1", "source": source}).volume == ""


def test_an_attachment_without_a_spec_says_nothing() -> None:
    assert attachment(None) == VolumeAttachment(name="csi-1")


# Broken ones.


@pytest.mark.parametrize(
    ("decode", "members", "expected"),
    [
        pytest.param(
            decode_csi_driver,
            {"spec": {"storageCapacity": "yes"}},
            "spec.storageCapacity: expected bool | null, got str",
            id="driver",
        ),
        pytest.param(
            decode_csi_storage_capacity,
            {"capacity": "many"},
            "capacity: quantities must match the regular expression",
            id="capacity",
        ),
        pytest.param(
            decode_csi_storage_capacity,
            {"maximumVolumeSize": {}},
            "maximumVolumeSize: quantities must match the regular expression",
            id="maximum",
        ),
        pytest.param(
            decode_volume_attachment,
            {"spec": {"nodeName": 1}},
            "spec.nodeName: expected str | null, got int",
            id="attachment",
        ),
        pytest.param(
            decode_volume_attachment,
            {"kind": "CSIDriver"},
            "kind: expected VolumeAttachment, got CSIDriver",
            id="another-kind",
        ),
    ],
)
def test_a_broken_object_is_refused_with_the_field(decode: object, members: dict[str, object], expected: str) -> None:
    assert callable(decode)
    with pytest.raises(DecodeError) as caught:
        decode(json.dumps({"metadata": {"name": "x"}, **members}).encode())
    assert str(caught.value).startswith(expected)
