"""All that is measured of one node, in one value that JSON can hold."""

import msgspec

from core.diagnosis.amounts.node_amounts import NodeAmounts, node_amounts
from core.diagnosis.diagnosis import Diagnosis
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.builders import make_node
from tests.core.decoded import mirror_of, node_of, pod_of
from tests.core.diagnosis.deciding import asking, decision_in, decision_of, roomy, using


def test_every_plugin_that_has_something_to_say_is_in_it() -> None:
    node = roomy("n1", cpu="1", disk="hdd").taint("gpu", "", "NoSchedule").unschedulable()
    pod = asking(cpu="2").node_selector({"disk": "ssd"}).host_port(80)
    found = node_amounts(decision_of(pod, node, using("web", "n1").host_port(80)), 0, 5)
    assert [each.resource for each in found.resources if each.missing] == ["cpu"]
    assert [each.key for each in found.taints] == ["gpu"]
    assert found.cordoned
    assert [each.has for each in found.requirements] == ["hdd"]
    assert [each.pods for each in found.ports] == [["default/web"]]
    unsaid = (found.spread, found.bound_elsewhere, found.drivers, found.disks, found.missing_features)
    assert [len(each) for each in unsaid] == [0] * 5
    assert msgspec.json.decode(msgspec.json.encode(found, enc_hook=str), type=NodeAmounts) == msgspec.convert(
        msgspec.to_builtins(found, enc_hook=str), NodeAmounts
    )


def test_of_an_unknown_node_nothing_is_measured() -> None:
    mirror = mirror_of(roomy("n1"))
    decision = Diagnosis(full_profile(), mirror, pod_of(asking(cpu="2")), mirror.batch(["nowhere"]))
    assert NodeAmounts() == node_amounts(decision, 0, 5)


def test_a_node_that_comes_with_the_question_has_no_pods() -> None:
    mirror = mirror_of(roomy("n1"), using("web", "n1").host_port(80))
    stranger = Node("s", allocatable={"cpu": 1000, "pods": 10})
    pod = pod_of(asking(cpu="2").host_port(80).volume({"name": "v", "gcePersistentDisk": {"pdName": "d"}}))
    decision = Diagnosis(full_profile(), mirror, pod, mirror.batch(["s"], {0: stranger}))
    found = node_amounts(decision, 0, 5)
    assert [(each.resource, each.free) for each in found.resources] == [("pods", 10), ("cpu", 1000)]
    assert [len(each) for each in (found.ports, found.disks, found.drivers)] == [0] * 3


def test_a_missing_feature_is_named() -> None:
    pod = msgspec.structs.replace(
        pod_of(asking()), needed_features=frozenset({"RestartAllContainersOnContainerExits", "Unknown"})
    )
    mirror = ClusterMirror(rules=rules_of(Release(1, 36)))
    mirror.apply(ClusterEvent("Add", node_of(make_node("n1").allocatable(pods=10))))
    found = node_amounts(decision_in(mirror, pod), 0, 5).missing_features
    assert list(found) == ["RestartAllContainersOnContainerExits"]
