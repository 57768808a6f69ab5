"""Every pending pod with its class, oldest first."""

import asyncio
import tracemalloc
from collections.abc import Sequence

import pytest

from app.explain.explainer import Explainer
from app.explain.known_pods import KnownPods
from app.explain.pending import MAX_CLASSES, PendingPods, PendingPodsExplainer, PendingState
from app.feeds.freshness import OF_A_DUMP
from app.feeds.release import ReleaseTracker
from app.objects.decode_pod import decode_pod
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.verbs.request import RecentPods
from core.diagnosis.explained_profile import every_rule
from core.diagnosis.wakes import AwaitedVictim, victims_by_pod
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.groups import SchedulingGroup
from tests.app.short_pieces import ShortPieces
from tests.builders import PodBuilder, make_node, make_pod
from tests.conformance.engine import load
from tests.core.decoded import pod_of
from tests.core.profile_parts import affinity_profile

NOON = 1767268800.0  # 2026-01-01T12:00:00Z


def cluster(*pods: PodBuilder) -> ClusterMirror:
    nodes = [make_node(f"n{number}").allocatable(cpu=4, memory="8Gi", pods=10).obj() for number in (1, 2)]
    return load([], nodes, [pod.obj() for pod in pods])


def explainer_of(mirror: ClusterMirror, now: float = 0.0) -> PendingPodsExplainer:
    work = LongWork()
    explainer = Explainer(
        every_rule(affinity_profile()),
        KnownPods(mirror, RecentPods(), work),
        None,
        OF_A_DUMP,
        release=ReleaseTracker(Settings(), mirror),
    )
    return PendingPodsExplainer(explainer, work, lambda: NOON, waits=lambda: victims_by_pod(mirror, now))


def pending(mirror: ClusterMirror, namespace: str | None = None) -> PendingPods:
    explainer = explainer_of(mirror)
    return explainer.view(asyncio.run(explainer.judge()), namespace).message()


def test_pods_are_told_oldest_first_with_how_long_they_wait() -> None:
    message = pending(
        cluster(
            make_pod("unknown"),
            make_pod("young").created("2026-01-01T11:59:00Z").unschedulable("0/2 nodes", "2026-01-01T11:59:30Z"),
            make_pod("old").created("2026-01-01T11:00:00Z").nominated("n1"),
            make_pod("bound").on("n1"),
            make_pod("deleted").terminating(),
        )
    )
    assert [(each.pod, each.seconds) for each in message.pods] == [
        ("default/old", 3600.0),
        ("default/young", 60.0),
        ("default/unknown", None),
    ]
    assert message.pods[0].nominated_node == "n1"
    condition = message.pods[1].condition
    assert condition is not None
    assert (condition.reason, condition.message, condition.since) == (
        "Unschedulable",
        "0/2 nodes",
        "2026-01-01T11:59:30Z",
    )


def test_pods_that_plugins_cannot_tell_apart_are_judged_once_and_by_every_rule() -> None:
    large = [make_pod(f"large-{number}").requests(cpu=5).created(f"2026-01-01T0{number}:00:00Z") for number in (1, 2)]
    message = pending(cluster(*large, make_pod("small").requests(cpu=1)))
    assert [each.place for each in message.pods] == [0, 0, 1]
    first, second = message.classes
    assert (first.pods, first.first_pod, first.oldest) == (2, "default/large-1", "2026-01-01T01:00:00Z")
    assert (first.state, first.nodes, first.fit) == (PendingState.UNSCHEDULABLE, 2, 0)
    assert (first.plugin, first.first_reason) == ("NodeResourcesFit", "Insufficient cpu")
    assert first.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert (second.state, second.fit, second.first_reason) == (PendingState.FITS, 2, "")
    assert [each.state for each in message.pods] == [PendingState.UNSCHEDULABLE] * 2 + [PendingState.FITS]
    assert first.helps
    assert "cpu" in first.helps[0]
    assert second.helps == []


def test_a_pod_that_waits_for_victims_of_preemption_says_for_which_and_since_when() -> None:
    high, other = make_pod("high").priority(9).nominated("n1"), make_pod("other")
    victim = make_pod("low").in_namespace("shop").uid("v").on("n1").terminating()
    mirror = cluster(high, other, victim)
    mirror.preemptors.follow(10.0)
    explainer = explainer_of(mirror, now=50.0)
    judged = asyncio.run(explainer.judge())
    waits = {each.pod: each.waits_for for each in explainer.view(judged).message().pods}
    assert waits == {"default/high": [AwaitedVictim("shop/low", "v", "n1", 40.0)], "default/other": ()}
    assert {*judged.namespaces("default")} == {"default", "shop"}


def test_each_group_is_told_once_with_its_state() -> None:
    mirror = cluster(
        make_pod("alone").created("2026-01-01T11:00:00Z"),
        *(make_pod(f"m{number}").in_scheduling_group("team").created("2026-01-01T11:30:00Z") for number in range(2)),
        make_pod("x").in_namespace("shop").in_scheduling_group("team").created("2026-01-01T11:40:00Z"),
    )
    mirror.apply(ClusterEvent("Add", SchedulingGroup(namespace="default", name="team", minimum=3)))
    message = pending(mirror)
    assert [(each.pod, each.unit) for each in message.pods] == [
        ("default/alone", None),
        ("default/m0", 0),
        ("default/m1", 0),
        ("shop/x", 1),
    ]
    assert [(each.unit, each.members, each.reason) for each in message.units] == [
        ("default/team", 2, "waits for 1 more member of 3"),
        ("shop/team", 1, "no PodGroup shop/team is known, and kube-scheduler waits for it"),
    ]


def test_gates_come_before_what_nodes_say() -> None:
    (message,) = pending(cluster(make_pod("p").gated("example.com/wait"))).pods
    assert (message.state, message.gates) == (PendingState.GATED, ("example.com/wait",))


def test_a_namespace_has_its_own_pods_and_classes() -> None:
    mirror = cluster(
        make_pod("a").requests(cpu=9), make_pod("b").in_namespace("shop").requests(cpu=8), make_pod("c").requests(cpu=8)
    )
    message = pending(mirror, "shop")
    assert [(each.pod, each.place) for each in message.pods] == [("shop/b", 0)]
    assert [each.first_pod for each in message.classes] == ["shop/b"]
    assert pending(mirror, "nowhere").pods == []


def test_a_pod_whose_claim_does_not_exist_is_unschedulable() -> None:
    pod = make_pod("p").obj()
    pod["spec"] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    (message,) = pending(load([], [make_node("n1").allocatable(pods=10).obj()], [pod])).classes
    assert (message.state, message.fit, message.not_judged) == (PendingState.UNSCHEDULABLE, 0, [])
    assert message.reasons[0].plugin == "DynamicResources"


def test_assumed_pods_do_not_wait() -> None:
    mirror = cluster(make_pod("p"))
    mirror.assume(pod_of(make_pod("p")), "n1", 0.0)
    assert pending(mirror).pods == []


def test_pods_that_are_bound_while_others_are_judged_are_left_out() -> None:
    mirror = cluster(make_pod("p"), make_pod("q"))

    class Binding(LongWork):
        """Binds a pod when the second piece of work begins."""

        pieces = 0

        async def wait_until_idle(self) -> None:
            self.pieces += 1
            mirror.apply(ClusterEvent("Update", pod_of(make_pod("p").on("n1"))))

    explainer = explainer_of(mirror)
    explainer._work = Binding()  # noqa: SLF001  # the moment between two pieces is not seen from outside
    assert [each.pod for each in explainer.view(asyncio.run(explainer.judge())).message().pods] == ["default/q"]


def test_pods_that_are_bound_while_others_are_told_are_left_out() -> None:
    mirror = cluster(make_pod("p"), make_pod("q"))
    explainer = explainer_of(mirror)
    view = explainer.view(asyncio.run(explainer.judge()))
    message = view.pods()
    assert next(message).pod == "default/p"
    mirror.apply(ClusterEvent("Update", pod_of(make_pod("q").on("n1"))))
    assert [*message] == []
    assert [each.pods for each in view.classes()] == [1]


def test_no_more_than_a_few_hundred_pods_are_looked_at_in_one_step() -> None:
    count = 1200
    mirror = cluster(*(make_pod(f"p{count - number}").requests(cpu=9) for number in range(count)))
    explainer = explainer_of(mirror)
    work = explainer._work = ShortPieces()  # noqa: SLF001  # its steps are not seen from outside
    judged = asyncio.run(explainer.judge())
    assert [pod.full_name for pod, _ in judged.pods] == sorted(f"default/p{number + 1}" for number in range(count))
    # The turn, three runs that are sorted, and every pod that is given its class.
    assert work.gave_way == 1 + 3 + count


def test_classes_beyond_the_limit_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.explain.pending.MAX_CLASSES", 2)
    message = pending(cluster(*(make_pod(f"p{number}").requests(cpu=number) for number in (1, 2, 3))))
    assert len(message.classes) == 2 < MAX_CLASSES
    assert [(each.state, each.place) for each in message.pods][-1] == (PendingState.NO_REQUEST, None)


def test_twenty_thousand_pending_pods_take_at_most_60_mb() -> None:
    count = 2000
    texts = [
        make_pod(f"web-{number}")
        .in_namespace("shop")
        .label("app", f"app-{number % 50}")
        .created("2026-01-01T00:00:00Z")
        .requests(cpu="100m", memory="1Gi")
        .unschedulable(f"0/5000 nodes are available: {number} Insufficient cpu. " * 10)
        .json()
        for number in range(count)
    ]
    # The lesser of two, because the interpreter's table of interned strings may grow meanwhile, by megabytes.
    taken = min(_memory_of(texts) for _ in range(2))
    assert taken * (20_000 / count) <= 60e6


def _memory_of(texts: Sequence[bytes]) -> int:
    mirror = ClusterMirror()
    tracemalloc.start()
    try:
        for text in texts:
            mirror.apply(ClusterEvent("Add", decode_pod(text)))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(mirror.pending) == len(texts)
    return taken
