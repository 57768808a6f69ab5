"""Tolerations of pods to the core's values."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.pod import Toleration
from tests.builders import Object, make_pod


def tolerations_of(wire: object) -> frozenset[Toleration]:
    return decode_pod(json.dumps({"metadata": {"name": "p"}, "spec": {"tolerations": wire}}).encode()).tolerations


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
            Toleration("k", "Equal", "v", "NoSchedule"),
            id="all-members",
        ),
        pytest.param({"operator": "Exists"}, Toleration(operator="Exists"), id="exists"),
        pytest.param({"key": "k", "operator": ""}, Toleration("k", "Equal"), id="no-operator-is-equal"),
        pytest.param({}, Toleration(), id="empty"),
        pytest.param({"key": None, "operator": None, "value": None, "effect": None}, Toleration(), id="null"),
        pytest.param({"key": "k", "tolerationSeconds": 300}, Toleration("k"), id="how-long-is-not-read"),
    ],
)
def test_a_toleration_is_what_the_taint_is_held_against(wire: Object, expected: Toleration) -> None:
    assert tolerations_of([wire]) == {expected}


def test_the_order_of_tolerations_is_irrelevant_and_doubles_are_one() -> None:
    one, other = {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}
    assert tolerations_of([one, other]) == tolerations_of([other, one, one])


@pytest.mark.parametrize("count", [1, 100], ids=["few", "too-many-to-be-remembered"])
def test_the_builder_and_the_decoder_agree(count: int) -> None:
    pod, expected = make_pod("p").toleration("x"), {Toleration("x")}
    for number in range(count):
        pod = pod.toleration(f"key-{number}", "Equal", "v", "NoSchedule")
        expected.add(Toleration(f"key-{number}", "Equal", "v", "NoSchedule"))
    assert expected == decode_pod(pod.json()).tolerations
