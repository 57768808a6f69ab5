"""Volumes, claims, classes and CSI objects to the core's values; budgets of disruption, too."""

import json

import pytest
from msgspec.structs import replace

from app.objects.decode_node import decode_pod_disruption_budget
from app.objects.decode_storage import (
    decode_csi_driver,
    decode_csi_node,
    decode_csi_storage_capacity,
    decode_persistent_volume,
    decode_persistent_volume_claim,
    decode_storage_class,
    decode_volume_attachment,
)
from app.objects.resources import Decoder
from core.events import Object
from core.objects.affinity import NodeSelector, parse_node_selector
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, Selector, parse_selector
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)
from tests.builders import expressed, labelled

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def volume(spec: object = None, **metadata: object) -> PersistentVolume:
    return decode_persistent_volume(json.dumps({"metadata": {"name": "pv", **metadata}, "spec": spec}).encode())


def claim(spec: object = None, **metadata: object) -> PersistentVolumeClaim:
    return decode_persistent_volume_claim(json.dumps({"metadata": {"name": "c", **metadata}, "spec": spec}).encode())


def in_tree(plugin: str) -> VolumeSource:
    return VolumeSource(f"kubernetes.io/{plugin}", "i", in_tree=True)


@pytest.mark.parametrize(
    ("decode", "expected"),
    [
        (decode_persistent_volume, PersistentVolume(name="x")),
        (decode_persistent_volume_claim, PersistentVolumeClaim(namespace="default", name="x")),
        (decode_storage_class, StorageClass(name="x")),
        (decode_csi_node, CSINode(name="x")),
        (decode_csi_driver, CSIDriver(name="x")),
        (decode_volume_attachment, VolumeAttachment(name="x")),
        (decode_pod_disruption_budget, PodDisruptionBudget(namespace="default", name="x", selector=NOTHING)),
    ],
)
def test_an_object_of_which_nothing_is_said(decode: Decoder, expected: Object) -> None:
    assert decode(b'{"metadata":{"name":"x"},"spec":{}}') == expected


# What a volume is backed by.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"csi": {"driver": "d", "volumeHandle": "h"}}, VolumeSource("d", "h"), id="csi"),
        pytest.param({"csi": {}}, VolumeSource("", ""), id="csi-of-nothing"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "i"}}, in_tree("aws-ebs"), id="ebs"),
        pytest.param({"gcePersistentDisk": {"pdName": "i"}}, in_tree("gce-pd"), id="gce"),
        pytest.param({"azureDisk": {"diskName": "d", "diskURI": "i"}}, in_tree("azure-disk"), id="azure-disk"),
        pytest.param(
            {"azureDisk": {"diskURI": "i", "kind": "Shared"}},
            replace(in_tree("azure-disk"), kind="Shared"),
            id="azure-disk-of-a-kind",
        ),
        pytest.param({"cinder": {"volumeID": "i"}}, in_tree("cinder"), id="cinder"),
        pytest.param({"portworxVolume": {"volumeID": "i"}}, in_tree("portworx-volume"), id="portworx"),
        pytest.param({"nfs": {"server": "s"}}, None, id="one-that-nobody-counts"),
    ],
)
def test_the_source_of_a_volume(spec: object, expected: VolumeSource | None) -> None:
    assert expected == volume(spec).source


# Classes, modes, sizes.


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        pytest.param({"storageClassName": "a"}, {}, "a", id="field"),
        pytest.param({"storageClassName": "a"}, {BETA_CLASS: "b"}, "b", id="annotation-wins"),
        pytest.param({"storageClassName": "a"}, {BETA_CLASS: ""}, "", id="empty-annotation-wins"),
        pytest.param({}, {BETA_CLASS: "b"}, "b", id="annotation-alone"),
        pytest.param({"storageClassName": None}, None, "", id="neither"),
    ],
)
def test_the_class_of_a_volume_or_claim_is_its_annotation_or_else_its_field(
    spec: object, annotations: object, expected: str
) -> None:
    assert expected == volume(spec, annotations=annotations).storage_class
    assert expected == claim(spec, annotations=annotations).storage_class


@pytest.mark.parametrize(
    ("spec", "expected"), [({}, "Filesystem"), ({"volumeMode": "Block"}, "Block"), ({"volumeMode": ""}, "")]
)
def test_the_mode_is_filesystem_unless_said(spec: object, expected: str) -> None:
    assert (expected, expected) == (volume(spec).volume_mode, claim(spec).volume_mode)


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        pytest.param({"storage": 5, "cpu": "1"}, 5, id="number"),
        pytest.param({"storage": "1500m"}, 2, id="rounded-up"),
        pytest.param({"storage": "0"}, 0, id="zero"),
        pytest.param({"cpu": "1"}, None, id="something-else"),
    ],
)
def test_sizes_are_in_bytes(amounts: object, expected: int | None) -> None:
    assert (expected or 0) == volume({"capacity": amounts}).capacity
    assert expected == claim({"resources": {"requests": amounts}}).requested


def test_annotations_count_when_they_are_there_even_empty() -> None:
    reported = claim(annotations={"pv.kubernetes.io/bind-completed": "", "volume.kubernetes.io/selected-node": ""})
    assert (reported.bind_completed, reported.selected_node) == (True, "")


def test_a_claim_without_annotations_is_not_bound_and_for_no_node() -> None:
    reported = claim(annotations={"other": "x"})
    assert (reported.bind_completed, reported.selected_node) == (False, None)


# Which nodes and which volumes.


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, NodeSelector(), id="without-terms-no-node"),
        pytest.param({"nodeSelectorTerms": [{}]}, NodeSelector(), id="empty-term-no-node"),
        pytest.param(
            {"nodeSelectorTerms": [expressed("zone", "In", "a"), expressed("cores", "Gt", "4")]},
            parse_node_selector([([("zone", "In", ["a"])], ()), ([("cores", "Gt", ["4"])], ())]),
            id="terms",
        ),
    ],
)
def test_the_nodes_that_can_reach_a_volume(required: object, expected: NodeSelector | None) -> None:
    assert expected == volume({"nodeAffinity": {"required": required}}).node_affinity


def test_a_broken_term_of_a_node_affinity_is_kept_and_matches_nothing() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Near"}]}, expressed("zone", "In", "a")]
    affinity = volume({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}).node_affinity
    assert affinity is not None
    assert affinity.parse_error.startswith(
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near"'
    )
    assert affinity.matches({"zone": "a"})
    assert not affinity.matches({"zone": "b"})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [(None, EVERYTHING), ({}, EVERYTHING), (labelled(app="db"), parse_selector({"app": "db"}, []))],
    ids=["null-restricts-nothing", "empty", "labels"],
)
def test_the_volumes_that_a_claim_may_take(selector: object, expected: Selector) -> None:
    reported = claim({"selector": selector})
    assert (expected, "") == (reported.selector, reported.selector_error)


def test_a_broken_selector_is_told_and_takes_no_volume() -> None:
    reported = claim({"selector": expressed("app", "Near")})
    assert (reported.selector, reported.selector_error) == (NOTHING, '"Near" is not a valid label selector operator')


ZONE_A = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}
SSD_IN_B = {"matchLabelExpressions": [{"key": "zone", "values": ["b", "c"]}, {"key": "disk", "values": ["ssd"]}]}


def storage_class(**members: object) -> StorageClass:
    return decode_storage_class(json.dumps({"metadata": {"name": "fast"}, **members}).encode())


def csi_node(*drivers: object, **metadata: object) -> CSINode:
    reported = {"metadata": {"name": "n1", **metadata}, "spec": {"drivers": drivers}}
    return decode_csi_node(json.dumps(reported).encode())


# StorageClasses.


@pytest.mark.parametrize(
    ("terms", "labels", "expected"),
    [
        pytest.param([ZONE_A], {}, False, id="no-zone"),
        pytest.param([ZONE_A, SSD_IN_B], {"zone": "c", "disk": "ssd"}, True, id="second-term"),
        pytest.param([SSD_IN_B], {"zone": "c", "disk": "hdd"}, False, id="every-expression"),
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


def test_a_class_without_topologies_allows_every_node() -> None:
    assert storage_class(allowedTopologies=[]).allowed_topologies is None


# CSINodes.


def test_only_drivers_with_a_count_have_a_limit_and_zero_is_one() -> None:
    drivers = [
        {"name": "none", "allocatable": {"count": 0}},
        {"name": "unsaid"},
        {"name": "null", "allocatable": None},
        {"name": "no-count", "allocatable": {"count": None}},
    ]
    assert csi_node(*drivers).volume_limits == {"none": 0}


def test_a_node_without_the_annotation_has_migrated_nothing() -> None:
    for annotations in ({"other": "a"}, {"storage.alpha.kubernetes.io/migrated-plugins": ""}):
        assert csi_node(annotations=annotations).migrated_plugins == frozenset()


def capacity(**members: object) -> CSIStorageCapacity:
    return decode_csi_storage_capacity(json.dumps({"metadata": {"name": "c-1"}, **members}).encode())


# CSIStorageCapacities.


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, None),
        ({"capacity": 5}, 5),
        ({"capacity": "5", "maximumVolumeSize": "7"}, 7),
        ({"capacity": "5", "maximumVolumeSize": "0"}, 0),
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
