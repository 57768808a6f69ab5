"""Where a pod may preempt others, and whom, while the mirror goes on changing."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from app.verbs.evictor import Evaluator
from app.verbs.executor import EvictionResult, Plan
from core.mirror.cluster import ClusterMirror
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.profile_parts import affinity_profile

HOST: Final = "kubernetes.io/hostname"
POD: Final = make_pod("p").priority(10).required_anti_affinity(term(HOST, labelled(app="web")))


def web(node: str, priority: int = 0) -> PodBuilder:
    return make_pod(f"web-{node}").uid(f"web-{node}").on(node).label("app", "web").priority(priority)


def cluster(*priorities: int) -> ClusterMirror:
    """Make a mirror of n0, n1 ... with a web pod of each priority."""
    names = [f"n{number}" for number in range(len(priorities))]
    nodes = [make_node(name).label(HOST, name) for name in names]
    return mirror_of(*nodes, *(web(name, priority) for name, priority in zip(names, priorities, strict=True)))


def planned(  # noqa: PLR0913 - what a case may set
    mirror: ClusterMirror,
    names: Sequence[str] | None = None,
    *,
    pod: PodBuilder = POD,
    first: int = 0,
    going: Mapping[str, Sequence[str]] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Plan | EvictionResult:
    """Plan for all nodes, or for some; `meanwhile` happens when the first few of them have been looked at."""
    evaluator = Evaluator(affinity_profile(), mirror, lambda _: first)

    async def change() -> None:
        meanwhile()

    async def main() -> Plan | EvictionResult:
        requested = [*mirror.nodes.slots] if names is None else names
        plan, _ = await asyncio.gather(evaluator.plan(pod_of(pod), requested, going or {}), change())
        return plan

    return asyncio.run(main())


def rendered(plan: Plan | EvictionResult) -> tuple[str, list[str]]:
    assert isinstance(plan, Plan), plan
    return plan.node, [pod.name for pod in plan.victims]


def test_the_node_where_it_does_the_least_harm_is_planned() -> None:
    assert rendered(planned(cluster(5, 3, 4))) == ("n1", ["web-n1"])
    assert rendered(planned(cluster(5, 3, 4), ["n0", "n2"])) == ("n2", ["web-n2"])


def test_all_nodes_are_looked_at_until_there_are_enough_candidates_beginning_with_any_one() -> None:
    assert rendered(planned(cluster(*[5] * 119, 3), first=30)) == ("n119", ["web-n119"])
    hundred_and_eight = planned(cluster(*[5] * 150, 3), first=20)
    assert rendered(hundred_and_eight)[0] != "n150", "104 others have been looked at before"
    assert rendered(planned(cluster(*[10] * 150, 3), first=0)) == ("n150", ["web-n150"])


@pytest.mark.parametrize(
    ("going", "waits"),
    [
        pytest.param({"n0": ("web-n0",)}, True, id="makes-room"),
        pytest.param({"n0": ("another",)}, False, id="makes-no-room"),
        pytest.param({"n1": ("web-n1",)}, True, id="though-of-higher-priority"),
        pytest.param({"elsewhere": ("web-n0",)}, False, id="on-a-node-that-was-not-asked-about"),
    ],
)
def test_a_pod_that_will_fit_when_others_are_gone_waits(going: Mapping[str, Sequence[str]], *, waits: bool) -> None:
    assert (planned(cluster(3, 20), going=going) is EvictionResult.WAITS) == waits


def others_come_and_go(mirror: ClusterMirror, *steps: tuple[str, PodBuilder]) -> Callable[[], None]:
    def change() -> None:
        for action, pod in steps:
            tell(mirror, "Delete" if action == "Delete" else "Add", pod)

    return change


def test_a_pod_that_fits_meanwhile_preempts_nobody() -> None:
    mirror = cluster(*[3] * 20)
    assert planned(mirror, meanwhile=others_come_and_go(mirror, ("Delete", web("n7", 3)))) is EvictionResult.FITS


@pytest.mark.parametrize("decided_here", [True, False], ids=["decided-here", "bound-by-another"])
def test_a_pod_that_got_a_node_meanwhile_preempts_nobody(*, decided_here: bool) -> None:
    mirror = cluster(*[3] * 20)
    pod = POD.label("app", "web")  # which fits there no second time

    def got_a_node() -> None:
        tell(mirror, "Delete", web("n7", 3))
        if decided_here:
            mirror.assume(pod_of(pod), "n7", 0.0)
        else:
            tell(mirror, "Add", pod.on("n7"))

    assert planned(mirror, pod=pod, meanwhile=got_a_node) is EvictionResult.FITS


def test_instead_of_a_node_that_has_become_hopeless_meanwhile_the_next_best_is_planned() -> None:
    mirror = cluster(1, 3, 2, *[3] * 20)
    higher = web("n0", 20).uid("another")
    assert rendered(planned(mirror))[0] == "n0"
    assert rendered(planned(mirror, meanwhile=others_come_and_go(mirror, ("Add", higher)))) == ("n2", ["web-n2"])


def test_where_all_candidates_have_become_hopeless_there_is_no_plan() -> None:
    mirror = cluster(1, *[10] * 20)
    higher = web("n0", 20).uid("another")
    assert planned(mirror, meanwhile=others_come_and_go(mirror, ("Add", higher))) is EvictionResult.NO_CANDIDATE


def test_the_victims_are_those_of_the_end() -> None:
    mirror = cluster(1, *[3] * 20)
    second = web("n0", 2).uid("second")
    node, victims = rendered(planned(mirror, meanwhile=others_come_and_go(mirror, ("Add", second))))
    assert (node, len(victims)) == ("n0", 2)


def test_a_node_that_goes_away_meanwhile_is_passed_over() -> None:
    mirror = cluster(*[3] * 20)
    plan = planned(mirror, meanwhile=lambda: tell(mirror, "Delete", *(make_node(f"n{n}") for n in range(1, 20))))
    assert rendered(plan) == ("n0", ["web-n0"])


def test_a_pod_that_never_preempts_and_one_for_which_nothing_helps_have_no_plan() -> None:
    assert planned(cluster(3), pod=POD.preemption_policy("Never")) is EvictionResult.NEVER
    assert planned(cluster(10, 11)) is EvictionResult.NO_CANDIDATE


@pytest.mark.parametrize(
    ("nominated", "waits"),
    [
        pytest.param("n0", True, id="victims-there"),
        pytest.param("n1", False, id="nobody-terminates-there"),
        pytest.param("gone", False, id="no-such-node"),
        pytest.param("n2", True, id="a-node-that-was-not-asked-about"),
    ],
)
def test_a_pod_waits_for_victims_on_its_nominated_node(nominated: str, *, waits: bool) -> None:
    mirror = cluster(3, 3, 3)
    tell(mirror, "Update", web("n0", 3).preempted(), web("n2", 3).preempted())
    plan = planned(mirror, ["n0", "n1"], pod=POD.nominated(nominated))
    assert (plan is EvictionResult.WAITS) == waits
