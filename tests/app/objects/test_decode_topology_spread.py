"""Topology spread constraints of pods to the core's values."""

import json

import pytest

from app.objects.decode_pod import decode_pod
from core.objects.labels import EVERYTHING, NOTHING, Operator, Requirement, Selector
from core.objects.pod import HONOR, IGNORE, SCHEDULE_ANYWAY, SpreadConstraint
from tests.builders import Object, expressed, labelled, make_pod

SELECTS_A = Selector((Requirement("app", Operator.IN, ("a",)),))


def spread_of(wire: object) -> tuple[SpreadConstraint, ...]:
    return decode_pod(
        json.dumps({"metadata": {"name": "p"}, "spec": {"topologySpreadConstraints": wire}}).encode()
    ).spread


def zone(**members: object) -> Object:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **members}


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(zone(), SpreadConstraint(1, "zone"), id="what-is-left-open"),
        pytest.param(
            zone(
                labelSelector=None,
                minDomains=None,
                nodeAffinityPolicy=None,
                nodeTaintsPolicy=None,
                matchLabelKeys=None,
            ),
            SpreadConstraint(1, "zone"),
            id="null",
        ),
        pytest.param(
            {
                "maxSkew": 5,
                "topologyKey": "host",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": labelled(app="a"),
                "minDomains": 3,
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["pod-template-hash"],
            },
            SpreadConstraint(
                5, "host", SCHEDULE_ANYWAY, SELECTS_A, "", 3, IGNORE, HONOR, match_label_keys=("pod-template-hash",)
            ),
            id="all-members",
        ),
        pytest.param(zone(labelSelector={}), SpreadConstraint(1, "zone", selector=EVERYTHING), id="empty-selector"),
        pytest.param(
            zone(matchLabelKeys=["b", "a", "b"]), SpreadConstraint(1, "zone", match_label_keys=("a", "b")), id="keys"
        ),
        pytest.param({}, SpreadConstraint(0, "", ""), id="nothing-said"),
    ],
)
def test_a_constraint_is_what_the_plugin_makes_of_it(wire: Object, expected: SpreadConstraint) -> None:
    assert spread_of([wire]) == (expected,)


def test_a_broken_selector_selects_nothing_and_says_why() -> None:
    (broken, sound) = spread_of([zone(labelSelector=expressed("app", "Near")), zone(labelSelector=labelled(app="a"))])
    assert (broken.selector, broken.selector_error) == (NOTHING, '"Near" is not a valid label selector operator')
    assert (sound.selector, sound.selector_error) == (SELECTS_A, "")


def test_constraints_keep_their_order() -> None:
    pod = make_pod("p").spread("zone").spread("host", labelled(app="a"), when="ScheduleAnyway", max_skew=2)
    expected = (SpreadConstraint(1, "zone"), SpreadConstraint(2, "host", SCHEDULE_ANYWAY, SELECTS_A))
    assert expected == decode_pod(pod.json()).spread


def test_constraints_that_are_too_long_to_be_remembered_are_read() -> None:
    assert spread_of([zone(topologyKey="z" * 5000)]) == (SpreadConstraint(1, "z" * 5000),)
