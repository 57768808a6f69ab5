"""Who keeps the hard rules, and whether all nodes are asked about."""

from typing import Any

import pytest

from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
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

PERCENTAGE = "percentageOfNodesToScore"


def off(point: str, *plugins: str) -> dict[str, Any]:
    return {point: {"disabled": [{"name": name} for name in plugins]}}


def sampling(percentage: int | None, of_profile: int | None = None) -> dict[str, Any]:
    fields = {} if of_profile is None else {PERCENTAGE: of_profile}
    document = profiles(FULL_OFFLOAD, off("multiPoint", "InterPodAffinity"), **fields)
    return {**document, PERCENTAGE: percentage}


CASES = {
    "whole-nodes-and-a-filter": error(
        "node-cache-capable",
        "extenders[0].nodeCacheCapable",
        registration(BESIDE, nodeCacheCapable=False),
        registration(BESIDE),
    ),
    "whole-nodes-by-default-for-scores-alone": warning(
        "node-cache-capable", "extenders[0].nodeCacheCapable", registration(nodeCacheCapable=None), registration()
    ),
    "a-sample-by-default": error("sampling", PERCENTAGE, registration(sampling(None)), registration(sampling(100))),
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
        registration(sampling(100, of_profile=0)),
        registration(sampling(None, of_profile=100)),
    ),
    "a-sample-for-an-extender-that-does-not-filter": error(
        "sampling", PERCENTAGE, registration(sampling(50)), registration(sampling(50), filterVerb=None)
    ),
    "passed-over-though-nobody-else-filters": error(
        "ignorable-filter",
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
    "filtered-twice": info(
        "filtered-twice", "profiles[0].plugins.filter", registration(BESIDE), registration(FULL_OFFLOAD)
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
    "a-prefilter-without-its-filter": warning(
        "half-switched-off",
        "profiles[0].plugins.preFilter",
        registration(profiles(FULL_OFFLOAD, off("filter", "InterPodAffinity"))),
        registration(profiles(FULL_OFFLOAD, off("filter", "ImageLocality"))),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_whole_nodes_are_worse_after_filter() -> None:
    (finding,) = found(registration(BESIDE, nodeCacheCapable=False), "node-cache-capable")
    assert "issue 141781" in finding.message
    (finding,) = found(registration(nodeCacheCapable=False), "node-cache-capable")
    assert "issue 141781" not in finding.message
