"""Who keeps the hard rules, with which arguments, and whether all nodes are asked about."""

from typing import Any

import pytest

from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    error,
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


def switching_off(name: str, point: str = "multiPoint", side: str = "disabled") -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, {point: {side: [{"name": name}]}})


def with_arguments(name: str, **arguments: object) -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, MULTI_POINT, pluginConfig=[{"name": name, "args": arguments}])


CASES = {
    "switched-off-by-a-wrong-name-which-switches-nothing-off": error(
        "plugin-names",
        "profiles[0].plugins.multiPoint.disabled",
        registration(switching_off("InterpodAffinity")),
        registration(switching_off("InterPodAffinity")),
    ),
    "enabled-by-a-wrong-name": warning(
        "plugin-names",
        "profiles[0].plugins.score.enabled",
        registration(switching_off("ImageLocalty", "score", "enabled")),
        registration(switching_off("ImageLocality", "score", "enabled")),
    ),
    "enabled-by-a-former-name": error(
        "plugin-names",
        "profiles[0].plugins.filter.enabled",
        registration(switching_off("EBSLimits", "filter", "enabled")),
        registration(switching_off("NodeVolumeLimits", "filter", "enabled")),
    ),
    "switched-off-by-a-former-name-which-switches-nothing-off": warning(
        "plugin-names",
        "profiles[0].plugins.multiPoint.disabled",
        registration(switching_off("GCEPDLimits")),
        registration(switching_off("InterPodAffinity")),
    ),
    "arguments-that-kindred-does-not-have": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5)),
        registration(
            with_arguments("InterPodAffinity", hardPodAffinityWeight=5),
            settings={"plugin_args": '{"InterPodAffinity": {"hardPodAffinityWeight": 5}}'},
        ),
    ),
    "arguments-that-kindred-has-as-plugin-arguments": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True)),
        registration(
            with_arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True),
            settings={"plugin_args": '{"InterPodAffinity": {"ignorePreferredTermsOfExistingPods": true}}'},
        ),
    ),
    "arguments-that-there-are-not": error(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWait=5)),
        registration(with_arguments("PodTopologySpread", defaultingType="List")),
    ),
    "a-sample-by-default": error("sampling", PERCENTAGE, registration(sampled(None)), registration(sampled(100))),
    "a-sample-and-the-filter-alone-is-off": error(
        "sampling",
        PERCENTAGE,
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 99}, off("filter", "InterPodAffinity"))),
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 99}, off("score", "InterPodAffinity"))),
    ),
    "a-sample-and-all-filters-are-off": error(
        "sampling",
        PERCENTAGE,
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 5}, off("filter", "*"))),
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 100}, off("filter", "*"))),
    ),
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
        registration(BESIDE, ignorable=True),
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
        "filter-in-neither",
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
        registration(BESIDE, bindVerb="bind", ignorable=True),
        registration(BESIDE, ignorable=True),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_a_plugin_that_is_built_into_the_scheduler_is_no_typo() -> None:
    for document in (switching_off("Trimaran", "score", "enabled"), switching_off("*", "score")):
        assert found(registration(document), "plugin-names") == []


def test_the_mending_of_arguments_can_be_taken_as_it_is() -> None:
    wrong = registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5))
    (finding,) = found(wrong, "plugin-arguments")
    key, _, rest = finding.fix.partition(": ")
    assert (key, rest.endswith(" (KINDRED_PLUGIN_ARGS)")) == ("pluginArgs", True)
    right = registration(
        with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"plugin_args": rest.rpartition(" ")[0]}
    )
    assert found(right, "plugin-arguments") == []
