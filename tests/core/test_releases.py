"""The table of what differs between the releases of Kubernetes."""

import msgspec
import pytest

from core.releases.differences import DIFFERENCES, rules_of
from core.releases.release import (
    GATES,
    GATES_OF_DEVICES,
    RELEASES,
    ClaimedResources,
    DeviceClassResources,
    FeatureGateError,
    ImageVolumes,
    MissingDriver,
    Release,
    Rules,
    nearest,
)

_1_34, _1_35, _1_36, _1_37 = RELEASES


@pytest.mark.parametrize(
    ("text", "release", "exact"),
    [
        ("1.34", _1_34, True),
        ("v1.36.3", _1_36, True),
        ("1.36+", _1_36, True),
        ("v1.37.0-alpha.1+abc", _1_37, True),
        (" v1.35.2-gke.1 ", _1_35, True),
        ("v1.33.5-eks-1a2b", _1_34, False),
        ("1.38", _1_37, False),
        ("2.0", _1_37, False),
        ("0.9", _1_34, False),
        ("1.340", _1_37, False),
        ("garbage", _1_34, False),
        ("1.99999", _1_34, False),
        ("", _1_34, False),
    ],
)
def test_a_version_is_answered_by_the_nearest_known_release(text: str, release: Release, *, exact: bool) -> None:
    found = nearest(text)
    assert (found.release, found.exact, found.text) == (release, exact, text)


def test_a_release_is_written_as_people_write_it() -> None:
    assert [str(release) for release in RELEASES] == ["1.34", "1.35", "1.36", "1.37"]


def test_every_rule_is_a_row_of_the_table_and_has_an_answer_for_each_release() -> None:
    rules = [row.rule for row in DIFFERENCES if row.rule]
    assert sorted(rules) == sorted({*msgspec.structs.asdict(rules_of(_1_34))} - {"release", "gates"})
    assert all(len(row.rules) == len(RELEASES) for row in DIFFERENCES)
    assert {row.gate for row in DIFFERENCES if row.gate} == set(GATES)


def test_every_row_answers_otherwise_somewhere() -> None:
    for row in DIFFERENCES:
        rules = {response.text for response in (*row.rules, *([row.without_gate] if row.gate else []))}
        assert len(rules) > 1, row.what


def test_the_rules_of_1_34_are_what_kindred_answered_before_releases_were_told_apart() -> None:
    assert rules_of(_1_34) == Rules(
        release=_1_34,
        gates={
            **{name: stages[_1_34].default for name, stages in GATES_OF_DEVICES.items() if _1_34 in stages},
            "DRAExtendedResource": False,
            "StorageCapacityScoring": False,
            "InPlacePodVerticalScaling": True,
            "PodLevelResources": True,
            "MatchLabelKeysInPodTopologySpread": True,
            "VolumeAttributesClass": True,
        },
        balance_of_change=False,
        taint_named_in_reason=True,
        image_volumes=ImageVolumes.IGNORED,
        declared_features=(),
        declared_features_named_in_reason=False,
        aggregated_resize=False,
        resize_status=True,
        pod_level_requests=True,
        pod_level_resize_status=False,
        pod_level_defaults_last=False,
        claimed_resources=ClaimedResources.IGNORED,
        device_class_resources=DeviceClassResources.CHECKED,
        missing_driver=MissingDriver.ALLOWED,
        portworx_needs_annotation=True,
        storage_capacity_scored=False,
        budgets_stop_at_violation=False,
        node_name_first=False,
        label_errors_in_bytes=False,
        numeric_tolerations=False,
        match_label_keys=True,
        volume_attributes_classes=True,
        wakes_by_resize=True,
        wakes_by_device_class=False,
        wakes_by_own_labels=False,
        wakes_by_end_of_repelling_pod=False,
        group_cycles=False,
        groups_queued=False,
    )


def test_the_rules_of_1_37_are_those_of_its_default_feature_gates() -> None:
    rules = rules_of(_1_37)
    assert rules.image_volumes is ImageVolumes.COUNTED
    assert rules.device_class_resources is DeviceClassResources.LEFT_UNLESS_ALLOCATABLE
    assert rules.missing_driver is MissingDriver.REJECTED_IF_REQUESTED
    assert rules.storage_capacity_scored
    assert len(rules.declared_features) == 3
    assert (rules.request_counting.aggregates, rules.request_counting.pod_level_status) == (True, True)


def test_a_gate_that_is_on_gives_the_answer_of_its_release() -> None:
    on = rules_of(_1_34, {"DRAExtendedResource": True, "StorageCapacityScoring": True})
    assert on.device_class_resources is DeviceClassResources.LEFT_UNLESS_LISTED
    assert on.storage_capacity_scored
    assert on.release == _1_34
    assert rules_of(_1_35, {"VolumeLimitScaling": True}).missing_driver is MissingDriver.REJECTED
    gate = {"DRANodeAllocatableResources": True}
    assert rules_of(_1_36, gate).request_counting.claimed is ClaimedResources.LISTED
    assert rules_of(_1_37, gate).request_counting.claimed is ClaimedResources.MAPPED


def test_a_gate_that_is_off_takes_its_rule_away() -> None:
    off = rules_of(_1_36, {"NodeDeclaredFeatures": False, "InPlacePodLevelResourcesVerticalScaling": False})
    assert off.declared_features == ()
    assert not off.request_counting.pod_level_status


def test_an_unknown_gate_is_an_error_that_names_those_that_there_are() -> None:
    with pytest.raises(
        FeatureGateError, match=r"feature gate NodeDeclaredFeature is not known at 1\.36; there are .*Node"
    ):
        rules_of(_1_36, {"NodeDeclaredFeature": True})


def test_a_gate_of_a_later_release_is_not_known() -> None:
    with pytest.raises(FeatureGateError, match=r"NodeDeclaredFeatures is not known at 1\.34"):
        rules_of(_1_34, {"NodeDeclaredFeatures": False})


def test_a_locked_gate_can_only_be_given_as_it_is_locked() -> None:
    assert rules_of(_1_37, {"NodeDeclaredFeatures": True}) == rules_of(_1_37)
    with pytest.raises(
        FeatureGateError, match=r"NodeDeclaredFeatures is locked on at 1\.37; free to set are .*PodLevel"
    ):
        rules_of(_1_37, {"NodeDeclaredFeatures": False})


def test_the_gates_of_taints_of_devices_are_not_locked_before_1_38() -> None:
    off = {"DRADeviceTaints": False, "DRADeviceTaintRules": False}
    assert {name: rules_of(_1_37, off).gates[name] for name in off} == off


def test_equal_rules_are_equal_whatever_they_were_made_from() -> None:
    assert rules_of(_1_37, {"StorageCapacityScoring": True}) == rules_of(_1_37)
    assert rules_of(_1_37) != rules_of(_1_36)
