"""Which events make kube-scheduler try again, and which victims a pod waits for."""

import pytest

from core.diagnosis.pod_names import PodName, PodUid
from core.diagnosis.wakes import EVENTS, AwaitedVictim, Wake, awaited_victims, events_of, victims_by_pod, wakes
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_in, decision_of, roomy


def test_every_plugin_that_filters_by_default_registers_events() -> None:
    assert {plugin.name for plugin in full_profile().filters} == {wake.plugin for wake in EVENTS}
    assert all(wake.actions for wake in EVENTS)


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


RESIZED = (
    Wake("NodeResourcesFit", "Pod", ("UpdatePodScaleDown",)),
    Wake("NodeResourcesFit", "Pod", ("UpdatePodScaleDown",), of_pod_itself=True),
)
DEVICE_CLASSES = Wake("NodeResourcesFit", "DeviceClass", ("Add", "Update"))
OWN_LABELS = Wake("InterPodAffinity", "Pod", ("UpdatePodLabel",), of_pod_itself=True)


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
    minor: int, gates: dict[str, bool], plugin: str, more: list[Wake]
) -> None:
    always = [each for each in EVENTS if each.plugin == plugin]
    assert [*always, *more] == events_of(plugin, rules_of(Release(1, minor), gates))


def test_a_pod_wakes_by_the_events_of_the_release() -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, 36)))
    mirror.apply(ClusterEvent("Add", node_of(roomy("n1"))))
    assert DEVICE_CLASSES in wakes(decision_in(mirror, pod_of(asking(cpu="9"))))
    mirror.change_rules(rules_of(Release(1, 34)))
    assert DEVICE_CLASSES not in wakes(decision_in(mirror, pod_of(asking(cpu="9"))))


def test_a_pod_that_fits_waits_for_nothing() -> None:
    assert not wakes(decision_of(asking(), roomy("n1")))


@pytest.mark.parametrize("plugin", ["NodeUnschedulable", "TaintToleration", "NodeDeclaredFeatures"])
def test_a_change_of_the_pod_itself_is_told_apart(plugin: str) -> None:
    assert [each.resource for each in EVENTS if each.plugin == plugin and each.of_pod_itself] == ["Pod"]


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
