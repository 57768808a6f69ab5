"""PodDisruptionBudgets to the core's values."""

import json

import pytest

from app.watch.decode import DecodeError
from app.watch.decode_disruption import decode_pod_disruption_budget
from core.objects.disruption import PodDisruptionBudget
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from tests.builders import Object, expressed, labelled


def budget(spec: object = None, status: object = None) -> PodDisruptionBudget:
    metadata = {"name": "web", "namespace": "shop"}
    return decode_pod_disruption_budget(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


def test_a_budget_is_reduced_to_what_preemption_reads() -> None:
    told = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"maxUnavailable": "10%", "selector": labelled(app="web")},
        "status": {
            "disruptionsAllowed": 2,
            "disruptedPods": {"web-1": "2026-01-01T00:00:00Z", "web-2": None},
            "currentHealthy": 5,
        },
    }
    expected = PodDisruptionBudget(
        namespace="shop",
        name="web",
        selector=Selector((Requirement("app", Operator.IN, ("web",)),)),
        disruptions_allowed=2,
        disrupted_pods=frozenset({"web-1", "web-2"}),
        uid="u-1",
        resource_version="7",
    )
    assert expected == decode_pod_disruption_budget(json.dumps(told).encode())


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


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        pytest.param({"selector": []}, None, "spec.selector: expected object | null, got array", id="selector"),
        pytest.param(
            None,
            {"disruptionsAllowed": "2"},
            "status.disruptionsAllowed: expected int | null, got str",
            id="disruptions-text",
        ),
        pytest.param(
            None,
            {"disruptionsAllowed": 2**31},
            "status.disruptionsAllowed: expected int <= 2147483647",
            id="disruptions-over-int32",
        ),
        pytest.param(
            None,
            {"disruptedPods": ["a"]},
            "status.disruptedPods: expected object | null, got array",
            id="disrupted-list",
        ),
    ],
)
def test_a_broken_budget_is_refused_with_the_field(spec: object, status: object, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        budget(spec, status)
    assert expected == str(caught.value)
