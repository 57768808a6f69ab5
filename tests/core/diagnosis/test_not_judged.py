"""What cannot be judged is said, and judges nothing."""

import pytest

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import every_rule
from core.diagnosis.not_judged import NotJudged, judged
from core.events import Kind
from core.objects.device_class import DeviceClass
from core.objects.service import Service
from core.objects.volumes import PersistentVolumeClaim
from core.profile import affinity_profile, full_profile
from tests.builders import Object, PodBuilder, make_node, make_pod
from tests.conformance.engine import decoded_pod, load
from tests.core.decoded import pod_of

CLAIMS = "persistentvolumeclaims: not synced"
DEVICES = "deviceclasses: not synced"
OWNERS = "services: not synced"
MISSING: dict[Kind, str] = {PersistentVolumeClaim: CLAIMS, DeviceClass: DEVICES, Service: OWNERS}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p").requests(cpu="1"), {"PodTopologySpread"}, id="plain"),
        pytest.param(
            make_pod("p").spread("zone"),
            set(),
            id="own-constraints",
        ),
        pytest.param(
            make_pod("p").requests(**{"example.com/gpu": 1}),
            {"NodeResourcesFit", "PodTopologySpread"},
            id="extended-resource",
        ),
        pytest.param(
            make_pod("p").volume(CLAIM),
            {"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits", "PodTopologySpread"},
            id="claim",
        ),
    ],
)
def test_only_what_follows_from_missing_objects_is_left_out(pod: PodBuilder, expected: set[str]) -> None:
    found = judged(full_profile(), pod_of(pod), MISSING)
    assert {each.plugin for each in found.not_judged} == expected
    left = {each.name for each in found.profile.filters}
    assert expected - {"PodTopologySpread"} == {each.name for each in full_profile().filters} - left
    assert "PodTopologySpread" in left  # its filter reads the pod's own constraints alone


def test_why_names_the_objects() -> None:
    (told,) = judged(full_profile(), pod_of(make_pod("p").volume(CLAIM)), {PersistentVolumeClaim: CLAIMS}).not_judged[
        :1
    ]
    assert told.why == CLAIMS


@pytest.mark.parametrize(
    ("spec", "plugin"),
    [
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, "DynamicResources", id="resource-claims"),
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, "GangScheduling", id="pod-group"),
    ],
)
def test_what_kube_scheduler_alone_can_judge_is_said(spec: Object, plugin: str) -> None:
    pod = decoded_pod({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    assert [each.plugin for each in judged(full_profile(), pod, {}).not_judged] == [plugin]


def test_nothing_missing_leaves_the_profile_alone() -> None:
    profile = full_profile()
    found = judged(profile, pod_of(make_pod("p").volume(CLAIM)), {})
    assert (found.profile, found.not_judged) == (profile, [])


def test_a_rule_that_is_not_judged_refuses_no_node_and_is_no_verdict() -> None:
    mirror = load([], [make_node("n1").allocatable(pods=10).obj()], [])
    pod = decoded_pod(make_pod("p").volume(CLAIM).obj())
    fits = Diagnosis(every_rule(affinity_profile()), mirror, pod, mirror.batch(["n1"]), missing=MISSING)
    assert len(fits.fitting) == 1
    assert NotJudged("VolumeBinding", CLAIMS) in fits.not_judged
    assert "VolumeBinding" not in {plugin for plugin, _ in fits.predicates(0)}
    refused = Diagnosis(every_rule(affinity_profile()), mirror, pod, mirror.batch(["n1"]))
    assert len(refused.fitting) == 0  # the mirror holds no such claim
