"""PodDisruptionBudgets to the core's values."""

import json

import pytest

from app.objects.decode_kinds import decode_pod_disruption_budget
from core.objects.disruption import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from tests.builders import Object, expressed


def budget(spec: object = None, status: object = None) -> PodDisruptionBudget:
    metadata = {"name": "web", "namespace": "shop"}
    return decode_pod_disruption_budget(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(None, NOTHING, id="no-spec"),
        pytest.param({"selector": None}, NOTHING, id="null"),
        pytest.param({"selector": {}}, EVERYTHING, id="empty"),
        pytest.param(
            {"selector": expressed("a", "Exists")}, Selector((Requirement("a", Operator.EXISTS),)), id="expression"
        ),
        pytest.param({"selector": expressed("a", "Near")}, NOTHING, id="invalid-covers-no-pod"),
    ],
)
def test_null_and_empty_selectors_are_told_apart(spec: object, expected: Selector) -> None:
    assert expected == budget(spec).selector


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="no-status"),
        pytest.param({"disruptionsAllowed": None, "disruptedPods": None}, id="nulls"),
        pytest.param({"disruptedPods": {}}, id="empty"),
    ],
)
def test_a_budget_without_a_status_allows_no_disruption(status: Object | None) -> None:
    told = budget(status=status)
    assert (told.disruptions_allowed, told.disrupted_pods) == (0, frozenset())
