"""PodDisruptionBudgets to the core's values."""

import json

import pytest

from app.objects.decode_kinds import decode_pod_disruption_budget
from core.objects.kinds import PodDisruptionBudget
from tests.builders import Object


def budget(spec: object = None, status: object = None) -> PodDisruptionBudget:
    metadata = {"name": "web", "namespace": "shop"}
    return decode_pod_disruption_budget(json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode())


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
