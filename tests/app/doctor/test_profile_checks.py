"""The scheduler's profiles: names, plugins by name, differences between them, and arguments that have to go along."""

from typing import Any

import pytest

from app.doctor.findings import Severity
from tests.app.doctor.registrations import (
    FULL_OFFLOAD,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    found,
    profiles,
    registration,
)

MULTI_POINT: dict[str, Any] = {"multiPoint": OFF}


def switching_off(name: str, point: str = "multiPoint", side: str = "disabled") -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, {point: {side: [{"name": name}]}})


def with_arguments(name: str, **arguments: object) -> dict[str, Any]:
    return profiles(FULL_OFFLOAD, MULTI_POINT, pluginConfig=[{"name": name, "args": arguments}])


CASES = {
    "two profiles of one name": Case(
        "profile-names",
        Severity.ERROR,
        "profiles",
        registration({**FULL_OFFLOAD, "profiles": [{"schedulerName": "one"}, {"schedulerName": "one"}]}),
        registration({**FULL_OFFLOAD, "profiles": [{}]}),
    ),
    "a profile without a name": Case(
        "profile-names",
        Severity.ERROR,
        "profiles[1].schedulerName",
        registration({**FULL_OFFLOAD, "profiles": [{"schedulerName": "one"}, {}]}),
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, MULTI_POINT)),
    ),
    "more than all nodes": Case(
        "percentage-range",
        Severity.ERROR,
        "percentageOfNodesToScore",
        registration({**FULL_OFFLOAD, "percentageOfNodesToScore": 101}),
        registration(FULL_OFFLOAD),
    ),
    "less than no node, in a profile": Case(
        "percentage-range",
        Severity.ERROR,
        "profiles[0].percentageOfNodesToScore",
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, percentageOfNodesToScore=-1)),
        registration(profiles(FULL_OFFLOAD, MULTI_POINT, percentageOfNodesToScore=0)),
    ),
    "switched off by a wrong name, which switches nothing off": Case(
        "plugin-names",
        Severity.ERROR,
        "profiles[0].plugins.multiPoint.disabled",
        registration(switching_off("InterpodAffinity")),
        registration(switching_off("InterPodAffinity")),
    ),
    "switched off where it has nothing": Case(
        "plugin-names",
        Severity.WARNING,
        "profiles[0].plugins.score.disabled",
        registration(switching_off("NodePorts", "score")),
        registration(switching_off("NodePorts", "filter")),
    ),
    "enabled by a wrong name": Case(
        "plugin-names",
        Severity.WARNING,
        "profiles[0].plugins.score.enabled",
        registration(switching_off("ImageLocalty", "score", "enabled")),
        registration(switching_off("ImageLocality", "score", "enabled")),
    ),
    "a plugin from outside": Case(
        "plugin-names",
        Severity.INFO,
        "profiles[0].plugins.score.enabled",
        registration(switching_off("Trimaran", "score", "enabled")),
        registration(switching_off("*", "score")),
    ),
    "on in one profile alone": Case(
        "profiles-differ",
        Severity.WARNING,
        "profiles[1].plugins.score",
        registration(profiles(SCORE_OFFLOAD, {"score": OFF}, {})),
        registration(profiles(SCORE_OFFLOAD, {"score": OFF}, {"score": OFF})),
    ),
    "arguments that Kindred does not have": Case(
        "plugin-arguments",
        Severity.WARNING,
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", hardPodAffinityWeight=5)),
        registration(
            with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"hard_pod_affinity_weight": 5}
        ),
    ),
    "arguments that Kindred has as plugin arguments": Case(
        "plugin-arguments",
        Severity.WARNING,
        "profiles[0].pluginConfig InterPodAffinity",
        registration(with_arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True)),
        registration(
            with_arguments("InterPodAffinity", ignorePreferredTermsOfExistingPods=True),
            settings={"plugin_args": '{"InterPodAffinity": {"ignorePreferredTermsOfExistingPods": true}}'},
        ),
    ),
    "arguments that there are not": Case(
        "plugin-arguments",
        Severity.ERROR,
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
    name, _, value = finding.fix.partition("=")
    assert name == "KINDRED_PLUGIN_ARGS"
    right = registration(
        with_arguments("InterPodAffinity", hardPodAffinityWeight=5), settings={"plugin_args": value.strip("'")}
    )
    assert found(right, "plugin-arguments") == []
