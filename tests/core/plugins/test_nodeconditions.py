"""The predicates that read conditions. Upstream's tables are in v1.16 algorithm/predicates/predicates_test.go."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import pytest

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SUCCESS, AnyFilter, Code, Status
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod, Toleration
from core.plugins.nodeconditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from tests.core.plugins.values import mirror_of

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
    ("stated", "fails"), [("True", True), ("False", False), ("Unknown", False)], ids=["true", "false", "unknown"]
)
def test_a_node_fails_under_pressure(
    predicate: type[AnyFilter], kind: str, reason: str, stated: str, *, fails: bool
) -> None:
    judged = node(conditions={"Ready": "False", kind: stated})
    assert status(predicate(), judged) == (unfit(reason) if fails else SUCCESS)


@pytest.mark.parametrize(
    ("predicate", "fails"),
    [(CheckNodeMemoryPressure, False), (CheckNodeDiskPressure, True), (CheckNodePIDPressure, True)],
)
def test_memory_pressure_matters_to_best_effort_pods_only(predicate: type[AnyFilter], *, fails: bool) -> None:
    # TestPodSchedulesOnNodeWithMemoryPressureCondition, ...DiskPressureCondition, ...PIDPressureCondition
    judged = node(conditions={kind: "True" for _, kind, _ in PRESSURES})
    assert fails is (status(predicate(), judged, BURSTABLE) != SUCCESS)
