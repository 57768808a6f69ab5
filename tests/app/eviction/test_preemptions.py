"""For which pods others were evicted lately, and how long those count as going."""

from app.eviction.preemptions import Preemptions
from core.events import ClusterEvent
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of, pod_of

VICTIM = make_pod("victim").uid("v").on("n1")


class Preempted:
    """Preemptions in a cluster of one victim, at a time that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.mirror = mirror_of(make_node("n1"), VICTIM)
        self.preemptions = Preemptions(self.mirror, lambda: self.now)

    def going(self) -> dict[str, tuple[str, ...]]:
        """Return the victims that are not gone, by node."""
        return {each.node: each.victims for each in self.preemptions.going().values()}


def test_a_pod_is_included_from_the_moment_when_its_preemption_begins() -> None:
    preemptions = Preempted().preemptions
    assert not preemptions.includes("p")
    preemptions.begin("p")
    assert preemptions.includes("p")
    assert preemptions.node_for("p") == ""
    preemptions.add("p", "n1", ["v"])
    preemptions.begin("q")
    assert preemptions.includes("p")
    assert preemptions.node_for("p") == "n1"


def test_the_mirror_knows_which_pod_waits_for_which_victim() -> None:
    preempted = Preempted()
    preempted.mirror.apply(ClusterEvent("Add", pod_of(make_pod("preemptor").uid("p"))))
    preempted.preemptions.add("p", "n1", ["v"])
    waits = preempted.mirror.preemptors.waits
    assert [(each.preemptor.uid, each.victim.uid, each.since) for each in waits()] == [("p", "v", 100.0)]
    preempted.preemptions.forget("p")
    assert list(waits()) == []


def test_victims_are_going_until_the_mirror_holds_them_no_more() -> None:
    preempted = Preempted()
    preempted.preemptions.add("p", "n1", ["v"])
    assert preempted.going() == {"n1": ("v",)}
    preempted.mirror.apply(ClusterEvent("Delete", pod_of(VICTIM)))
    assert preempted.going() == {}


def test_a_victim_that_the_watch_does_not_show_as_terminating_in_time_is_none_any_more() -> None:
    preempted = Preempted()
    preempted.preemptions.add("p", "n1", ["v"])
    preempted.now += 29.9
    assert preempted.going() == {"n1": ("v",)}
    preempted.now += 0.2
    assert preempted.going() == {}
    assert not preempted.preemptions.includes("p"), "it is forgotten"


def test_a_victim_that_terminates_is_going_for_as_long_as_that_takes() -> None:
    preempted = Preempted()
    preempted.preemptions.add("p", "n1", ["v"])
    preempted.mirror.apply(ClusterEvent("Update", pod_of(VICTIM.terminating())))
    preempted.now += 3600.0
    assert preempted.going() == {"n1": ("v",)}
    assert preempted.preemptions.includes("p")
