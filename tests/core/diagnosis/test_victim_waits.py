"""The victims that pods wait for, with names that can be hidden."""

from core.diagnosis.pod_names import PodName, PodUid
from core.diagnosis.victim_waits import AwaitedVictim, awaited_victims, victims_by_pod
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


def test_the_victims_of_all_pods_are_found_at_once_by_the_pods_that_wait() -> None:
    first, second = (make_pod(name).uid(name).priority(9).nominated("n") for name in ("first", "second"))
    victims = [make_pod(name).uid(name).on("n").terminating() for name in ("low", "lower")]
    mirror = mirror_of(make_node("n"), first, second, make_pod("other"), *victims)
    assert {*victims_by_pod(mirror, 10.0)} == {"first", "second"}
    assert victims_by_pod(mirror, 15.0) == {
        each: [*awaited_victims(mirror, pod_of(pod), 15.0)] for each, pod in (("first", first), ("second", second))
    }
    assert [each.name for each in victims_by_pod(mirror, 15.0)["first"]] == ["default/low", "default/lower"]
