"""Several predicates: a composite has all reasons of its parts, and checks tell the first predicate that fails."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import numpy as np
import pytest

from core.events import Kind
from core.framework.evaluation import Composite, Failure, FitChecks, FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, AnyFilter, Code, FilterPlugin, Status, Verdicts, Versions
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from tests.builders import labelled, make_node, make_pod
from tests.core.decoded import mirror_of, pod_of
from tests.core.plain_plugin import PlainPlugin

A: Final = Status(Code.UNSCHEDULABLE, ("a",))
B: Final = Status(Code.UNSCHEDULABLE, ("b1", "b2"))
NEVER: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never",))
BROKEN: Final = Status(Code.ERROR, ("broken",))
WORSE: Final = Status(Code.ERROR, ("worse",))
NODES: Final = ("n1", "n2", "n3")
POD: Final = pod_of(make_pod("p"))

Failures = Mapping[str, Status]


class Part(PlainPlugin, FilterPlugin[Failures]):
    """Fails some nodes, by name; or says one thing of all nodes in its PreFilter."""

    name = "Part"
    kinds: tuple[Kind, ...] = (Node,)

    def __init__(self, failures: Failures | None = None, everywhere: Status = SKIP, version: int = 0) -> None:
        self._failures = failures
        self._everywhere = everywhere
        self._version = version

    def pre_filter(self, _mirror: ClusterMirror, _pod: Pod) -> tuple[Status, Failures | None]:
        return (self._everywhere, None) if self._failures is None else (SUCCESS, self._failures)

    def filter(self, state: Failures, batch: NodeBatch) -> Verdicts:
        statuses = (SUCCESS, *state.values())
        codes = [statuses.index(state.get(name, SUCCESS)) for name in batch.names]
        return Verdicts(np.array(codes, np.uint8), statuses)

    def filter_versions(self, _state: object) -> Versions:
        return (self._version,)


def found_of(*parts: AnyFilter) -> list[Status]:
    mirror = mirror_of(*map(make_node, NODES))
    verdicts = FreshEvaluation(mirror, POD).verdicts(Composite("Both", parts), mirror.batch(NODES))
    return [SUCCESS if verdicts is None else verdicts.status(at) for at in range(len(NODES))]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([Part({}), Part({})], [SUCCESS, SUCCESS, SUCCESS], id="nothing-fails"),
        pytest.param([Part({"n1": A}), Part({})], [A, SUCCESS, SUCCESS], id="the-first-fails"),
        pytest.param([Part({}), Part({"n2": B})], [SUCCESS, B, SUCCESS], id="the-second-fails"),
        pytest.param(
            [Part({"n1": A, "n2": A}), Part({"n2": B, "n3": B})],
            [A, Status(Code.UNSCHEDULABLE, ("a", "b1", "b2")), B],
            id="all-reasons-in-the-order-of-the-parts",
        ),
        pytest.param(
            [Part({"n1": NEVER}), Part({"n1": A})],
            [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")), SUCCESS, SUCCESS],
            id="unresolvable-if-the-first-is",
        ),
        pytest.param(
            [Part({"n1": A}), Part({"n1": B}), Part({"n1": NEVER})],
            [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a", "b1", "b2", "never")), SUCCESS, SUCCESS],
            id="unresolvable-if-the-last-is",
        ),
        pytest.param(
            [Part(everywhere=NEVER), Part({"n2": A})],
            [NEVER, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")), NEVER],
            id="a-part-that-fails-all-nodes-at-once-is-a-reason-on-all",
        ),
        pytest.param([Part(everywhere=SKIP), Part({"n1": A})], [A, SUCCESS, SUCCESS], id="a-part-that-skips-is-none"),
        # GeneralPredicates returns the error alone.
        pytest.param([Part({"n1": A}), Part({"n1": BROKEN})], [BROKEN, SUCCESS, SUCCESS], id="an-error-stands-alone"),
        pytest.param(
            [Part({"n1": BROKEN}), Part({"n1": A}), Part({"n1": WORSE})],
            [BROKEN, SUCCESS, SUCCESS],
            id="the-first-error-is-told",
        ),
        pytest.param([Part({"n1": A}), Part(everywhere=BROKEN)], [BROKEN] * 3, id="an-error-for-all-nodes"),
    ],
)
def test_a_node_has_all_reasons_of_all_failing_parts(parts: Sequence[Part], expected: Sequence[Status]) -> None:
    assert expected == found_of(*parts)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([Part(), Part()], SKIP, id="all-skip"),
        pytest.param([Part(everywhere=SUCCESS), Part()], SKIP, id="success-without-a-state-is-a-skip"),
        pytest.param([Part(), Part(everywhere=A)], A, id="one-fails"),
        pytest.param(
            [Part(everywhere=NEVER), Part(everywhere=A)],
            Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("never", "a")),
            id="all-fail",
        ),
        pytest.param([Part(everywhere=A), Part({}), Part(everywhere=BROKEN)], BROKEN, id="an-error"),
    ],
)
def test_without_a_state_of_any_part_one_status_is_that_of_all_nodes(parts: Sequence[Part], expected: Status) -> None:
    assert Composite("Both", parts).pre_filter(mirror_of(), POD) == (expected, None)


def test_any_number_of_different_statuses_can_be_combined() -> None:
    names = [f"n{number}" for number in range(700)]  # more pairs of statuses than 16 bits can tell apart
    nodes = mirror_of(*map(make_node, names))
    parts = []
    for prefix in ("x", "y"):
        failures = {name: Status(Code.UNSCHEDULABLE, (f"{prefix}{number // 2}",)) for number, name in enumerate(names)}
        parts.append(Wide(failures))
    verdicts = FreshEvaluation(nodes, POD).verdicts(Composite("Both", parts), nodes.batch(names))
    assert verdicts is not None
    expected = [(f"x{number // 2}", f"y{number // 2}") for number in range(700)]
    assert expected == [verdicts.status(at).reasons for at in range(700)]


class Wide(Part):
    """Has more statuses than 8 bits can tell apart."""

    def filter(self, state: Failures, batch: NodeBatch) -> Verdicts:
        codes = [1 + at for at in range(len(batch))]
        return Verdicts(np.array(codes, np.int64), (SUCCESS, *(state[name] for name in batch.names)))


def rule(kind: Kind, scope: Scope) -> InvalidationRule:
    return InvalidationRule(kind=kind, operations=(Operation.ADD,), scope=scope, because="it does")


class Reads(Part):
    """A part of which only what it tells of itself matters."""

    def __init__(self, kinds: Sequence[Kind], fields: Sequence[str], rules: Sequence[InvalidationRule]) -> None:
        super().__init__()
        self.kinds = tuple(kinds)
        self.class_fields = tuple(fields)
        self.invalidated_by = tuple(rules)


def test_what_a_composite_tells_of_itself_is_what_any_part_does() -> None:
    of_node, of_pods, of_names = rule(Node, Scope.NODE), rule(Pod, Scope.COUNTERS), rule(Namespace, Scope.ALL)
    composite = Composite(
        "Both",
        [
            Reads((Node, Pod), ("labels", "spread"), (of_node, of_pods)),
            Reads((Namespace, Node), ("spread", "affinity"), (of_names, of_node)),
        ],
    )
    assert composite.name == "Both"
    assert composite.kinds == (Node, Pod, Namespace)
    assert composite.class_fields == ("labels", "spread", "affinity")
    assert composite.invalidated_by == (of_node, of_pods, of_names)


class Refers(Part):
    """Refers to something."""

    def __init__(self, reference: Hashable) -> None:
        super().__init__()
        self._reference = reference

    def references(self, _mirror: ClusterMirror, _pod: Pod) -> Hashable:
        return self._reference


def test_a_composite_refers_to_what_its_parts_refer_to() -> None:
    def reference(*parts: Hashable) -> Hashable:
        return Composite("Both", [*map(Refers, parts)]).references(mirror_of(), POD)

    assert reference(None, None) is None
    assert len({reference("a", None), reference(None, "a"), reference("a", "b"), reference("b", "a")}) == 4
    assert reference("a", None) == reference("a", None)


def versions_of(*parts: Part) -> Versions:
    composite = Composite("Both", parts)
    _, state = composite.pre_filter(mirror_of(), POD)
    assert state is not None
    return composite.filter_versions(state)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([Part({}, version=2), Part({}, version=1)], id="the-counters-of-the-first"),
        pytest.param([Part({}, version=1), Part({}, version=2)], id="the-counters-of-the-second"),
        pytest.param([Part({}, version=1), Part()], id="a-part-that-skips-now"),
        pytest.param([Part({}, version=1), Part(everywhere=A)], id="a-part-that-fails-all-nodes-now"),
    ],
)
def test_versions_differ_when_anything_of_any_part_does(other: Sequence[Part]) -> None:
    before = versions_of(Part({}, version=1), Part({}, version=1))
    assert before == versions_of(Part({}, version=1), Part({}, version=1))
    assert before != versions_of(*other)
    assert hash(versions_of(*other)) == hash(versions_of(*other))


DISK: Final = Status(Code.UNSCHEDULABLE, ("disk",))
TAINT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("taint",))


class Fake(PlainPlugin, FilterPlugin[Pod]):
    """Fails nodes by name, is invalidated by the kinds, and notes which nodes it was asked about."""

    def __init__(self, name: str, fails: Mapping[str, Status], *kinds: Kind, skips: bool = False) -> None:
        self.name = name
        self.kinds: tuple[Kind, ...] = kinds
        self.fails = fails
        self.skips = skips
        self.requested: list[list[str]] = []
        self.invalidated_by = tuple(
            InvalidationRule(kind=kind, operations=(Operation.UPDATE,), scope=Scope.NODE, because="a test")
            for kind in kinds
        )

    def pre_filter(self, _mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
        """Return the pod as the state."""
        return (SKIP, None) if self.skips else (SUCCESS, pod)

    def filter(self, _state: Pod, batch: NodeBatch) -> Verdicts:
        """Look the names up."""
        self.requested.append(list(batch.names))
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
    assert reads.requested == reads_not.requested == [["n0", "n1"]]

    reads.fails = {}
    assert checks.failure(1) is None
    assert reads.requested[1:] == [["n1"]]
    assert reads_not.requested[1:] == []
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
    assert second.requested[1:] == []


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
    failure = checks.failure_with(0, (pod_of(make_pod("nominated")),))
    assert failure is not None
    assert failure.plugin == "PodTopologySpread"
    assert checks.failure_with(0, (pod_of(make_pod("of others").in_namespace("elsewhere")),)) is None
    assert checks.failures() == [None]
