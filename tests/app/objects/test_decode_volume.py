"""Persistent volumes and claims to the core's values."""

import json

import pytest

from app.objects.decode_storage import decode_persistent_volume, decode_persistent_volume_claim
from core.objects.affinity import NodeSelector, parse_node_selector
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from core.objects.volumes import ClaimRef, PersistentVolume, PersistentVolumeClaim, VolumeSource
from tests.builders import Object, expressed, labelled

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def volume(spec: object = None, **metadata: object) -> PersistentVolume:
    return decode_persistent_volume(json.dumps({"metadata": {"name": "pv", **metadata}, "spec": spec}).encode())


def claim(spec: object = None, **metadata: object) -> PersistentVolumeClaim:
    return decode_persistent_volume_claim(json.dumps({"metadata": {"name": "c", **metadata}, "spec": spec}).encode())


def test_a_volume_and_a_claim_of_which_nothing_is_said() -> None:
    assert PersistentVolume(name="pv") == volume()
    assert PersistentVolumeClaim(namespace="default", name="c") == claim()


# What a volume is backed by.


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"csi": {"driver": "d", "volumeHandle": "h"}}, VolumeSource("d", "h"), id="csi"),
        pytest.param({"csi": {}}, VolumeSource("", ""), id="csi-of-nothing"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1", "fsType": "ext4"}},
            VolumeSource("kubernetes.io/aws-ebs", "aws://a/vol-1", in_tree=True),
            id="ebs",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}}, VolumeSource("kubernetes.io/gce-pd", "d", in_tree=True), id="gce"
        ),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "/u"}},
            VolumeSource("kubernetes.io/azure-disk", "/u", in_tree=True),
            id="azure-disk",
        ),
        pytest.param(
            {"cinder": {"volumeID": "c"}}, VolumeSource("kubernetes.io/cinder", "c", in_tree=True), id="cinder"
        ),
        pytest.param(
            {"portworxVolume": {"volumeID": "p"}},
            VolumeSource("kubernetes.io/portworx-volume", "p", in_tree=True),
            id="portworx",
        ),
        pytest.param(
            {"cinder": {"volumeID": None}}, VolumeSource("kubernetes.io/cinder", "", in_tree=True), id="null-id"
        ),
        pytest.param({"cinder": None, "csi": None}, None, id="nulls"),
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
    ("spec", "expected"),
    [
        pytest.param({}, "Filesystem", id="absent"),
        pytest.param({"volumeMode": None}, "Filesystem", id="null"),
        pytest.param({"volumeMode": "Block"}, "Block", id="block"),
        pytest.param({"volumeMode": ""}, "", id="empty-is-a-mode-of-its-own"),
    ],
)
def test_the_mode_is_filesystem_unless_said(spec: object, expected: str) -> None:
    assert (expected, expected) == (volume(spec).volume_mode, claim(spec).volume_mode)


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        pytest.param({"storage": "10Gi"}, 10 * 2**30, id="binary"),
        pytest.param({"storage": 5, "cpu": "1"}, 5, id="number"),
        pytest.param({"storage": "1500m"}, 2, id="rounded-up"),
        pytest.param({"storage": "0"}, 0, id="zero"),
        pytest.param({"cpu": "1"}, None, id="something-else"),
        pytest.param({}, None, id="empty"),
        pytest.param(None, None, id="null"),
    ],
)
def test_sizes_are_in_bytes(amounts: object, expected: int | None) -> None:
    assert (expected or 0) == volume({"capacity": amounts}).capacity
    assert expected == claim({"resources": {"requests": amounts}}).requested


def test_annotations_count_when_they_are_there_even_empty() -> None:
    told = claim(annotations={"pv.kubernetes.io/bind-completed": "", "volume.kubernetes.io/selected-node": ""})
    assert (told.bind_completed, told.selected_node) == (True, "")


@pytest.mark.parametrize("annotations", [None, {}, {"other": "x"}], ids=["null", "none", "another"])
def test_a_claim_without_annotations_is_not_bound_and_for_no_node(annotations: object) -> None:
    told = claim(annotations=annotations)
    assert (told.bind_completed, told.selected_node) == (False, None)


@pytest.mark.parametrize("stamp", [None, "2026-01-01T00:00:00Z"], ids=["living", "deleting"])
def test_a_deletion_timestamp_means_deleting(stamp: str | None) -> None:
    assert volume(deletionTimestamp=stamp).deleting is (stamp is not None)
    assert claim(deletionTimestamp=stamp).deleting is (stamp is not None)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({"namespace": "shop", "name": "data"}, ClaimRef("shop", "data"), id="reserved"),
        pytest.param({"namespace": "shop", "name": "data", "uid": "u"}, ClaimRef("shop", "data", "u"), id="bound"),
        pytest.param({}, ClaimRef("", ""), id="empty-is-taken"),
    ],
)
def test_the_claim_of_a_volume(reference: object, expected: ClaimRef | None) -> None:
    assert expected == volume({"claimRef": reference}).claim


# Which nodes and which volumes.


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, None, id="null"),
        pytest.param({}, None, id="empty"),
        pytest.param({"required": None}, None, id="null-required"),
        pytest.param({"required": {}}, NodeSelector(), id="without-terms-no-node"),
        pytest.param({"required": {"nodeSelectorTerms": None}}, NodeSelector(), id="null-terms-no-node"),
        pytest.param({"required": {"nodeSelectorTerms": [{}]}}, NodeSelector(), id="empty-term-no-node"),
        pytest.param(
            {"required": {"nodeSelectorTerms": [expressed("zone", "In", "a"), expressed("cores", "Gt", "4")]}},
            parse_node_selector([([("zone", "In", ["a"])], ()), ([("cores", "Gt", ["4"])], ())]),
            id="terms",
        ),
    ],
)
def test_the_nodes_that_can_reach_a_volume(affinity: object, expected: NodeSelector | None) -> None:
    assert expected == volume({"nodeAffinity": affinity}).node_affinity


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
    [
        pytest.param(None, EVERYTHING, id="null-restricts-nothing"),
        pytest.param({}, EVERYTHING, id="empty"),
        pytest.param(labelled(app="db"), Selector((Requirement("app", Operator.IN, ("db",)),)), id="labels"),
    ],
)
def test_the_volumes_that_a_claim_may_take(selector: Object | None, expected: Selector) -> None:
    told = claim({"selector": selector})
    assert (expected, "") == (told.selector, told.selector_error)


def test_a_broken_selector_is_told_and_takes_no_volume() -> None:
    told = claim({"selector": expressed("app", "Near")})
    assert (told.selector, told.selector_error) == (NOTHING, '"Near" is not a valid label selector operator')
