"""The scheduler's profiles: names, plugins by name, differences between them, and arguments that have to go along."""

from typing import Any

import pytest

from tests.app.commands.doctor.registrations import (
    FULL_OFFLOAD,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    error,
    found,
    info,
    profiles,
    registration,
    warning,
)

MULTI_POINT: dict[str, Any] = {"multiPoint": OFF}


def switching_off(name: str, point: str = "multiPoint", side: str = "disabled") -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, {point: {side: [{"name": name}]}})


def with_arguments(name: str, **arguments: object) -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, MULTI_POINT, pluginConfig=[{"name": name, "args": arguments}])


CASES = {
    "two-profiles-of-one-name": error(
        "profile-names",
        "profiles",
        registration({**FULL_OFFLOAD, "profiles": [{"schedulerName": "one"}, {"schedulerName": "one"}]}),
        registration({**FULL_OFFLOAD, "profiles": [{}]}),
    ),
    "a-profile-without-a-name": error(
        "profile-names",
        "profiles[1].schedulerName",
        registration({**FULL_OFFLOAD, "profiles": [{"schedulerName": "one"}, {}]}),
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, MULTI_POINT)),
    ),
    "more-than-all-nodes": error(
        "percentage-range",
        "percentageOfNodesToScore",
        registration({**FULL_OFFLOAD, "percentageOfNodesToScore": 101}),
        registration(FULL_OFFLOAD),
    ),
    "less-than-no-node-in-a-profile": error(
        "percentage-range",
        "profiles[0].percentageOfNodesToScore",
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, percentageOfNodesToScore=-1)),
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, percentageOfNodesToScore=0)),
    ),
    "switched-off-by-a-wrong-name-which-switches-nothing-off": error(
        "plugin-names",
        "profiles[0].plugins.multiPoint.disabled",
        registration(switching_off("InterpodAffinity")),
        registration(switching_off("InterPodAffinity")),
    ),
    "switched-off-where-it-has-nothing": warning(
        "plugin-names",
        "profiles[0].plugins.score.disabled",
        registration(switching_off("NodePorts", "score")),
        registration(switching_off("NodePorts", "filter")),
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
    "a-plugin-from-outside": info(
        "plugin-names",
        "profiles[0].plugins.score.enabled",
        registration(switching_off("Trimaran", "score", "enabled")),
        registration(switching_off("*", "score")),
    ),
    "on-in-one-profile-alone": warning(
        "profiles-differ",
        "profiles[1].plugins.score",
        registration(profiles(SCORE_OFFLOAD, {"score": OFF}, {})),
        registration(profiles(SCORE_OFFLOAD, {"score": OFF}, {"score": OFF})),
    ),
    "arguments-that-kindred-does-not-have": warning(
        "plugin-arguments",
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5)),
        registration(
            with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"hard_pod_affinity_weight": 5}
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
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_the_mending_of_arguments_can_be_taken_as_it_is() -> None:
    wrong = registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5))
    (finding,) = found(wrong, "plugin-arguments")
    key, _, rest = finding.fix.partition(": ")
    assert (key, rest.endswith(" (KINDRED_PLUGIN_ARGS)")) == ("pluginArgs", True)
    right = registration(
        with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"plugin_args": rest.rpartition(" ")[0]}
    )
    assert found(right, "plugin-arguments") == []
