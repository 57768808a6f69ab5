"""Which nominated pods count on which node when a pod is judged there, beyond what the golden cases reach."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pytest

from core.events import ClusterEvent, Kind
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, AnyFilter, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.plugins.noderesources.fit import NodeResourcesFit
from core.profile import Profile, full_profile
from core.scheduling_cycle import NO_REJECTIONS, OUT_OF_PARTITION, filter_nodes, nominated_on, rejections_by_nominated
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, node_of, pod_of, tell
from tests.core.mirror.audit import audit
from tests.core.plain_plugin import PlainPlugin

FULL: Final = full_profile()
HOST: Final = "kubernetes.io/hostname"
NO_CPU: Final = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",))
NODES: Final = tuple(
    make_node(f"n{number}").label(HOST, f"n{number}").allocatable(cpu=4, memory="8Gi", pods=10) for number in range(3)
)
NEXT: Final = make_pod("next").uid("next").priority(5).image("i").requests(cpu=2)


def waiting(name: str, node: str = "n1", cpu: int = 3) -> PodBuilder:
    return make_pod(name).uid(name).priority(5).image("i").requests(cpu=cpu).nominated(node)


def statuses(mirror: ClusterMirror, pod: PodBuilder = NEXT, names: Sequence[str] = ("n0", "n1", "n2")) -> list[Status]:
    batch = mirror.batch(list(names))
    verdicts = filter_nodes(FULL, FreshEvaluation(mirror, pod_of(pod)), batch)
    return [verdicts.status(position) for position in range(len(batch))]


def test_a_nominated_pod_takes_its_room_on_its_node_alone() -> None:
    assert statuses(mirror_of(*NODES, waiting("a"))) == [SUCCESS, NO_CPU, SUCCESS]


@pytest.mark.parametrize(
    ("nominated", "counts"),
    [
        pytest.param(waiting("a"), True, id="same-priority"),
        pytest.param(waiting("a").priority(6), True, id="greater-priority"),
        pytest.param(waiting("a").priority(4), False, id="lower-priority"),
        pytest.param(waiting("a").uid("next"), False, id="the-pod-itself"),
        pytest.param(waiting("a").in_namespace("other"), True, id="another-namespace"),
        pytest.param(waiting("a", ""), False, id="not-nominated"),
    ],
)
def test_others_count_that_are_no_less_important(nominated: PodBuilder, counts: bool) -> None:  # noqa: FBT001 - a column
    assert statuses(mirror_of(*NODES, nominated))[1] == (NO_CPU if counts else SUCCESS)


def test_a_nominated_pod_counts_until_it_is_bound_gone_or_nominated_elsewhere() -> None:
    mirror = mirror_of(*NODES, waiting("a"))
    tell(mirror, "Update", waiting("a", "n2"))
    assert statuses(mirror) == [SUCCESS, SUCCESS, NO_CPU]
    tell(mirror, "Update", waiting("a", "n2").on("n0"))
    assert statuses(mirror) == [NO_CPU, SUCCESS, SUCCESS]
    tell(mirror, "Delete", waiting("a", "n2").on("n0"))
    assert statuses(mirror) == [SUCCESS] * 3


def test_an_assumed_pod_counts_by_its_assumption_and_not_by_its_nomination() -> None:
    mirror = mirror_of(*NODES, waiting("a"))
    mirror.assume(pod_of(waiting("a")), "n0", 0)
    assert statuses(mirror) == [NO_CPU, SUCCESS, SUCCESS]
    mirror.forget("a")
    assert statuses(mirror) == [SUCCESS, NO_CPU, SUCCESS]


def test_a_pod_may_not_lean_on_a_nominated_one() -> None:
    mirror = mirror_of(*NODES, waiting("a", cpu=1).label("app", "db"))
    wants = NEXT.required_affinity(term(HOST, labelled(app="db")))
    assert {each.code for each in statuses(mirror, wants)} == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_a_failure_beside_nominated_pods_is_the_status_where_the_node_fails_without_them_too() -> None:
    running = make_pod("r").on("n1").image("i").label("app", "x")
    mirror = mirror_of(*NODES, running, waiting("a"))
    shuns = NEXT.required_anti_affinity(term(HOST, labelled(app="x")))
    assert statuses(mirror, shuns)[1] == NO_CPU
    assert statuses(mirror_of(*NODES, running), shuns)[1].reasons == ("node(s) didn't match pod anti-affinity rules",)


def test_a_nominated_pod_that_terminates_is_spread_against() -> None:
    labels = waiting("a", cpu=0).label("app", "x").terminating()
    spread = NEXT.label("app", "x").spread(HOST, labelled(app="x"))
    assert statuses(mirror_of(*NODES, labels), spread)[1].reasons == (
        "node(s) didn't match pod topology spread constraints",
    )


@pytest.mark.parametrize("names", [["n1"], ["n2", "n1"], ["n0", "n1", "n2"]], ids=["one", "two", "more-than-nominated"])
def test_a_node_is_judged_alike_in_a_small_and_in_a_large_request(names: list[str]) -> None:
    mirror = mirror_of(*NODES, waiting("a"), waiting("b", "gone"))
    found = rejections_by_nominated(mirror, FULL.filters, pod_of(NEXT), mirror.batch(names))
    assert {names[position]: rejection.failure.plugin for position, rejection in found.items()} == {
        "n1": "NodeResourcesFit"
    }
    assert [pod.name for rejection in found.values() for pod in rejection.nominated] == ["a"]


def test_nodes_that_are_not_asked_about_unknown_or_out_of_the_partition_are_left_alone() -> None:
    mirror = mirror_of(*NODES, waiting("a"), waiting("b", "new"), waiting("c", "n2"))
    mirror.set_node_out_of_partition("n2")
    foreign = node_of(make_node("new").allocatable(cpu=4, memory="8Gi", pods=10))
    batch = mirror.batch(["n0", "new", "n2"], {1: foreign})
    assert rejections_by_nominated(mirror, FULL.filters, pod_of(NEXT), batch) == {}
    verdicts = filter_nodes(FULL, FreshEvaluation(mirror, pod_of(NEXT)), batch)
    assert [verdicts.status(position) for position in range(3)] == [SUCCESS, SUCCESS, OUT_OF_PARTITION]


def test_without_nominations_nothing_is_asked() -> None:
    mirror = mirror_of(*NODES)
    assert rejections_by_nominated(mirror, (), pod_of(NEXT), mirror.batch(["n0"])) is NO_REJECTIONS
    tell(mirror, "Add", waiting("a").priority(1))
    assert rejections_by_nominated(mirror, (), pod_of(NEXT), mirror.batch(["n1"])) is NO_REJECTIONS


@dataclass(frozen=True)
class Counting(PlainPlugin, FilterPlugin[int]):
    """Tells how many pods it has seen on any node; where it `skips`, its PreFilter has nothing to say."""

    requested: list[int] = field(default_factory=list)
    skips: bool = False
    name: str = "Counting"
    kinds: tuple[Kind, ...] = (Pod,)
    invalidated_by: tuple[InvalidationRule, ...] = (
        InvalidationRule(kind=Pod, operations=tuple(Operation), scope=Scope.ALL, because="it counts pods"),
    )

    def pre_filter(self, mirror: ClusterMirror, _pod: Pod) -> tuple[Status, int | None]:
        """Count the pods."""
        return (SKIP, None) if self.skips else (SUCCESS, len(list(mirror.placed_pods())))

    def filter(self, state: int, batch: NodeBatch) -> Verdicts:
        """Pass all nodes."""
        self.requested.append(state)
        return Verdicts(np.zeros(len(batch), np.uint8), (SUCCESS,))


def requested_of(plugin: Counting, *filters: AnyFilter) -> list[int]:
    mirror = mirror_of(*NODES, waiting("a"), waiting("b", "n2"), waiting("c", "n2"))
    rejections_by_nominated(mirror, (plugin, *filters), pod_of(NEXT), mirror.batch(["n0", "n1", "n2"]))
    return plugin.requested


def test_pods_nominated_for_other_nodes_do_not_exist_for_a_node() -> None:
    assert requested_of(Counting()) == [0, 1, 2]


def test_a_plugin_whose_prefilter_skips_is_not_asked_beside_nominated_pods_either() -> None:
    assert requested_of(Counting(skips=True), NodeResourcesFit()) == []


def test_the_mirror_is_as_it_was_afterwards_and_so_is_the_work_of_the_evaluation() -> None:
    mirror = mirror_of(*NODES, waiting("a"), waiting("b", "n2"))
    mirror.work.limit = 10_000_000
    mirror.work.spend(77, "spec", 1)
    before = mirror.dump()
    assert rejections_by_nominated(mirror, FULL.filters, pod_of(NEXT), mirror.batch(["n0", "n1", "n2"]))
    assert (mirror.dump(), audit(mirror), mirror.work.spent) == (before, [], 77)


def test_a_pod_that_takes_too_much_work_beside_nominated_pods_is_refused() -> None:
    mirror = mirror_of(*NODES, *(waiting(f"a{number}") for number in range(3)))
    mirror.work.limit = 1_000
    with pytest.raises(WorkLimitError):
        rejections_by_nominated(mirror, FULL.filters, pod_of(NEXT), mirror.batch(["n1"]))
    assert audit(mirror) == []


def test_a_terminating_pod_is_told_as_one_that_runs() -> None:
    mirror = mirror_of(*NODES, waiting("a").terminating(), waiting("b"))
    assert [(each.name, each.terminating) for each in nominated_on(mirror, pod_of(NEXT), "n1")] == [
        ("a", False),
        ("b", False),
    ]


def test_nodes_refused_for_one_reason_share_a_status() -> None:
    mirror = mirror_of(*NODES, waiting("a", "n0"), waiting("b"), waiting("c", "n2"))
    profile = Profile(FULL.filters, ())
    verdicts = filter_nodes(profile, FreshEvaluation(mirror, pod_of(NEXT)), mirror.batch(["n0", "n1", "n2"]))
    assert verdicts.statuses.count(NO_CPU) == 1
    assert verdicts.codes.tolist() == [verdicts.statuses.index(NO_CPU)] * 3


def test_an_event_for_another_pod_changes_nothing() -> None:
    mirror = mirror_of(*NODES, waiting("a"))
    mirror.apply(ClusterEvent("Delete", pod_of(waiting("other"))))
    assert statuses(mirror)[1] == NO_CPU
