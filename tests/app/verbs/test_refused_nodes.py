"""Which refused nodes are remembered, for how long, and as which nodes."""

from collections.abc import Sequence

import numpy as np
import pytest

from app.verbs.effects import RejectedNodes
from core.events import ClusterEvent
from core.framework.interface import SUCCESS, Code, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from tests.builders import PodBuilder, make_node, make_pod
from tests.core.decoded import mirror_of, node_of, tell

STATUSES = (
    SUCCESS,
    Status(Code.UNSCHEDULABLE, ("full",)),
    Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never",)),
    Status(Code.UNSCHEDULABLE, ("repelled",)),
)
FITS, FULL, NEVER, REPELLED = range(4)


def cluster(nodes: int = 4, *pods: PodBuilder) -> ClusterMirror:
    return mirror_of(*(make_node(f"n{number}") for number in range(nodes)), *pods)


class Noting:
    """Refused nodes of a mirror, at a time that can be set."""

    def __init__(self, mirror: ClusterMirror, *, tells: bool = False) -> None:
        self.now = 100.0
        self._mirror = mirror
        self.reported: list[tuple[str, int]] = []
        rejected_everywhere = (lambda pod, size: self.reported.append((pod.uid, size))) if tells else None
        self._rejected = RejectedNodes(mirror, lambda: self.now, rejected_everywhere)

    def note(self, codes: Sequence[int], uid: str = "u", names: Sequence[str] = ("n0", "n1", "n2", "n3")) -> None:
        """Take note of verdicts."""
        verdicts = Verdicts(np.array(codes, np.int64), STATUSES)
        self._rejected.note(Pod(uid, "default", uid), self._mirror.batch(names[: len(codes)]), verdicts)

    def all_of_last_filter(self) -> list[str]:
        """Return the names."""
        return self._rejected.all_of_last_filter(Pod("u", "default", "u"))

    def known_of(self, pod: Pod) -> tuple[list[str], list[str]]:
        """Return the names of this attempt, and of the last filter, for a state of a pod."""
        return self._rejected.of_this_attempt(pod), self._rejected.all_of_last_filter(pod)

    def known(self, uid: str = "u") -> list[str]:
        """Return the names."""
        return self._rejected.of_this_attempt(Pod(uid, "default", uid))


def test_the_nodes_that_preemption_might_help_on_are_remembered() -> None:
    noting = Noting(cluster())
    noting.note([REPELLED, FITS, NEVER, FULL])
    assert noting.known() == ["n0", "n3"]
    assert noting.known("another") == []


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param([FITS, FULL], ["n1"], id="others"),
        pytest.param([FITS], [], id="fits"),
        pytest.param([NEVER, NEVER], [], id="hopeless"),
        pytest.param([], [], id="nothing-asked"),
    ],
)
def test_the_last_filter_counts(codes: list[int], expected: list[str]) -> None:
    noting = Noting(cluster())
    noting.note([FULL, FITS])
    noting.note(codes)
    assert noting.known() == expected


def test_a_node_that_is_not_known_is_not_remembered() -> None:
    noting = Noting(cluster())
    noting.note([FULL, FULL], names=["stranger", "n1"])
    assert noting.known() == ["n1"]


def test_a_moment_is_one_second() -> None:
    noting = Noting(cluster())
    noting.note([FULL])
    noting.now = 101.0
    assert noting.known() == ["n0"]
    noting.now = 101.001
    assert noting.known() == []


def test_a_node_that_has_gone_is_forgotten_and_whoever_takes_its_place_is_not_taken_for_it() -> None:
    mirror = cluster()
    noting = Noting(mirror)
    noting.note([FULL, FULL, FULL])
    tell(mirror, "Delete", make_node("n1"))
    assert noting.known() == ["n0", "n2"]
    tell(mirror, "Add", make_node("new"))
    assert mirror.nodes.slots["new"] == 1
    assert noting.known() == ["n0", "n2"]
    noting.note([FULL, FULL], names=["n0", "new"])
    assert noting.known() == ["n0", "new"]


def test_a_node_that_only_changes_is_still_the_same() -> None:
    mirror = cluster()
    noting = Noting(mirror)
    noting.note([FULL])
    mirror.apply(ClusterEvent("Update", node_of(make_node("n0").label("a", "b"))))
    tell(mirror, "Add", make_pod("p").on("n0"))
    assert noting.known() == ["n0"]


def test_as_many_pods_are_remembered_as_recent_pods() -> None:
    noting = Noting(cluster())
    for number in (*range(4096), 0, 4096):
        noting.note([FULL], str(number))
    assert [bool(noting.known(str(number))) for number in (0, 1, 2, 4096)] == [True, False, True, True]


def test_no_more_than_eight_mebibytes_are_kept() -> None:
    noting = Noting(cluster(40_000))
    for number in range(1_700):
        noting.note([FULL], str(number))
    remembered = [number for number in range(1_700) if noting.known(str(number))]
    assert remembered == list(range(remembered[0], 1_700)), "the oldest go first"
    assert 1_500 < len(remembered) < 1_690, "5 KB each"
    for _ in range(5_000):
        noting.note([FULL], "1699")
    assert noting.known(str(remembered[0])) == ["n0"], "one that is noted again takes no more room"


# Pods that no node was left for.


@pytest.mark.parametrize(
    ("codes", "reported"),
    [
        pytest.param([FULL, NEVER, REPELLED], True, id="refused-everywhere"),
        pytest.param([FULL, FITS], False, id="fits-somewhere"),
        pytest.param([NEVER, NEVER], False, id="nothing-would-help"),
    ],
)
def test_a_pod_that_preemption_may_help_and_nothing_else_is_told_with_how_many_nodes_it_was(
    codes: list[int], *, reported: bool
) -> None:
    noting = Noting(cluster(4, make_pod("low").priority(-1).on("n0")), tells=True)
    noting.note(codes)
    assert noting.reported == ([("u", len(codes))] if reported else [])
    assert noting.all_of_last_filter() == ([f"n{number}" for number in range(len(codes))] if reported else [])


def test_a_pod_that_is_more_important_than_no_other_is_not_told() -> None:
    noting = Noting(cluster(4, make_pod("equal").priority(0).on("n0")), tells=True)
    noting.note([FULL, FULL])
    assert noting.reported == []
    assert noting.all_of_last_filter() == ["n0", "n1"]


def test_all_nodes_of_the_last_filter_are_known_for_as_long_as_it_was_the_last() -> None:
    noting = Noting(cluster(), tells=True)
    noting.note([FULL, NEVER, NEVER])
    noting.now += 3600
    assert noting.all_of_last_filter() == ["n0", "n1", "n2"]
    noting.note([FULL, NEVER])
    assert noting.all_of_last_filter() == ["n0", "n1"]
    noting.note([FULL, FITS])
    assert noting.all_of_last_filter() == []


def test_where_nobody_is_told_no_room_is_taken_for_it() -> None:
    noting = Noting(cluster())
    noting.note([FULL, NEVER])
    assert (noting.known(), noting.all_of_last_filter()) == (["n0"], [])


def test_a_rejection_of_another_state_of_the_pod_is_no_reason_to_preempt_for_it() -> None:
    noting = Noting(cluster())
    noting.note([REPELLED, REPELLED, REPELLED, REPELLED])
    assert noting.known() == ["n0", "n1", "n2", "n3"]
    changed = Pod("u", "default", "u", requests={"cpu": 1})
    assert noting.known_of(changed) == ([], [])
    assert noting.known_of(Pod("u", "default", "u", resource_version="8", nominated_node_name="n0"))[0] != []
