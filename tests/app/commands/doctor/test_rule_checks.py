"""Who keeps the hard rules, with which arguments, and whether all nodes are asked about."""

from typing import Any

import pytest
import yaml

from app.commands.doctor.registration import Registration
from app.commands.doctor.rule_checks import finest_pair
from app.scheduler_configuration.scheduler_config import parse_scheduler_config
from tests.app.commands.doctor.registrations import (
    FULL_OFFLOAD,
    NEXT_TO,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_reported_apart,
    error,
    extenders,
    found,
    profiles,
    registration,
    warning,
)

PERCENTAGE = "percentageOfNodesToScore"
MULTI_POINT: dict[str, Any] = {"multiPoint": OFF}


def off(point: str, *plugins: str) -> dict[str, Any]:
    return {point: {"disabled": [{"name": name} for name in plugins]}}


def sampled(percentage: int | None, of_profile: int | None = None) -> dict[str, Any]:
    fields = {} if of_profile is None else {PERCENTAGE: of_profile}
    document = profiles(FULL_OFFLOAD, off("multiPoint", "InterPodAffinity"), **fields)
    return {**document, PERCENTAGE: percentage}


def with_arguments(name: str, **arguments: object) -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, MULTI_POINT, pluginConfig=[{"name": name, "args": arguments}])


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
CASES = {
    "arguments-that-kindred-does-not-have": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5)),
        registration(
            with_arguments("InterPodAffinity", hardPodAffinityWeight=5),
            settings={"plugin_args": '{"InterPodAffinity": {"hardPodAffinityWeight": 5}}'},
        ),
    ),
    "a-weight-of-0-that-kindred-does-not-have": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=0)),
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=1)),
    ),
    "arguments-that-the-scheduler-does-not-have": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(
            with_arguments("InterPodAffinity"),
            settings={"plugin_args": '{"InterPodAffinity": {"hardPodAffinityWeight": 5}}'},
        ),
        registration(with_arguments("InterPodAffinity")),
    ),
    "a-sample-by-default": error("sampling", PERCENTAGE, registration(sampled(None)), registration(sampled(100))),
    "the-percentage-of-the-profile-wins-a-sample": error(
        "sampling",
        "profiles[0].percentageOfNodesToScore",
        registration(sampled(100, of_profile=0)),
        registration(sampled(None, of_profile=100)),
    ),
    "a-sample-for-an-extender-that-does-not-filter": error(
        "sampling", PERCENTAGE, registration(sampled(50)), registration(sampled(50), filterVerb=None)
    ),
    "passed-over-though-nobody-else-filters": error(
        "ignorable",
        "extenders[0].ignorable",
        registration(FULL_OFFLOAD, ignorable=True),
        registration(NEXT_TO, ignorable=True),
    ),
    "nobody-filters": error(
        "filter-by-nobody",
        "extenders[0].filterVerb",
        registration(FULL_OFFLOAD, filterVerb=None),
        registration(FULL_OFFLOAD),
    ),
    "claims-are-not-bound": error(
        "filter-by-nobody",
        "profiles[0].plugins.filter",
        registration(profiles(SCORE_OFFLOAD, off("filter", "VolumeBinding"))),
        registration(profiles(SCORE_OFFLOAD, off("score", "VolumeBinding"))),
    ),
    "nobody-preempts": warning(
        "filter-by-nobody",
        "profiles[0].plugins.postFilter",
        registration(profiles(SCORE_OFFLOAD, off("postFilter", "DefaultPreemption"))),
        registration(profiles(SCORE_OFFLOAD, off("preEnqueue", "DefaultPreemption"))),
    ),
    "a-filter-that-neither-has": error(
        "filter-by-nobody",
        "profiles[0].plugins",
        registration(profiles(FULL_OFFLOAD, off("multiPoint", "TaintToleration"))),
        registration(profiles(FULL_OFFLOAD, off("multiPoint", "TaintToleration")), settings={"profile": "full"}),
    ),
    "a-score-without-its-prescore": error(
        "half-switched-off",
        "profiles[0].plugins.preScore",
        registration(profiles(SCORE_OFFLOAD, off("preScore", "InterPodAffinity"))),
        registration(profiles(SCORE_OFFLOAD, off("preScore", "NodeAffinity"))),
    ),
    "a-filter-without-its-prefilter": error(
        "half-switched-off",
        "profiles[0].plugins.preFilter",
        registration(profiles(SCORE_OFFLOAD, off("preFilter", "NodePorts"))),
        registration(profiles(SCORE_OFFLOAD, off("preFilter", "NodePorts") | off("filter", "NodePorts"))),
    ),
    "a-refusal-to-bind-is-passed-over": warning(
        "ignorable",
        "extenders[0].ignorable",
        registration(NEXT_TO, bindVerb="bind", ignorable=True),
        registration(NEXT_TO, ignorable=True),
    ),
    "the-default-maximum-for-a-weight-of-2": warning(
        "weight-balance", WEIGHT, registration(settings={"max_score": 100}), registration(settings={"max_score": 20})
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
        "score-once", "profiles[0].plugins.score", registration(NEXT_TO), registration()
    ),
    "nobody-scores-as-prioritize-is-not-asked": warning(
        "score-once",
        "extenders[0].prioritizeVerb",
        registration(FULL_OFFLOAD, prioritizeVerb=None, weight=None),
        registration(FULL_OFFLOAD),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_reported_apart(case)


def test_arguments_that_kindred_does_not_read_are_no_finding() -> None:
    assert found(registration(with_arguments("Mine", x=1)), "plugin-arguments") == []


@pytest.mark.parametrize("plugin", ["NodeAffinity", "PodTopologySpread"])
def test_arguments_that_say_nothing_are_no_finding(plugin: str) -> None:
    document = profiles(SCORE_OFFLOAD, {"score": ALL_OFF}, pluginConfig=[{"name": plugin, "args": {}}])
    assert found(registration(document, settings={"profile": "full"}), "plugin-arguments") == []


def test_the_mending_of_arguments_can_be_taken_as_it_is() -> None:
    wrong = registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5))
    (finding,) = found(wrong, "plugin-arguments")
    key, _, rest = finding.fix.partition(": ")
    assert (key, rest.endswith(" (KINDRED_PLUGIN_ARGS)")) == ("pluginArgs", True)
    right = registration(
        with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"plugin_args": rest.rpartition(" ")[0]}
    )
    assert found(right, "plugin-arguments") == []


def test_a_weight_that_is_a_little_off_changes_little() -> None:
    assert [found(registration(settings={"max_score": score}), "weight-balance") for score in (15, 25)] == [[], []]
    assert [len(found(registration(settings={"max_score": score}), "weight-balance")) for score in (14, 26)] == [1, 1]


@pytest.mark.parametrize("weight", range(1, 40))
def test_the_pair_that_is_told_weighs_as_the_plugin_and_has_the_most_steps(weight: int) -> None:
    steps, factor = finest_pair(weight)
    assert steps * factor * 10 == 100 * weight
    assert not [more for more in range(steps + 1, 101) if 10 * weight % more == 0]


def test_each_profile_has_its_own_weight_of_the_only_score() -> None:
    def weighing(weight: int) -> dict[str, Any]:
        multi_point = {"enabled": [{"name": "InterPodAffinity", "weight": weight}]}
        return {"multiPoint": multi_point, "score": OFF, "preScore": OFF}

    for index, weights in enumerate(((5, 2), (2, 5))):
        (finding,) = found(registration(profiles(SCORE_OFFLOAD, *map(weighing, weights))), "weight-balance")
        assert finding.message.endswith(f"(InterPodAffinity 5), in the profile scheduler-{index}")


def test_without_settings_the_scores_weigh_as_in_tree() -> None:
    def inferred(weight: int) -> Registration:
        document = {**SCORE_OFFLOAD, "extenders": [{**SCORE_OFFLOAD["extenders"][0], "weight": weight}]}
        most = off("score", *FULL_SCORES[:-1])
        config = parse_scheduler_config(yaml.safe_dump(profiles(document, most)))
        return Registration.inferred(config, config.extenders[0])

    assert found(inferred(137), "weight-balance") == []
    (finding,) = found(inferred(138), "weight-balance")
    assert "add up to 1100 (InterPodAffinity 2, NodeAffinity 2, NodeResourcesBalancedAllocation 1," in finding.message


def test_what_to_write_is_exact() -> None:
    (finding,) = found(registration(settings={"max_score": 100}), "weight-balance")
    assert finding.fix == "weight: 1 and maxScore: 20 (KINDRED_MAX_SCORE), which is up to 200"
    full = registration(profiles(SCORE_OFFLOAD, {"score": {"disabled": [{"name": "InterPodAffinity"}]}}),
                        settings={"profile": "full", "max_score": 100}, weight=2)  # fmt: skip
    (finding,) = found(full, "weight-balance")
    assert finding.fix == "weight: 2 and maxScore: 60 (KINDRED_MAX_SCORE), which is up to 1200"
    full = registration(profiles(SCORE_OFFLOAD, {"score": {"disabled": [{"name": "InterPodAffinity"}]}}),
                        settings={"profile": "full", "max_score": 100, "kubernetes": "1.37"}, weight=2)  # fmt: skip
    (finding,) = found(full, "weight-balance")
    assert finding.fix == "weight: 2 and maxScore: 65 (KINDRED_MAX_SCORE), which is up to 1300"


def test_what_is_not_asked_for_scores_is_not_weighed() -> None:
    assert found(registration(settings={"max_score": 100}, prioritizeVerb=None), "weight-balance") == []
