"""The victims that a pod waits for, with names that can be hidden."""

from core.diagnosis.pod_names import PodName, PodUid
from core.diagnosis.victim_waits import AwaitedVictim, awaited_victims
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of


def test_a_pod_waits_for_its_victims_for_as_long_as_they_were_seen() -> None:
    waiting = make_pod("high").priority(9).nominated("n")
    mirror = mirror_of(make_node("n"), waiting, make_pod("low").in_namespace("shop").uid("u").on("n").terminating())
    assert [each.waiting for each in awaited_victims(mirror, pod_of(waiting), 10.0)] == [0.0]
    (found,) = awaited_victims(mirror, pod_of(waiting), 50.0)
    assert found == AwaitedVictim("shop/low", "u", "n", 40.0)
    assert isinstance(found.name, PodName)
    assert isinstance(found.uid, PodUid)
    assert awaited_victims(mirror, pod_of(make_pod("other")), 50.0) == []
