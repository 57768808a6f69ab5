"""In-tree volumes as their CSI drivers see them, after the tables of k8s.io/csi-translation-lib plugins/*_test.go."""

from collections.abc import Mapping
from typing import Final

import pytest
from msgspec.structs import replace

from core.objects.affinity import Expression, NodeSelector, parse_node_selector
from core.objects.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    CSI_DRIVERS,
    GCE_PD,
    PORTWORX,
    CSIVolume,
    TranslationError,
    is_migratable,
    translate_affinity,
    translate_inline,
    translate_volume,
)
from core.objects.node import BETA_ZONE, ZONE
from core.objects.pod import InlineDisk
from core.objects.volumes import PersistentVolume, VolumeSource

EBS_ZONE: Final = "topology.ebs.csi.aws.com/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"


def in_tree(plugin: str, volume: str) -> VolumeSource:
    return VolumeSource(plugin, volume, in_tree=True)


def volume_of(
    plugin: str, volume: str = "vol-1", affinity: NodeSelector | None = None, labels: Mapping[str, str] | None = None
) -> PersistentVolume:
    return PersistentVolume(name="pv", source=in_tree(plugin, volume), node_affinity=affinity, labels=labels or {})


def terms(*conjunctions: list[Expression]) -> NodeSelector:
    return parse_node_selector([(each, ()) for each in conjunctions])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(None, False, id="of-a-kind-that-nobody-counts"),
        pytest.param(in_tree(AWS_EBS, "v"), True, id="in-tree"),
        pytest.param(in_tree("kubernetes.io/iscsi", "v"), False, id="in-tree-without-a-driver"),
        pytest.param(VolumeSource("ebs.csi.aws.com", "v"), False, id="csi"),
        pytest.param(VolumeSource(AWS_EBS, "v"), False, id="csi-driver-of-a-plugin-s-name"),
    ],
)
def test_in_tree_sources_with_a_driver_are_migratable(
    source: VolumeSource | None,
    expected: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert expected is is_migratable(source)


# Handles.


@pytest.mark.parametrize(
    ("plugin", "volume", "expected"),
    [
        pytest.param(AWS_EBS, "vol-1", "vol-1", id="ebs"),
        pytest.param(AWS_EBS, "aws://us-1a/vol-1", "vol-1", id="ebs-url-with-a-zone"),
        pytest.param(AWS_EBS, "aws:///vol-1", "vol-1", id="ebs-url"),
        pytest.param(AWS_EBS, "anything", "anything", id="ebs-without-the-scheme-is-not-checked"),
        pytest.param(AZURE_DISK, "/subscriptions/x/d", "/subscriptions/x/d", id="azure"),
        pytest.param(CINDER, "c-1", "c-1", id="cinder"),
        pytest.param(PORTWORX, "p-1", "p-1", id="portworx"),
    ],
)
def test_a_handle_is_the_same_inline_and_behind_a_volume(plugin: str, volume: str, expected: str) -> None:
    driver = CSI_DRIVERS[plugin]
    assert translate_inline(InlineDisk("v", in_tree(plugin, volume))) == CSIVolume(driver, expected)
    assert translate_volume(volume_of(plugin, volume)) == CSIVolume(driver, expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "zones/UNSPECIFIED", id="no-zone"),
        pytest.param({ZONE: ""}, "zones/UNSPECIFIED", id="empty-zone"),
        pytest.param({ZONE: "us-a1-x"}, "zones/us-a1-x", id="zone"),
        pytest.param({ZONE: "us-a1-x", BETA_ZONE: "us-a1-y"}, "zones/us-a1-y", id="the-beta-label-comes-first"),
        pytest.param({ZONE: "us-a1-x", BETA_ZONE: ""}, "zones/us-a1-x", id="unless-it-is-empty"),
        pytest.param({ZONE: "us-a1-x__us-a1-y"}, "regions/us-a1", id="two-zones-of-a-region"),
    ],
)
def test_a_gce_disk_is_told_apart_by_its_zones(labels: dict[str, str], expected: str) -> None:
    handle = f"projects/UNSPECIFIED/{expected}/disks/d"
    assert translate_volume(volume_of(GCE_PD, "d", labels=labels)) == CSIVolume("pd.csi.storage.gke.io", handle)


def test_a_gce_disk_that_a_pod_names_has_no_zone() -> None:
    handle = translate_inline(InlineDisk("v", in_tree(GCE_PD, "d"))).handle
    assert handle == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"


def test_an_azure_disk_of_another_kind_is_not() -> None:
    source, message = replace(in_tree(AZURE_DISK, "/d"), kind="Dedicated"), r"^kind\(Dedicated\) is not supported in "
    with pytest.raises(TranslationError, match=message):
        translate_inline(InlineDisk("v", source))
    for translate in (translate_volume, translate_affinity):
        with pytest.raises(TranslationError, match=message):
            translate(PersistentVolume(name="pv", source=source))


_EBS: Final = "failed to translate Kubernetes ID to EBS Volume ID"
_GCE: Final = "failed to get region from zones:"
_FORMAT: Final = "zone in unexpected format, expected: {locale}-{region}-{zone}, got:"


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param(
            volume_of(AWS_EBS, "aws://z/snap-1"), f"{_EBS} Invalid format for AWS volume (aws://z/snap-1)", id="ebs"
        ),
        pytest.param(
            volume_of(AWS_EBS, "aws://vol-1"),
            f"{_EBS} Invalid format for AWS volume (aws://vol-1)",
            id="ebs-host-alone",
        ),
        pytest.param(
            volume_of(AWS_EBS, "aws://z/vol-1/x"),
            f"{_EBS} Invalid format for AWS volume (aws://z/vol-1/x)",
            id="ebs-path",
        ),
        pytest.param(volume_of(GCE_PD, "d", labels={ZONE: "a__us-a1-x"}), f"{_GCE} {_FORMAT} a", id="gce-zone"),
        pytest.param(
            volume_of(GCE_PD, "d", labels={ZONE: "us-b2-x__us-a1-x"}),
            f"{_GCE} multiple or no regions gotten from zones, got: map[us-a1:{{}} us-b2:{{}}]",
            id="gce-regions",
        ),
        pytest.param(
            PersistentVolume(name="pv"), "could not find in-tree plugin translation logic for pv", id="not-migratable"
        ),
    ],
)
def test_a_volume_that_cannot_be_translated_has_upstream_s_message(volume: PersistentVolume, expected: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate_volume(volume)
    assert str(caught.value) == expected


def test_an_ebs_id_that_is_no_url_cannot_be_translated() -> None:
    with pytest.raises(TranslationError, match=r"Invalid disk name \(aws://\[z/vol-1\)"):
        translate_volume(volume_of(AWS_EBS, "aws://[z/vol-1"))


# Topology.


@pytest.mark.parametrize(
    ("affinity", "labels", "expected"),
    [
        pytest.param(None, {}, None, id="none"),
        pytest.param(None, {ZONE: "a"}, terms([(EBS_ZONE, "In", ["a"])]), id="label"),
        pytest.param(None, {BETA_ZONE: "a__b"}, terms([(EBS_ZONE, "In", ["a", "b"])]), id="label-of-two-zones"),
        pytest.param(None, {ZONE: "a", BETA_ZONE: "b"}, terms([(EBS_ZONE, "In", ["a"])]), id="ga-label-before-beta"),
        pytest.param(None, {ZONE: "__"}, None, id="label-without-a-zone"),
        pytest.param(terms(), {ZONE: "a"}, terms([(EBS_ZONE, "In", ["a"])]), id="affinity-without-terms-and-label"),
        pytest.param(terms([(ZONE, "In", ["a"])]), {}, terms([(EBS_ZONE, "In", ["a"])]), id="affinity"),
        pytest.param(
            terms([(ZONE, "In", ["a"])]), {ZONE: "b"}, terms([(EBS_ZONE, "In", ["a"])]), id="affinity-before-label"
        ),
        pytest.param(
            terms([(ZONE, "NotIn", ["a"])], [("rack", "Gt", ["1"])]),
            {},
            terms([(EBS_ZONE, "NotIn", ["a"])], [("rack", "Gt", ["1"])]),
            id="any-operator-and-only-the-zone",
        ),
        pytest.param(terms([(ZONE, "Gt", ["1"])]), {}, terms([(EBS_ZONE, "Gt", ["1"])]), id="comparison"),
        pytest.param(
            terms([("rack", "In", ["r"])], [("disk", "Exists", ())]),
            {ZONE: "a"},
            terms([("rack", "In", ["r"]), (EBS_ZONE, "In", ["a"])], [("disk", "Exists", ()), (EBS_ZONE, "In", ["a"])]),
            id="label-in-every-term",
        ),
        pytest.param(
            terms([(ZONE, "Exists", ())]),
            {ZONE: "a"},
            terms([(ZONE, "Exists", ()), (EBS_ZONE, "In", ["a"])]),
            id="a-key-without-values-and-label",
        ),
        pytest.param(
            terms([(BETA_ZONE, "In", ["a"]), (BETA_REGION, "In", ["r"])]),
            {},
            terms([(EBS_ZONE, "In", ["a"]), (REGION, "In", ["r"])]),
            id="beta-region-becomes-ga",
        ),
        pytest.param(
            terms([(ZONE, "In", ["a"]), (BETA_REGION, "In", ["r"])]),
            {},
            terms([(EBS_ZONE, "In", ["a"]), (BETA_REGION, "In", ["r"])]),
            id="but-not-beside-a-ga-zone",
        ),
        pytest.param(
            terms([(BETA_REGION, "In", ["r"])]),
            {BETA_ZONE: "a"},
            terms([(REGION, "In", ["r"]), (EBS_ZONE, "In", ["a"])]),
            id="beta-region-and-label",
        ),
        pytest.param(terms([("rack", "In", ["r"])]), {}, terms([("rack", "In", ["r"])]), id="nothing-of-zones"),
    ],
)
def test_the_zone_becomes_the_driver_s(
    affinity: NodeSelector | None, labels: dict[str, str], expected: NodeSelector | None
) -> None:
    assert translate_affinity(volume_of(AWS_EBS, "vol-1", affinity, labels)) == expected


def test_a_broken_term_still_matches_nothing() -> None:
    broken = terms([(ZONE, "Near", ["a"])], [(ZONE, "In", ["a"])])
    translated = translate_affinity(volume_of(AWS_EBS, "vol-1", broken))
    assert translated is not None
    assert not translated.matches({ZONE: "a"})
    assert translated.matches({EBS_ZONE: "a"})


@pytest.mark.parametrize(
    ("plugin", "key"),
    [
        (GCE_PD, "topology.gke.io/zone"),
        (CINDER, "topology.cinder.csi.openstack.org/zone"),
        (AZURE_DISK, ZONE),
        (PORTWORX, ZONE),
    ],
)
def test_each_driver_has_its_key_and_some_have_none(plugin: str, key: str) -> None:
    affinity = terms([(ZONE, "In", ["a"])])
    assert translate_affinity(volume_of(plugin, "v", affinity)) == terms([(key, "In", ["a"])])
