"""Who waits for whose end: by nominations and evictions, until one of both is gone."""

from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import UNSEEN
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of, tell

LOW = make_pod("low").on("n").terminating()
HIGH = make_pod("high").priority(10).nominated("n")


def waits(mirror: ClusterMirror, now: float) -> list[tuple[str, str, str, float]]:
    mirror.preemptors.follow(now)
    return [(each.preemptor.name, each.victim.name, each.node, each.since) for each in mirror.preemptors.waits()]


def cluster(*pods: PodBuilder) -> ClusterMirror:
    return mirror_of(make_node("n"), make_node("m"), *pods)


def uid(pod: PodBuilder) -> str:
    return pod_of(pod).uid


def test_a_nominated_pod_waits_for_less_important_pods_that_terminate_on_its_node() -> None:
    others = (make_pod("stays").on("n"), make_pod("equal").priority(10).on("n").terminating())
    mirror = cluster(HIGH, LOW, make_pod("elsewhere").on("m").terminating(), *others)
    assert waits(mirror, 1.0) == [("high", "low", "n", 1.0)]
    assert waits(mirror, 41.0) == [("high", "low", "n", 1.0)]


def test_it_is_shown_from_the_next_look_on() -> None:
    mirror = cluster(HIGH, LOW)
    assert list(mirror.preemptors.waits()) == []
    mirror.preemptors.follow(0.0)
    assert [each.victim.name for each in mirror.preemptors.of_preemptor(uid(HIGH))] == ["low"]
    assert list(mirror.preemptors.of_preemptor(uid(LOW))) == []


def test_several_pods_may_wait_for_one_victim_and_one_for_several() -> None:
    mirror = cluster(HIGH, LOW, make_pod("also").priority(5).nominated("n"), make_pod("second").on("n").terminating())
    assert [each[:2] for each in waits(mirror, 0.0)] == [
        ("also", "low"),
        ("high", "low"),
        ("also", "second"),
        ("high", "second"),
    ]


def test_the_end_of_the_victim_releases_it_without_a_look() -> None:
    mirror = cluster(HIGH, LOW)
    assert len(waits(mirror, 0.0)) == 1
    tell(mirror, "Delete", LOW)
    assert list(mirror.preemptors.waits()) == []
    assert waits(mirror, 10.0) == []
    tell(mirror, "Add", LOW)
    assert waits(mirror, 11.0) == [("high", "low", "n", 11.0)]


def test_the_end_of_the_preemptor_releases_it() -> None:
    for ended in (HIGH.on("n"), HIGH.phase("Failed"), HIGH.nominated("m")):
        mirror = cluster(HIGH, LOW)
        assert len(waits(mirror, 0.0)) == 1
        tell(mirror, "Update", ended)
        assert list(mirror.preemptors.waits()) == []
    mirror = cluster(HIGH, LOW)
    tell(mirror, "Delete", HIGH)
    assert waits(mirror, 0.0) == []


def test_an_assumed_preemptor_has_its_room() -> None:
    mirror = cluster(HIGH, LOW)
    assert len(waits(mirror, 0.0)) == 1
    mirror.assume(pod_of(HIGH), "m", 1.0)
    assert list(mirror.preemptors.waits()) == []


def test_an_evicted_pod_is_waited_for_before_the_watch_shows_that_it_terminates() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 5.0)
    assert waits(mirror, 6.0) == [("high", "low", "n", 5.0)]
    tell(mirror, "Update", LOW)
    assert waits(mirror, 5.0 + 2 * UNSEEN) == [("high", "low", "n", 5.0)]
    tell(mirror, "Delete", LOW)
    assert waits(mirror, 6.0 + 2 * UNSEEN) == []


def test_an_eviction_that_the_watch_never_shows_is_forgotten() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 0.0)
    assert len(waits(mirror, UNSEEN - 1)) == 1
    assert waits(mirror, UNSEEN) == []


def test_a_pod_that_is_to_get_its_node_no_longer_waits_for_nobody() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "n", [uid(victim)], 0.0)
    tell(mirror, "Update", preemptor.nominated("m"))
    assert list(mirror.preemptors.waits()) == []
    tell(mirror, "Update", preemptor)
    mirror.preemptors.forget(uid(preemptor))
    assert waits(mirror, 1.0) == []


def test_a_victim_that_is_elsewhere_by_now_is_not_waited_for() -> None:
    preemptor, victim = make_pod("high").priority(10), make_pod("low").on("n")
    mirror = cluster(preemptor, victim)
    mirror.preemptors.evicted(uid(preemptor), "m", [uid(victim), "unknown"], 0.0)
    assert waits(mirror, 1.0) == []
