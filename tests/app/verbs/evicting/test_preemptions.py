"""For which pods others were evicted lately; test_evicting*.py have how long those count as going."""

from app.verbs.executor import Preemptions
from tests.builders import make_node
from tests.core.decoded import mirror_of


def test_a_pod_is_included_from_the_moment_when_its_preemption_begins() -> None:
    preemptions = Preemptions(mirror_of(make_node("n1")), lambda: 100.0)
    assert not preemptions.includes("p")
    preemptions.begin("p")
    assert preemptions.includes("p")
    assert preemptions.node_for("p") == ""
    preemptions.add("p", "n1", ["v"])
    preemptions.begin("q")
    assert preemptions.includes("p")
    assert preemptions.node_for("p") == "n1"
