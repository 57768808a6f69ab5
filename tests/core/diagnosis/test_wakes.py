"""Which events make kube-scheduler try again: those of the plugins that failed a node first."""

import pytest

from core.diagnosis.wakes import EVENTS, Wake, wakes
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.profile import full_profile
from core.releases import Release, rules_of
from tests.core.decoded import node_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_in, decision_of, roomy


def test_every_plugin_that_filters_by_default_registers_events() -> None:
    assert {plugin.name for plugin in full_profile().filters} == set(EVENTS)
    assert all(wake.plugin == name and wake.actions for name, all_of in EVENTS.items() for wake in all_of)


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


@pytest.mark.parametrize(("minor", "kinds"), [(35, ["Pod", "Node"]), (36, ["Pod", "Node", "DeviceClass"])])
def test_device_classes_wake_where_the_release_leaves_resources_to_devices(minor: int, kinds: list[str]) -> None:
    mirror = ClusterMirror(rules=rules_of(Release(1, minor)))
    mirror.apply(ClusterEvent("Add", node_of(roomy("n1"))))
    assert [each.resource for each in wakes(decision_in(mirror, pod_of(asking(cpu="9"))))] == kinds


def test_a_pod_that_fits_waits_for_nothing() -> None:
    assert not wakes(decision_of(asking(), roomy("n1")))


@pytest.mark.parametrize("plugin", ["NodeUnschedulable", "TaintToleration", "NodeDeclaredFeatures"])
def test_a_change_of_the_pod_itself_is_told_apart(plugin: str) -> None:
    assert [each.resource for each in EVENTS[plugin] if each.of_pod_itself] == ["Pod"]
