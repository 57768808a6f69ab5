"""How much Kindred's scores weigh, and whether each score is given once."""

from typing import Any

import pytest

from app.commands.doctor.score_checks import finest_pair
from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    extenders,
    found,
    profiles,
    registration,
    warning,
)

WEIGHT = "extenders[0].weight"
FULL_SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
ALL_OFF = {"disabled": [{"name": name} for name in FULL_SCORES]}
SPREAD_OFF = {"disabled": [{"name": "InterPodAffinity"}, {"name": "PodTopologySpread"}]}
CASES = {
    "the-default-maximum-for-a-weight-of-2": warning(
        "weight-balance", WEIGHT, registration(settings={"max_score": 100}), registration(settings={"max_score": 20})
    ),
    "a-maximum-that-is-too-weak": warning(
        "weight-balance",
        WEIGHT,
        registration(settings={"max_score": 10}),
        registration(settings={"max_score": 10}, weight=2),
    ),
    "the-weight-that-is-written-beside-the-plugin-that-is-switched-off": warning(
        "weight-balance",
        WEIGHT,
        registration(
            profiles(
                SCORE_OFFLOAD,
                {"multiPoint": {"enabled": [{"name": "InterPodAffinity", "weight": 5}]}, "score": OFF, "preScore": OFF},
            )
        ),
        registration(
            profiles(
                SCORE_OFFLOAD,
                {"multiPoint": {"enabled": [{"name": "InterPodAffinity", "weight": 5}]}, "score": OFF, "preScore": OFF},
            ),
            settings={"max_score": 50},
        ),
    ),
    "several-scores-weigh-as-their-weights-in-kindred-do": warning(
        "weight-balance",
        WEIGHT,
        registration(
            profiles(SCORE_OFFLOAD, {"score": SPREAD_OFF}),
            settings={"profile": "score:PodTopologySpread=2,score:InterPodAffinity=2"},
        ),
        registration(
            profiles(SCORE_OFFLOAD, {"score": SPREAD_OFF}),
            settings={"profile": "score:PodTopologySpread=2,score:InterPodAffinity=2", "max_score": 40},
        ),
    ),
    "besides-too-strong": warning(
        "weight-balance",
        WEIGHT,
        registration(BESIDE, settings={"max_score": 100}),
        registration(BESIDE, settings={"max_score": 1}),
    ),
    "with-another-extender-that-scores-though-no-plugin-does": warning(
        "weight-balance",
        "extenders[1].weight",
        registration(
            extenders(
                profiles(SCORE_OFFLOAD, {"score": ALL_OFF}),
                {"urlPrefix": "http://other", "prioritizeVerb": "rank", "weight": 1},
            ),
            settings={"profile": "full", "max_score": 50},
        ),
        registration(profiles(SCORE_OFFLOAD, {"score": ALL_OFF}), settings={"profile": "full", "max_score": 50}),
    ),
    "every-score-counted-twice": warning(
        "score-counted-twice", "profiles[0].plugins.score", registration(BESIDE), registration()
    ),
    "one-of-two-scores-counted-twice": warning(
        "score-counted-twice",
        "profiles[0].plugins.score",
        registration(settings={"profile": "score:PodTopologySpread=2,score:InterPodAffinity=2"}),
        registration(
            profiles(SCORE_OFFLOAD, {"score": SPREAD_OFF}),
            settings={"profile": "score:PodTopologySpread=2,score:InterPodAffinity=2"},
        ),
    ),
    "nobody-scores-as-prioritize-is-not-asked": warning(
        "score-by-nobody",
        "extenders[0].prioritizeVerb",
        registration(FULL_OFFLOAD, prioritizeVerb=None, weight=None),
        registration(FULL_OFFLOAD),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_a_weight_that_is_a_little_off_changes_little() -> None:
    assert [found(registration(settings={"max_score": score}), "weight-balance") for score in (15, 25)] == [[], []]
    assert [len(found(registration(settings={"max_score": score}), "weight-balance")) for score in (14, 26)] == [1, 1]


@pytest.mark.parametrize("weight", range(1, 40))
def test_the_pair_that_is_told_weighs_as_the_plugin_and_has_the_most_steps(weight: int) -> None:
    steps, factor = finest_pair(weight)
    assert steps * factor * 10 == 100 * weight
    assert not [more for more in range(steps + 1, 101) if 10 * weight % more == 0]


def test_what_to_write_is_exact() -> None:
    (finding,) = found(registration(settings={"max_score": 100}), "weight-balance")
    assert finding.fix == "weight: 1 and maxScore: 20 (KINDRED_MAX_SCORE), which is up to 200"
    full = registration(profiles(SCORE_OFFLOAD, {"score": {"disabled": [{"name": "InterPodAffinity"}]}}),
                        settings={"profile": "full"})  # fmt: skip
    (finding,) = found(full, "weight-balance")
    assert finding.fix == "weight: 2 and maxScore: 60 (KINDRED_MAX_SCORE), which is up to 1200"
    full = registration(profiles(SCORE_OFFLOAD, {"score": {"disabled": [{"name": "InterPodAffinity"}]}}),
                        settings={"profile": "full", "kubernetes": "1.37"})  # fmt: skip
    (finding,) = found(full, "weight-balance")
    assert finding.fix == "weight: 2 and maxScore: 65 (KINDRED_MAX_SCORE), which is up to 1300"


@pytest.mark.parametrize(("max_score", "told"), [(100, "too strong: "), (1, "too weak: ")])
def test_it_is_told_in_which_direction_the_weight_is_wrong(max_score: int, told: str) -> None:
    (finding,) = found(registration(settings={"max_score": max_score}), "weight-balance")
    assert finding.message.startswith(told)


@pytest.mark.parametrize(
    ("profile", "weight"),
    [
        pytest.param("InterPodAffinity=5", 5, id="one that says its weight"),
        pytest.param("InterPodAffinity,PodTopologySpread", 2, id="two of 1 each"),
        pytest.param("InterPodAffinity", 2, id="one that says none"),
    ],
)
def test_what_kindred_stands_for_is_what_its_profile_says(profile: str, weight: int) -> None:
    looked_at = registration(
        profiles(SCORE_OFFLOAD, {"score": SPREAD_OFF}), settings={"profile": profile, "max_score": 100}
    )
    (finding,) = found(looked_at, "weight-balance")
    assert f"maxScore: {finest_pair(weight)[0]} (KINDRED_MAX_SCORE), which is up to {100 * weight}" in finding.fix


@pytest.mark.parametrize("changed", [{"prioritizeVerb": None}, {"weight": 0}], ids=["not asked", "without a weight"])
def test_what_has_no_weight_is_not_weighed(changed: dict[str, Any]) -> None:
    assert found(registration(settings={"max_score": 100}, **changed), "weight-balance") == []
