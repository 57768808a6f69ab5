"""Which predicate fails first, and which are asked again while pods are supposed to be gone."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from core.events import Kind
from core.framework.evaluation import Failure, FitChecks
from core.framework.interface import (
    SKIP,
    SUCCESS,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    Status,
    Verdicts,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from tests.builders import labelled, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of
from tests.core.plain_plugin import PlainPlugin

POD: Final = pod_of(make_pod("p"))
DISK: Final = Status(Code.UNSCHEDULABLE, ("disk",))
TAINT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("taint",))


class Fake(PlainPlugin, FilterPlugin[Pod]):
    """Fails nodes by name, is invalidated by the kinds, and notes which nodes it was asked about."""

    def __init__(self, name: str, fails: Mapping[str, Status], *kinds: Kind, skips: bool = False) -> None:
        self.name = name
        self.kinds: tuple[Kind, ...] = kinds
        self.fails = fails
        self.skips = skips
        self.asked: list[list[str]] = []
        self.invalidated_by = tuple(
            InvalidationRule(kind=kind, operations=(Operation.UPDATE,), scope=Scope.NODE, because="a test")
            for kind in kinds
        )

    def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        """Return the pod as the state."""
        return (SKIP, None) if self.skips else (SUCCESS, pod)

    def filter(self, _state: Pod, batch: NodeBatch) -> Verdicts:
        """Look the names up."""
        self.asked.append(list(batch.names))
        statuses = (SUCCESS, *dict.fromkeys(self.fails.values()))
        codes = [statuses.index(self.fails.get(name, SUCCESS)) for name in batch.names]
        return Verdicts(np.array(codes, np.uint8), statuses)


def test_the_first_predicate_that_fails_a_node_is_told_with_its_status() -> None:
    first, second = Fake("First", {"n2": TAINT}, Node), Fake("Second", {"n1": DISK, "n2": DISK}, Pod)
    mirror = mirror_of(make_node("n0"), make_node("n1"), make_node("n2"))
    checks = FitChecks(mirror, (Fake("Skips", {}, skips=True), first, second), POD, ["n2", "n0", "n1"])

    expected = [Failure(TAINT, "First"), None, Failure(DISK, "Second")]
    assert checks.failures() == expected
    assert [checks.failure(position) for position in range(3)] == expected


def test_only_predicates_that_read_pods_are_asked_again_and_only_about_the_node() -> None:
    reads, reads_not = Fake("Reads", {"n1": DISK}, Node, Pod), Fake("ReadsNot", {}, Node)
    checks = FitChecks(mirror_of(make_node("n0"), make_node("n1")), (reads_not, reads), POD, ["n0", "n1"])
    assert reads.asked == reads_not.asked == [["n0", "n1"]]

    reads.fails = {}
    assert checks.failure(1) is None
    assert reads.asked[1:] == [["n1"]]
    assert reads_not.asked[1:] == []
    assert checks.failures() == [None, Failure(DISK, "Reads")]


def test_a_predicate_that_has_nothing_to_say_with_all_pods_there_is_not_asked_again() -> None:
    skips = Fake("Skips", {"n0": DISK}, Pod, skips=True)
    checks = FitChecks(mirror_of(make_node("n0")), (skips,), POD, ["n0"])
    skips.skips = False
    assert checks.failure(0) is None


def test_predicates_after_the_one_that_fails_are_not_asked() -> None:
    first, second = Fake("First", {"n0": DISK}, Pod), Fake("Second", {}, Pod)
    checks = FitChecks(mirror_of(make_node("n0")), (first, second), POD, ["n0"])
    assert checks.failure(0) == Failure(DISK, "First")
    assert second.asked[1:] == []


class _Broken(Fake):
    """Fails in PreFilter."""

    def pre_filter(self, _mirror: ClusterMirror, _pod: Pod) -> tuple[Status, Pod | None]:
        """Fail."""
        return DISK, None


def test_a_pre_filter_that_fails_comes_before_all_filters() -> None:
    mirror = mirror_of(make_node("n0"), make_node("n1"))
    checks = FitChecks(mirror, (Fake("First", {"n0": TAINT}, Pod), _Broken("Second", {}, Pod)), POD, ["n0", "n1"])

    assert checks.failures() == [Failure(DISK, "Second")] * 2
    assert [checks.failure(position) for position in range(2)] == [Failure(DISK, "Second")] * 2


def test_an_empty_selector_of_a_spread_constraint_counts_only_pods_that_come_after_pre_filter() -> None:
    """Source: k8s.io/kubernetes podtopologyspread common.go (countPodsMatchSelector), filtering.go (updateWithPod)."""
    zone = "zone"
    nodes = (make_node(name).label(zone, name).allocatable(pods=9) for name in ("n0", "n1"))
    mirror = mirror_of(*nodes, make_pod("there").on("n0"), make_pod("there too").on("n0"))
    spread = pod_of(make_pod("p").spread(zone, labelled()))
    checks = FitChecks(mirror, (PodTopologySpread(),), spread, ["n0"])

    assert checks.failures() == [None]
    failure = checks.failure_beside(0, (pod_of(make_pod("nominated")),))
    assert failure is not None
    assert failure.plugin == "PodTopologySpread"
    assert checks.failure_beside(0, (pod_of(make_pod("of others").in_namespace("elsewhere")),)) is None
    assert checks.failures() == [None]
