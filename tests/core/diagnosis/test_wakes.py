"""Which events make kube-scheduler try again, and which victims a pod waits for."""

import pytest

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.wakes import (
    AwaitedVictim,
    Wake,
    awaited_victims,
    events_of,
    victims_by_pod,
    wakes,
)
from core.events import ClusterEvent
from core.explaining.pod_names import PodName, PodUid
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Service
from core.objects.labels import parse_selector
from core.objects.pod import DO_NOT_SCHEDULE, HONOR, IGNORE, SpreadConstraint
from core.plugins import PLUGINS
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import NodeBuilder, PodBuilder, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import ZONE, asking, decision_in, decision_of, roomy, using


def test_a_pod_wakes_by_the_plugins_that_failed_a_node_first() -> None:
    decision = decision_of(
        asking(cpu="9").node_selector({"disk": "ssd"}),
        roomy("n1"),
        roomy("n2", disk="ssd"),
        roomy("n3").unschedulable(),
    )
    found = wakes(decision)
    assert [*dict.fromkeys(each.plugin for each in found)] == ["NodeUnschedulable", "NodeAffinity", "NodeResourcesFit"]
    assert Wake("NodeAffinity", "Node", ("Add", "UpdateNodeLabel")) in found


RESIZED = [("Pod", ("UpdatePodScaleDown",), False), ("Pod", ("UpdatePodScaleDown",), True)]
DEVICE_CLASSES = ("DeviceClass", ("Add", "Update"), False)
OWN_LABELS = ("Pod", ("UpdatePodLabel",), True)
ALWAYS = {
    "NodeResourcesFit": [("Pod", ("Delete",), False), ("Node", ("Add", "UpdateNodeAllocatable"), False)],
    "InterPodAffinity": [
        ("Pod", ("Add", "UpdatePodLabel", "Delete"), False),
        ("Node", ("Add", "UpdateNodeLabel"), False),
    ],
}


@pytest.mark.parametrize(
    ("minor", "gates", "plugin", "more"),
    [
        (34, {}, "NodeResourcesFit", [*RESIZED]),
        (34, {"InPlacePodVerticalScaling": False}, "NodeResourcesFit", []),
        (34, {"DRAExtendedResource": True}, "NodeResourcesFit", [*RESIZED]),
        (35, {}, "NodeResourcesFit", [*RESIZED]),
        (35, {"DRAExtendedResource": True}, "NodeResourcesFit", [*RESIZED, DEVICE_CLASSES]),
        (36, {}, "NodeResourcesFit", [*RESIZED, DEVICE_CLASSES]),
        (36, {"DRAExtendedResource": False}, "NodeResourcesFit", [*RESIZED]),
        (37, {}, "NodeResourcesFit", [*RESIZED, DEVICE_CLASSES]),
        (34, {}, "InterPodAffinity", []),
        (35, {}, "InterPodAffinity", []),
        (36, {}, "InterPodAffinity", [OWN_LABELS]),
        (37, {}, "InterPodAffinity", [OWN_LABELS]),
    ],
)
def test_events_depend_on_the_release_and_its_gates(
    minor: int, gates: dict[str, bool], plugin: str, more: list[tuple[str, tuple[str, ...], bool]]
) -> None:
    found = events_of(PLUGINS[plugin](), rules_of(Release(1, minor), gates))
    reported = [(each.resource, each.actions, each.of_pod_itself) for each in found]
    assert [*ALWAYS[plugin], *more] == reported


def test_a_pod_wakes_by_the_events_of_the_release() -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, 36)))
    mirror.apply(ClusterEvent("Add", node_of(roomy("n1"))))
    pod = pod_of(asking(**{"cpu": "9", "example.com/gpu": "1"}))
    assert Wake("NodeResourcesFit", *DEVICE_CLASSES) in wakes(decision_in(mirror, pod))
    mirror.change_rules(rules_of(Release(1, 34)))
    assert Wake("NodeResourcesFit", *DEVICE_CLASSES) not in wakes(decision_in(mirror, pod))


WEB = labelled(app="web")
TO_WEB, NOT_WEB = asking().required_affinity(term(ZONE, WEB)), asking().required_anti_affinity(term(ZONE, WEB))
SHY = using("shy", "n1").required_anti_affinity(term(ZONE, labelled(me="yes")))
PLACED = using("web", "n1").label("app", "web")


@pytest.mark.parametrize(
    ("minor", "pod", "placed", "pods", "node"),
    [
        # interpodaffinity/plugin.go: since 1.37 the end of a pod that only matches affinity terms wakes nothing.
        (37, TO_WEB, [], ("Add", "UpdatePodLabel"), True),
        (34, TO_WEB, [], ("Add", "UpdatePodLabel"), True),
        (37, NOT_WEB, [PLACED], ("UpdatePodLabel", "Delete"), True),
        (34, NOT_WEB, [PLACED], ("UpdatePodLabel", "Delete"), True),
        # A placed pod's anti-affinity refuses it: until 1.35 only its own terms count, and it waits for five minutes.
        (34, asking().label("me", "yes"), [SHY], (), False),
        (35, asking().label("me", "yes"), [SHY], (), False),
        (36, asking().label("me", "yes"), [SHY], ("Delete",), False),
        (37, asking().label("me", "yes"), [SHY], ("Delete",), False),
        (37, TO_WEB.label("me", "yes"), [SHY, PLACED], ("Add", "UpdatePodLabel", "Delete"), True),
    ],
)
def test_what_wakes_a_pod_follows_the_hints_of_its_terms(
    minor: int, pod: PodBuilder, placed: list[PodBuilder], pods: tuple[str, ...], *, node: bool
) -> None:
    mirror = mirror_of(roomy("n1", zone="a"), *placed)
    mirror.change_rules(rules_of(Release(1, minor)))
    found = wakes(decision_in(mirror, pod_of(pod)))
    assert {each.plugin for each in found} <= {"InterPodAffinity"}
    by_pods = [each.actions for each in found if each.resource == "Pod" and not each.of_pod_itself]
    assert by_pods == ([pods] if pods else [])
    assert any(each.resource == "Node" for each in found) is node
    assert any(each.of_pod_itself for each in found) is (minor > 35)


def events(pod: PodBuilder, *nodes: NodeBuilder) -> set[tuple[str, str]]:
    return {(each.resource, action) for each in wakes(decision_of(pod, *nodes)) for action in each.actions}


def test_events_that_a_hint_always_skips_for_the_pod_are_left_out() -> None:
    assert ("DeviceClass", "Add") not in events(asking(cpu="9"), roomy("n1"))
    assert not events(asking().required_node_affinity({}), roomy("n1"))
    contradicting = asking().node_selector({"disk": "ssd"}).required_node_affinity(expressed("disk", "NotIn", "ssd"))
    assert not events(contradicting, roomy("n1"))
    assert events(asking().required_node_affinity(expressed("disk", "Gt", "x")), roomy("n1")), "an error queues"
    assert events(asking().required_node_affinity(expressed("disk", "In", "ssd")), roomy("n1"))
    uneven = roomy("n1", zone="a")
    for policy, reported in (("Honor", True), ("Ignore", False)):
        pod = asking().spread("rack", WEB, nodeTaintsPolicy=policy)
        assert (("Pod", "UpdatePodToleration") in events(pod, uneven)) is reported
    preferring = asking().spread("zone", WEB, when="ScheduleAnyway", nodeTaintsPolicy="Honor").spread("rack", WEB)
    assert ("Pod", "UpdatePodToleration") not in events(preferring, uneven), "only hard constraints are read"


@pytest.mark.parametrize("policy", [HONOR, IGNORE])
def test_a_toleration_wakes_a_pod_that_a_default_constraint_keeps_off(policy: str) -> None:
    by_rack = SpreadConstraint(1, "rack", DO_NOT_SCHEDULE, node_taints_policy=policy)
    arguments = {"PodTopologySpread": {"defaulting_type": "List", "default_constraints": (by_rack,)}}
    mirror = mirror_of(roomy("n1"))
    mirror.apply(ClusterEvent("Add", Service("default", "s", parse_selector({"of": "x"}, ()))))
    decision = Diagnosis(full_profile(arguments), mirror, pod_of(asking().label("of", "x")), mirror.batch(["n1"]))
    found = [action for each in wakes(decision) if each.of_pod_itself for action in each.actions]
    assert found == ["UpdatePodLabel", *(["UpdatePodToleration"] if policy == HONOR else [])]


def test_a_pod_that_fits_waits_for_nothing() -> None:
    assert not wakes(decision_of(asking(), roomy("n1")))


@pytest.mark.parametrize("plugin", ["NodeUnschedulable", "TaintToleration", "NodeDeclaredFeatures"])
def test_a_change_of_the_pod_itself_is_told_apart(plugin: str) -> None:
    assert [each.resource for each in events_of(PLUGINS[plugin](), rules_of(Release(1, 36))) if each.of_pod_itself] == [
        "Pod"
    ]


def test_a_pod_waits_for_its_victims_for_as_long_as_they_were_seen() -> None:
    waiting = make_pod("high").priority(9).nominated("n")
    mirror = mirror_of(make_node("n"), waiting, make_pod("low").in_namespace("shop").uid("u").on("n").terminating())
    assert [each.waiting for each in awaited_victims(mirror, pod_of(waiting), 10.0)] == [0.0]
    (found,) = awaited_victims(mirror, pod_of(waiting), 50.0)
    assert found == AwaitedVictim("shop/low", "u", "n", 40.0)
    assert isinstance(found.name, PodName)
    assert isinstance(found.uid, PodUid)
    assert awaited_victims(mirror, pod_of(make_pod("other")), 50.0) == []


def test_the_victims_of_all_pods_are_found_at_once_by_the_pods_that_wait() -> None:
    first, second = (make_pod(name).uid(name).priority(9).nominated("n") for name in ("first", "second"))
    victims = [make_pod(name).uid(name).on("n").terminating() for name in ("low", "lower")]
    mirror = mirror_of(make_node("n"), first, second, make_pod("other"), *victims)
    assert {*victims_by_pod(mirror, 10.0)} == {"first", "second"}
    assert victims_by_pod(mirror, 15.0) == {
        each: [*awaited_victims(mirror, pod_of(pod), 15.0)] for each, pod in (("first", first), ("second", second))
    }
    assert [each.name for each in victims_by_pod(mirror, 15.0)["first"]] == ["default/low", "default/lower"]
