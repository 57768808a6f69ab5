"""The predicates that read conditions. Upstream's tables are in v1.16 algorithm/predicates/predicates_test.go."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SKIP, SUCCESS, AnyFilter, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod, Taint, Toleration
from core.plugins.nodeconditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from tests.core.plugins.told import mirror_of

Conditions: TypeAlias = Mapping[str, str]

BEST_EFFORT: Final = Pod("default/p", "default", "p", best_effort=True)
BURSTABLE: Final = Pod("default/p", "default", "p", requests={"memory": 1}, best_effort=False)
NOT_READY: Final = "node(s) were not ready"
NO_NETWORK: Final = "node(s) had unavailable network"
CORDONED: Final = "node(s) were unschedulable"
PRESSURES: Final = (
    (CheckNodeMemoryPressure, "MemoryPressure", "node(s) had memory pressure"),
    (CheckNodeDiskPressure, "DiskPressure", "node(s) had disk pressure"),
    (CheckNodePIDPressure, "PIDPressure", "node(s) had pid pressure"),
)
PREDICATES: Final = (CheckNodeCondition, CheckNodeMemoryPressure, CheckNodeDiskPressure, CheckNodePIDPressure)
pressures: Final = pytest.mark.parametrize(("predicate", "kind", "reason"), PRESSURES)


def unfit(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons) if reasons else SUCCESS


def node(name: str = "n1", conditions: Conditions | None = None, *, cordoned: bool = False) -> Node:
    return Node(name, conditions=conditions or {}, unschedulable=cordoned)


def statuses(evaluation: Evaluation, predicate: AnyFilter, batch: NodeBatch) -> list[Status]:
    verdicts = evaluation.verdicts(predicate, batch)
    return [SUCCESS if verdicts is None else verdicts.status(position) for position in range(len(batch))]


def status(predicate: AnyFilter, judged: Node, pod: Pod = BEST_EFFORT) -> Status:
    mirror = mirror_of(node("healthy"), judged)
    healthy, found = statuses(FreshEvaluation(mirror, pod), predicate, mirror.batch(["healthy", judged.name]))
    assert healthy == SUCCESS
    return found


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        # TestNodeConditionPredicate
        pytest.param(node(conditions={"Ready": "True"}), [], id="node1-ready"),
        pytest.param(node(conditions={"Ready": "False"}), [NOT_READY], id="node2-not-ready"),
        pytest.param(node(cordoned=True), [CORDONED], id="node3-unschedulable"),
        pytest.param(node(), [], id="node5-reports-nothing"),
        # Rules that upstream's table leaves out
        pytest.param(node(conditions={"Ready": "Unknown"}), [NOT_READY], id="not-known-to-be-ready"),
        pytest.param(node(conditions={"NetworkUnavailable": "False"}), [], id="network"),
        pytest.param(node(conditions={"NetworkUnavailable": "True"}), [NO_NETWORK], id="no-network"),
        pytest.param(node(conditions={"NetworkUnavailable": "Unknown"}), [NO_NETWORK], id="not-known-to-have-network"),
        pytest.param(
            node(conditions={"MemoryPressure": "True", "DiskPressure": "True", "PIDPressure": "True", "Ready": "True"}),
            [],
            id="pressures-are-the-others-business",
        ),
        pytest.param(
            node(conditions={"Ready": "False", "NetworkUnavailable": "True"}, cordoned=True),
            [NOT_READY, NO_NETWORK, CORDONED],
            id="all-reasons",
        ),
        pytest.param(
            node(conditions={"NetworkUnavailable": "True", "Ready": "False"}, cordoned=True),
            [NO_NETWORK, NOT_READY, CORDONED],
            id="all-reasons-in-the-order-of-the-conditions",
        ),
    ],
)
def test_a_node_fails_for_all_that_is_amiss_with_it(judged: Node, expected: Sequence[str]) -> None:
    assert unfit(*expected) == status(CheckNodeCondition(), judged)


def test_no_toleration_helps_against_a_cordon_here() -> None:
    pod = Pod("default/p", "default", "p", tolerations=frozenset({Toleration(operator="Exists")}))
    assert status(CheckNodeCondition(), node(cordoned=True), pod) == unfit(CORDONED)


@pressures
@pytest.mark.parametrize(
    ("said", "fails"), [("True", True), ("False", False), ("Unknown", False)], ids=["true", "false", "unknown"]
)
def test_a_node_fails_under_pressure(
    predicate: type[AnyFilter], kind: str, reason: str, said: str, *, fails: bool
) -> None:
    judged = node(conditions={"Ready": "False", kind: said})
    assert status(predicate(), judged) == (unfit(reason) if fails else SUCCESS)


@pressures
def test_a_pressure_of_another_kind_is_none(predicate: type[AnyFilter], kind: str, reason: str) -> None:
    others = {other: "True" for _, other, _ in PRESSURES if other != kind}
    found = [status(predicate(), node(conditions=said)) for said in (others, {**others, kind: "True"})]
    assert found == [SUCCESS, unfit(reason)]


@pytest.mark.parametrize(
    ("predicate", "fails"),
    [(CheckNodeMemoryPressure, False), (CheckNodeDiskPressure, True), (CheckNodePIDPressure, True)],
)
def test_memory_pressure_matters_to_best_effort_pods_only(predicate: type[AnyFilter], *, fails: bool) -> None:
    # TestPodSchedulesOnNodeWithMemoryPressureCondition, ...DiskPressureCondition, ...PIDPressureCondition
    judged = node(conditions={kind: "True" for _, kind, _ in PRESSURES})
    assert fails is (status(predicate(), judged, BURSTABLE) != SUCCESS)


def test_a_pod_that_memory_pressure_does_not_matter_to_skips_the_filter() -> None:
    assert CheckNodeMemoryPressure().pre_filter(mirror_of(node()), BURSTABLE) == (SKIP, None)


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_node_that_the_mirror_does_not_know_is_judged_by_what_the_question_says(predicate: type[AnyFilter]) -> None:
    bad = {"Ready": "False", "MemoryPressure": "True", "DiskPressure": "True", "PIDPressure": "True"}
    mirror = mirror_of(node("n1", bad))
    batch = mirror.batch(["s1", "n1", "s2"], {0: node("s1"), 2: node("s2", bad)})
    fit, known, stranger = statuses(FreshEvaluation(mirror, BEST_EFFORT), predicate(), batch)
    assert (fit, known) == (SUCCESS, stranger)
    assert stranger.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


SAID: Final = st.sampled_from(("True", "False", "Unknown"))
REPORTS: Final = st.dictionaries(st.sampled_from(("Ready", "NetworkUnavailable", "MemoryPressure")), SAID)


@pytest.mark.parametrize("predicate", [CheckNodeCondition, CheckNodeMemoryPressure])
@given(changes=st.lists(st.tuples(st.sampled_from(("n1", "n2")), st.none() | REPORTS, st.booleans()), max_size=20))
def test_kept_answers_are_those_of_a_mirror_made_anew(
    predicate: type[AnyFilter], changes: Sequence[tuple[str, Conditions | None, bool]]
) -> None:
    mirror, plugin = ClusterMirror(), predicate()
    cache = EquivalenceCache(mirror, (plugin,), CacheOptions(mode="spec"))
    present: dict[str, Node] = {}
    for number, (name, conditions, cordoned) in enumerate(changes):
        # Every change has a version of its own: without one, another order of the conditions alone is no change.
        changed = replace(node(name, conditions, cordoned=cordoned), resource_version=str(number))
        mirror.apply(ClusterEvent("Delete" if conditions is None else "Update", changed))
        present.pop(name, None)
        if conditions is not None:
            present[name] = changed
        anew = mirror_of(*present.values())
        for pod in (BEST_EFFORT, BURSTABLE):
            fresh = statuses(FreshEvaluation(anew, pod), plugin, anew.batch(list(present)))
            assert fresh == statuses(cache.evaluation(pod), plugin, mirror.batch(list(present)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(node(conditions={"Ready": "True"}), node(conditions={"Ready": "Unknown"}), True, id="not-ready"),
        pytest.param(node(conditions={"Ready": "False"}), node(), True, id="readiness-no-longer-reported"),
        pytest.param(node(), node(conditions={"NetworkUnavailable": "True"}), True, id="network-gone"),
        pytest.param(node(), node(cordoned=True), True, id="cordoned"),
        pytest.param(node(cordoned=True), node(), True, id="uncordoned"),
        pytest.param(
            node(conditions={"Ready": "False", "NetworkUnavailable": "True"}),
            node(conditions={"NetworkUnavailable": "True", "Ready": "False"}),
            True,
            id="another-order-of-reasons",
        ),
        pytest.param(node(conditions={"Ready": "False"}), node(conditions={"Ready": "Unknown"}), False, id="still-not"),
        pytest.param(node(), node(conditions={"MemoryPressure": "True"}), False, id="pressure"),
        pytest.param(node(), Node("n1", {"zone": "a"}, {"cpu": 1}, taints=(Taint("a"),)), False, id="anything-else"),
    ],
)
def test_an_answer_on_conditions_is_invalidated_by_what_changes_its_reasons(
    before: Node, after: Node, *, expected: bool
) -> None:
    (rule,) = CheckNodeCondition().invalidated_by
    assert expected is rule.touches(before, after)


@pytest.mark.parametrize(("predicate", "kind"), [(predicate, kind) for predicate, kind, _ in PRESSURES])
def test_an_answer_on_pressure_is_invalidated_when_it_comes_and_goes(predicate: type[AnyFilter], kind: str) -> None:
    (rule,) = predicate().invalidated_by
    calm, tense = node(conditions={kind: "False"}), node(conditions={kind: "True"})
    unrelated = node(conditions={kind: "Unknown", "Ready": "False"}, cordoned=True)
    assert (rule.touches(calm, tense), rule.touches(tense, calm), rule.touches(calm, unrelated)) == (True, True, False)
