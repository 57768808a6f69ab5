"""What cannot be judged is said, and judges nothing."""

import pytest

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.explained_profile import NOTHING, ExplainProfile, SchedulerRules, every_rule
from core.diagnosis.not_judged import NotJudged, judged
from core.events import ClusterEvent, Kind, Missing
from core.objects.kinds import DeviceClass, Service
from core.objects.volumes import PersistentVolumeClaim
from core.plugins.in_tree import DeviceSchedulers
from core.profile import Profile, full_profile, parse_profile, with_devices
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import Object, PodBuilder, make_node, make_pod
from tests.conformance.engine import decoded_pod, load
from tests.core.decoded import pod_of
from tests.core.profile_parts import affinity_profile

CLAIMS = "persistentvolumeclaims: not synced"
DEVICES = "deviceclasses: not synced"
OWNERS = "services: not synced"
MISSING: dict[Kind, Missing] = {
    PersistentVolumeClaim: Missing(CLAIMS),
    DeviceClass: Missing(DEVICES),
    Service: Missing(OWNERS),
}
EMPTY = load([], [], [])
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod("p").requests(cpu="1"), set(), id="plain"),
        pytest.param(make_pod("p").requests(**{"example.com/gpu": 1}), {"NodeResourcesFit"}, id="extended-resource"),
        pytest.param(
            make_pod("p").volume(CLAIM),
            {"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"},
            id="claim",
        ),
    ],
)
def test_only_what_follows_from_missing_objects_is_left_out(pod: PodBuilder, expected: set[str]) -> None:
    found = judged(full_profile(), pod_of(pod.label("app", "web")), MISSING, EMPTY)
    assert {each.plugin for each in found.not_judged} == expected
    left = {each.name for each in found.profile.filters}
    assert expected == {each.name for each in full_profile().filters} - left
    assert found.not_scored == [NotJudged("PodTopologySpread", OWNERS)]  # its filter reads the pod's own constraints


def test_the_score_of_a_pod_with_constraints_of_its_own_needs_no_owner() -> None:
    assert judged(full_profile(), pod_of(make_pod("p").spread("zone")), MISSING, EMPTY).not_scored == []
    assert judged(full_profile(), pod_of(make_pod("p")), MISSING, EMPTY).not_scored == []  # no Service can select it


def test_why_names_the_objects() -> None:
    missing: dict[Kind, Missing] = {PersistentVolumeClaim: Missing(CLAIMS, "get them")}
    reported, *_ = judged(full_profile(), pod_of(make_pod("p").volume(CLAIM)), missing, EMPTY).not_judged
    assert (reported.why, reported.command) == (CLAIMS, "get them")


@pytest.mark.parametrize(
    ("spec", "plugin"),
    [
        pytest.param({"schedulingGroup": {"podGroupName": "g"}}, "GangScheduling", id="pod-group"),
        pytest.param({"workloadRef": {"name": "w", "podGroup": "g"}}, "GangScheduling", id="workload-of-1.35"),
    ],
)
def test_what_kube_scheduler_alone_can_judge_is_said(spec: Object, plugin: str) -> None:
    pod = decoded_pod({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    assert [each.plugin for each in judged(full_profile(), pod, {}, EMPTY).not_judged] == [plugin]


def test_nothing_missing_leaves_the_profile_alone() -> None:
    profile = full_profile()
    found = judged(profile, pod_of(make_pod("p").volume(CLAIM)), {}, EMPTY)
    assert found == (profile, [], [])


def test_a_rule_that_is_not_judged_refuses_no_node_and_is_no_verdict() -> None:
    mirror = load([], [make_node("n1").allocatable(pods=10).obj()], [])
    pod = decoded_pod(make_pod("p").volume(CLAIM).obj())
    fits = Diagnosis(every_rule(affinity_profile()), mirror, pod, mirror.batch(["n1"]), missing=MISSING)
    assert len(fits.fitting) == 1
    assert NotJudged("VolumeBinding", CLAIMS) in fits.not_judged
    assert "VolumeBinding" not in {plugin for plugin, _ in fits.predicates(0)}
    rejected = Diagnosis(every_rule(affinity_profile()), mirror, pod, mirror.batch(["n1"]))
    assert len(rejected.fitting) == 0  # the mirror holds no such claim


GPU = "example.com/gpu"
NODES = {
    name: make_node(name).allocatable(pods=10, **amounts)
    for name, amounts in {"absent": {}, "plugin": {GPU: 4}}.items()
}
ONE = DeviceSchedulers(frozenset({"claims"}), others=False, advised="claims")
LEFT = NotJudged("DynamicResources", "kube-scheduler alone allocates the devices for example.com/gpu (DeviceClass gpu)")
NEEDED = NotJudged(
    "DynamicResources",
    "devices of DeviceClass gpu need the in-tree plugin DynamicResources: give the pod spec.schedulerName: claims",
)


def diagnosis(scheduler: str, amount: int, *names: str, profile: Profile, named: bool = True) -> Diagnosis:
    """Diagnose a pod that requests a resource of a DeviceClass."""
    mirror = load([], [NODES[name].obj() for name in names], [])
    mirror.change_rules(rules_of(Release(1, 37)))
    if named:
        mirror.apply(ClusterEvent("Add", DeviceClass(name="gpu", extended_resource=GPU)))
    pod = decoded_pod(make_pod("p").scheduler(scheduler).requests(**{GPU: amount}).obj())
    return Diagnosis(profile, mirror, pod, mirror.batch(names))


@pytest.mark.parametrize("text", ["full", "GeneralPredicates"])
def test_devices_are_judged_by_nobody_here_where_a_node_is_left_to_them(text: str) -> None:
    profile = parse_profile(text, {"NodeResourcesFit": {"device_schedulers": ONE}})
    for names in (["absent"], ["absent", "plugin"]):
        found = diagnosis("claims", 4, *names, profile=profile)
        assert (len(found.fitting), found.not_judged) == (len(names), [LEFT])
    assert diagnosis("claims", 4, "plugin", profile=profile).not_judged == []
    assert diagnosis("claims", 4, "absent", profile=profile, named=False).not_judged == []


def test_devices_are_named_if_only_they_would_do() -> None:
    profile = full_profile({"NodeResourcesFit": {"device_schedulers": ONE}})
    found = diagnosis("plain", 5, "absent", "plugin", profile=profile)
    assert (len(found.fitting), found.not_judged) == (0, [NEEDED])
    found = diagnosis("plain", 4, "absent", "plugin", profile=profile)
    assert (found.fitting.tolist(), found.not_judged) == ([1], [])


def test_devices_that_no_program_allocates_are_told_of_though_the_rule_is_off() -> None:
    rules = SchedulerRules("plain", has_profile=True, off=with_devices(NOTHING))
    mirror = load([], [NODES["absent"].obj()], [])
    mirror.change_rules(rules_of(Release(1, 37)))
    mirror.apply(ClusterEvent("Add", DeviceClass(name="gpu", extended_resource=GPU)))
    explained = ExplainProfile(full_profile(), full_profile(), rules)
    pod = decoded_pod(make_pod("p").requests(**{GPU: 1}).obj())
    (reported,) = Diagnosis(explained, mirror, pod, mirror.batch(["absent"])).not_judged
    assert reported.why == "no program allocates the devices for example.com/gpu (DeviceClass gpu)"
