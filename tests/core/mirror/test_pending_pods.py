"""Which pods have no node, and which of them are nominated for one, after events in any order."""

import pytest
from msgspec.structs import replace

from app.objects.decode_pod import decode_pod
from core.events import Action, ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import UNSEEN, Group, Rule
from core.objects.groups import DEFAULT_TIMEOUT, SPREAD, Packing, PackingWay, PodGroup, SchedulingGroup
from core.objects.pod import Pod
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of, tell

P = make_pod("p").uid("u")


def showing(*pods: PodBuilder) -> ClusterMirror:
    """Return a mirror that has seen these states, one after the other."""
    mirror = ClusterMirror()
    for pod in pods:
        mirror.apply(ClusterEvent("Update", decode_pod(pod.json())))
    return mirror


def stored(mirror: ClusterMirror) -> list[Pod]:
    return list(mirror.pending)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(P.on("n1"), id="bound"),
        pytest.param(P.phase("Failed"), id="failed"),
        pytest.param(P.on("n1").phase("Succeeded"), id="succeeded"),
    ],
)
def test_a_pod_is_pending_until_it_is_bound_or_has_ended(after: PodBuilder) -> None:
    mirror = showing(P.nominated("n2"), after)
    assert stored(mirror) == []
    assert mirror.pending.nominated == {}


def test_each_change_of_the_pending_pods_is_counted_and_no_other() -> None:
    counts = [
        showing(*states).pending.changes for states in ((), (P,), (P, P.priority(1)), (P, P.priority(1), P.on("n1")))
    ]
    assert counts == sorted(set(counts))
    after = showing(P, P.priority(1), P.on("n1"), P.on("n1").priority(2), make_pod("q").on("n1"))
    assert after.pending.changes == counts[-1]


def test_an_assumed_pod_is_pending_until_the_watch_confirms_it() -> None:
    mirror = showing(P)
    mirror.assume(decode_pod(P.json()), "n1", 0)
    mirror.apply(ClusterEvent("Update", decode_pod(P.priority(1).json())))
    assert "u" in mirror.pending
    mirror.apply(ClusterEvent("Update", decode_pod(P.on("n1").json())))
    assert "u" not in mirror.pending


def test_a_nomination_moves_and_ends() -> None:
    other = make_pod("q").uid("v").nominated("n1")
    mirror = showing(P.nominated("n1"), other)
    assert {"n1": {"u", "v"}} == {node: set(pods) for node, pods in mirror.pending.nominated.items()}
    mirror.apply(ClusterEvent("Update", decode_pod(P.nominated("n2").json())))
    assert (list(mirror.pending.nominated_for("n1")), list(mirror.pending.nominated_for("n2"))) == (["v"], ["u"])
    mirror.apply(ClusterEvent("Update", decode_pod(P.json())))
    assert (list(mirror.pending.nominated_for("n2")), list(mirror.pending.nominated)) == ([], ["n1"])


def test_who_expects_a_pod_is_called_when_the_watch_shows_it_and_not_afterwards() -> None:
    mirror = ClusterMirror()
    pod, calls = decode_pod(P.json()), list[str]()
    with mirror.pending.expecting("u", lambda: calls.append("one")):
        with mirror.pending.expecting("u", lambda: calls.append("other")):
            mirror.apply(ClusterEvent("Add", Pod("v", "default", "q")))
            assert calls == []
            mirror.apply(ClusterEvent("Add", pod))
            assert calls == ["one", "other"]
        mirror.apply(ClusterEvent("Update", pod))
        assert calls == ["one", "other", "one"]
    mirror.apply(ClusterEvent("Update", pod))
    assert calls == ["one", "other", "one"]


LOW = make_pod("low").on("n").terminating()
HIGH = make_pod("high").priority(10).nominated("n")


def waits(mirror: ClusterMirror, now: float) -> list[tuple[str, str, str, float]]:
    mirror.preemptors.follow(now)
    return [(each.preemptor.name, each.victim.name, each.node, each.since) for each in mirror.preemptors.waits()]


def waiting_cluster(*pods: PodBuilder) -> ClusterMirror:
    return mirror_of(make_node("n"), make_node("m"), *pods)


def uid(pod: PodBuilder) -> str:
    return pod_of(pod).uid


def test_a_nominated_pod_waits_for_less_important_pods_that_terminate_on_its_node() -> None:
    others = (make_pod("stays").on("n"), make_pod("equal").priority(10).on("n").terminating())
    mirror = waiting_cluster(HIGH, LOW, make_pod("elsewhere").on("m").terminating(), *others)
    assert waits(mirror, 1.0) == [("high", "low", "n", 1.0)]
    assert waits(mirror, 41.0) == [("high", "low", "n", 1.0)]


def test_several_pods_may_wait_for_one_victim_and_one_for_several() -> None:
    mirror = waiting_cluster(
        HIGH, LOW, make_pod("also").priority(5).nominated("n"), make_pod("second").on("n").terminating()
    )
    assert [each[:2] for each in waits(mirror, 0.0)] == [
        ("also", "low"),
        ("high", "low"),
        ("also", "second"),
        ("high", "second"),
    ]


def test_the_end_of_the_victim_releases_it_without_a_look() -> None:
    mirror = waiting_cluster(HIGH, LOW)
    assert len(waits(mirror, 0.0)) == 1
    tell(mirror, "Delete", LOW)
    assert list(mirror.preemptors.waits()) == []
    assert waits(mirror, 10.0) == []
    tell(mirror, "Add", LOW)
    assert waits(mirror, 11.0) == [("high", "low", "n", 11.0)]


def test_an_assumed_preemptor_has_its_room() -> None:
    mirror = waiting_cluster(HIGH, LOW)
    assert len(waits(mirror, 0.0)) == 1
    mirror.assume(pod_of(HIGH), "m", 1.0)
    assert list(mirror.preemptors.waits()) == []


def test_an_evicted_pod_is_waited_for_before_the_watch_shows_that_it_terminates() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = waiting_cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 5.0)
    assert waits(mirror, 6.0) == [("high", "low", "n", 5.0)]
    tell(mirror, "Update", LOW)
    assert waits(mirror, 5.0 + 2 * UNSEEN) == [("high", "low", "n", 5.0)]
    tell(mirror, "Delete", LOW)
    assert waits(mirror, 6.0 + 2 * UNSEEN) == []


def test_an_eviction_that_the_watch_never_shows_is_forgotten() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = waiting_cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 0.0)
    assert len(waits(mirror, UNSEEN - 1)) == 1
    assert waits(mirror, UNSEEN) == []


def test_a_pod_that_is_to_get_its_node_no_longer_waits_for_nobody() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = waiting_cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 0.0)
    tell(mirror, "Update", preemptor.nominated("m"))
    assert list(mirror.preemptors.waits()) == []
    tell(mirror, "Update", preemptor)
    mirror.preemptors.forget(uid(preemptor))
    assert waits(mirror, 1.0) == []


def member(name: str, group: str = "train", minimum: int | str = 2) -> PodBuilder:
    return make_pod(name).of_group(group, minimum)


def of_object(name: str) -> PodBuilder:
    return make_pod(name).label("scheduling.x-k8s.io/pod-group", "train")


def seen(*pods: PodBuilder) -> ClusterMirror:
    mirror = ClusterMirror()
    tell(mirror, "Update", *pods)
    return mirror


def group_of(mirror: ClusterMirror) -> Group:
    (group,) = mirror.groups
    return group


def rule_of(mirror: ClusterMirror) -> Rule:
    return group_of(mirror).rule(mirror.objects(PodGroup))


def names(mirror: ClusterMirror) -> dict[str, list[str]]:
    return {group.key: [pod.name for pod in group.members.values()] for group in mirror.groups}


def test_members_are_kept_by_namespace_and_name_of_their_group() -> None:
    mirror = seen(member("a"), member("b"), member("c", "other"), member("d").in_namespace("shop"), make_pod("e"))
    assert names(mirror) == {"default/train": ["a", "b"], "default/other": ["c"], "shop/train": ["d"]}
    assert {uid: key.name for uid, key in mirror.groups.key_of.items()} == {
        "default/a": "default/train",
        "default/b": "default/train",
        "default/c": "default/other",
        "shop/d": "shop/train",
    }


def test_a_group_goes_with_its_last_member() -> None:
    mirror = seen(member("a"), member("b"))
    tell(mirror, "Delete", member("a"))
    assert names(mirror) == {"default/train": ["b"]}
    tell(mirror, "Update", member("b").on("n1").phase("Succeeded"))
    assert names(mirror) == {}
    assert not mirror.groups.key_of
    assert len(mirror.groups) == 0


def test_members_that_had_a_node_and_are_gone_are_counted_as_long_as_others_are_there() -> None:
    mirror = seen(member("a").on("n1"), member("b"), member("c"))
    tell(mirror, "Delete", member("a").on("n1"), member("b"))
    assert group_of(mirror).ended == 1


def test_a_member_may_change_its_group_or_leave_it() -> None:
    mirror = seen(member("a"), member("b"), member("a", "other"))
    assert names(mirror) == {"default/train": ["b"], "default/other": ["a"]}
    tell(mirror, "Update", make_pod("a"))
    assert names(mirror) == {"default/train": ["b"]}


def test_the_condition_of_a_failed_attempt_is_no_change_of_the_group() -> None:
    mirror = seen(member("a"))
    before = group_of(mirror).version
    tell(mirror, "Update", member("a").unschedulable("0/3 nodes are available"))
    assert group_of(mirror).version == before
    tell(mirror, "Update", member("a").gated("later"))
    assert group_of(mirror).version > before


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([member("a", minimum=3)], Rule(3, DEFAULT_TIMEOUT)),
        ([make_pod("a").of_group("train", 3, 20), member("b", minimum="")], Rule(3, 20)),
        ([make_pod("a").of_group("train", 3, 20), make_pod("b").of_group("train", 5, 10)], Rule(5, 10)),
        ([member("a", minimum="")], Rule(0, 0, "no member has the annotation kindred.dev/group-minimum")),
    ],
)
def test_annotations_make_the_rule(pods: list[PodBuilder], expected: Rule) -> None:
    assert expected == rule_of(seen(*pods))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "501", "9999999999", "٣"])
def test_a_minimum_that_is_none_is_told_with_its_annotation(text: str) -> None:
    problem = rule_of(seen(member("a"), member("b", minimum=text))).problem
    assert problem == f"metadata.annotations[kindred.dev/group-minimum]: expected a number 1..500, got {text!r}"


@pytest.mark.parametrize(
    ("minimum", "timeout", "expected"),
    [
        (3, 0, Rule(3, DEFAULT_TIMEOUT)),
        (3, 10, Rule(3, 10)),
        (0, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got 0")),
        (-1, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got -1")),
        (501, 0, Rule(0, 0, "PodGroup default/train: spec.minMember must be 1..500, got 501")),
        (3, -1, Rule(0, 0, "PodGroup default/train: spec.scheduleTimeoutSeconds must be 1..3600, got -1")),
    ],
)
def test_a_pod_group_has_the_rule_of_its_members(minimum: int, timeout: int, expected: Rule) -> None:
    mirror = seen(of_object("a"))
    group = PodGroup(namespace="default", name="train", minimum=minimum, timeout=timeout)
    before = group_of(mirror).version
    mirror.apply(ClusterEvent("Add", group))
    assert expected == rule_of(mirror)
    assert group_of(mirror).version > before


@pytest.mark.parametrize(
    ("stated", "packing"),
    [
        pytest.param(["", ""], SPREAD, id="no-member"),
        pytest.param(["", "pack"], Packing(PackingWay.PACK), id="one-member"),
        pytest.param(["pack", "pack"], Packing(PackingWay.PACK), id="all-members"),
        pytest.param(
            ["pack", "spread"],
            Packing(problem="metadata.annotations[kindred.dev/group-packing]: members differ: pack, spread"),
            id="members-differ",
        ),
        pytest.param(
            ["pack", "dense"],
            Packing(
                problem="metadata.annotations[kindred.dev/group-packing]: expected spread, pack or near, got 'dense'"
            ),
            id="a-wrong-one",
        ),
    ],
)
def test_the_packing_is_what_members_say(stated: list[str], packing: Packing) -> None:
    mirror = seen(*(member(f"m{number}").packed(way) for number, way in enumerate(stated)))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == packing


def test_the_packing_of_a_pod_group_is_that_of_the_object() -> None:
    mirror = seen(of_object("a").packed("pack"))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == SPREAD
    near = Packing(PackingWay.NEAR, "rack")
    mirror.apply(ClusterEvent("Add", PodGroup(namespace="default", name="train", packing=near)))
    assert group_of(mirror).packing(mirror.objects(PodGroup)) == near


MEMBER = Pod("u", "ns", "m", scheduling_group="ns/g")


def reported(mirror: ClusterMirror, *objects: Pod | SchedulingGroup, action: Action = "Update") -> None:
    for each in objects:
        mirror.apply(ClusterEvent(action, each))


def group(minimum: int) -> SchedulingGroup:
    return SchedulingGroup(namespace="ns", name="g", minimum=minimum)


def test_members_are_kept_with_and_without_a_node_until_they_end() -> None:
    mirror = ClusterMirror()
    reported(mirror, MEMBER, replace(MEMBER, uid="u2", name="m2", node_name="n1"))
    assert list(mirror.scheduling_groups.members("ns/g")) == ["u", "u2"]
    reported(mirror, replace(MEMBER, uid="u2", node_name="n1", terminal=True))
    assert [*mirror.scheduling_groups.left] == ["ns/g"]
    reported(mirror, MEMBER, action="Delete")
    assert [*mirror.scheduling_groups.left] == ["ns/g"]  # it had no node
    assert not [*mirror.scheduling_groups]


def test_the_smallest_minimum_is_kept_as_long_as_the_group_or_a_member_exists() -> None:
    mirror = ClusterMirror()
    groups = mirror.scheduling_groups
    assert groups.smallest_minimum("ns/g") == 1
    reported(mirror, group(4), group(2), group(8), MEMBER)
    assert groups.smallest_minimum("ns/g") == 2
    reported(mirror, group(8), action="Delete")
    reported(mirror, group(8))
    assert groups.smallest_minimum("ns/g") == 2
    reported(mirror, MEMBER, action="Delete")
    reported(mirror, group(8), action="Delete")
    reported(mirror, group(8))
    assert groups.smallest_minimum("ns/g") == 8
