"""What pods are predicted to use that no measurement shows yet: kept by events, equal to a recount at any time."""

from typing import Final

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.plugins.load.load_plugin import UnmeasuredBy, UnmeasuredUsage
from core.plugins.load.targetloadpacking import PredictedCpu
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.plugins.load.values import AFTER, COVERED, FOUR_CORES, metrics

STATE: Final = UnmeasuredBy(PredictedCpu(1.5, 1000))
NEW: Final = make_pod("new").uid("new").image("a").limits(cpu="400m").on("n1")
"""It has not started."""
LATER: Final = "2026-01-01T00:02:00Z"


def measured(*pods: PodBuilder) -> tuple[ClusterMirror, UnmeasuredUsage]:
    mirror = mirror_of(FOUR_CORES, *pods)
    mirror.apply(ClusterEvent("Add", metrics()))
    return mirror, mirror.derived(STATE)


def millicores(mirror: ClusterMirror, name: str = "n1") -> int:
    """Return what is kept for a node, which has to be what a new state counts."""
    batch = mirror.batch([name])
    kept = int(mirror.derived(STATE).of(0, batch)[0])
    assert kept == int(UnmeasuredUsage(mirror, STATE.prediction).of(0, batch)[0])
    return kept


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    mirror, _ = measured()
    mirror.assume(replace(pod_of(NEW), node_name=""), "n1", 0.0)
    assert millicores(mirror) == 400
    mirror.forget("new")
    assert millicores(mirror) == 0


def test_a_pod_counts_until_a_measurement_covers_its_start() -> None:
    mirror, state = measured(NEW)
    assert (millicores(mirror), state.pods(mirror.nodes.slots["n1"])) == (400, 1)
    tell(mirror, "Update", NEW.started(AFTER))
    assert millicores(mirror) == 400
    mirror.apply(ClusterEvent("Update", replace(metrics(), covers_pods_until=LATER)))
    assert (millicores(mirror), state.pods(mirror.nodes.slots["n1"])) == (0, 0)


def test_a_pod_that_has_not_started_counts_in_spite_of_later_measurements() -> None:
    mirror, _ = measured(NEW)
    mirror.apply(ClusterEvent("Update", replace(metrics(), covers_pods_until=LATER)))
    assert millicores(mirror) == 400


def test_an_earlier_measurement_than_the_last_one_lets_pods_count_again() -> None:
    mirror, _ = measured(NEW.started(COVERED))
    assert millicores(mirror) == 0
    mirror.apply(ClusterEvent("Update", replace(metrics(), covers_pods_until="2026-01-01T00:00:59Z")))
    assert millicores(mirror) == 400


def test_nothing_is_kept_of_a_node_without_a_measurement_and_all_is_counted_when_there_is_one() -> None:
    mirror, state = measured(NEW)
    mirror.apply(ClusterEvent("Delete", metrics()))
    assert (millicores(mirror), state.pods(mirror.nodes.slots["n1"])) == (0, 0)
    mirror.apply(ClusterEvent("Add", metrics()))
    assert millicores(mirror) == 400


def test_a_node_that_comes_after_its_measurement_and_its_pods_counts_them() -> None:
    mirror = mirror_of(NEW)
    mirror.apply(ClusterEvent("Add", metrics()))
    mirror.derived(STATE)
    tell(mirror, "Add", FOUR_CORES)
    assert millicores(mirror) == 400
    tell(mirror, "Delete", FOUR_CORES)
    tell(mirror, "Add", make_node("n2"))
    assert millicores(mirror, "n2") == 0


def test_a_pod_that_is_supposed_elsewhere_counts_there_until_the_end_of_the_supposition() -> None:
    mirror, _ = measured(NEW)
    with mirror.suppose() as supposed:
        supposed.remove(pod_of(NEW))
        assert int(mirror.derived(STATE).of(0, mirror.batch(["n1"]))[0]) == 0
    assert millicores(mirror) == 400


def test_other_limits_count_at_once() -> None:
    mirror, _ = measured(NEW)
    tell(mirror, "Update", NEW.limits(cpu="600m"))
    assert millicores(mirror) == 600


def test_no_sum_overflows() -> None:
    mirror, _ = measured(*(NEW.uid(f"u{number}").limits(cpu="9000P") for number in range(20)))
    assert millicores(mirror) == 20 * 2**50


def test_states_of_the_same_prediction_are_one() -> None:
    mirror, state = measured()
    assert mirror.derived(UnmeasuredBy(PredictedCpu(1.5, 1000))) is state
    assert mirror.derived(UnmeasuredBy(PredictedCpu(1.5, 999))) is not state


@pytest.mark.parametrize("nodes", [200])
def test_the_sums_grow_with_the_nodes(nodes: int) -> None:
    mirror, _ = measured(NEW)
    for number in range(nodes):
        name = f"more-{number}"
        tell(mirror, "Add", make_node(name), NEW.uid(name).on(name))
        mirror.apply(ClusterEvent("Add", replace(metrics(), name=name)))
    assert [millicores(mirror), millicores(mirror, f"more-{nodes - 1}")] == [400, 400]
