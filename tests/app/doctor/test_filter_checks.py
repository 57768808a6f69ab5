"""Who keeps the hard rules, and whether all nodes are asked about."""

from typing import Any

import pytest

from app.doctor.findings import Severity
from tests.app.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    found,
    profiles,
    registration,
)

PERCENTAGE = "percentageOfNodesToScore"


def off(point: str, *plugins: str) -> dict[str, Any]:
    return {point: {"disabled": [{"name": name} for name in plugins]}}


def sampling(percentage: int | None, of_profile: int | None = None) -> dict[str, Any]:
    fields = {} if of_profile is None else {PERCENTAGE: of_profile}
    document = profiles(FULL_OFFLOAD, off("multiPoint", "InterPodAffinity"), **fields)
    return {**document, PERCENTAGE: percentage}


CASES = {
    "whole nodes, and a filter": Case(
        "node-cache-capable",
        Severity.ERROR,
        "extenders[0].nodeCacheCapable",
        registration(BESIDE, nodeCacheCapable=False),
        registration(BESIDE),
    ),
    "whole nodes by default, for scores alone": Case(
        "node-cache-capable",
        Severity.WARNING,
        "extenders[0].nodeCacheCapable",
        registration(nodeCacheCapable=None),
        registration(),
    ),
    "a sample by default": Case(
        "sampling", Severity.ERROR, PERCENTAGE, registration(sampling(None)), registration(sampling(100))
    ),
    "a sample, and the filter alone is off": Case(
        "sampling",
        Severity.ERROR,
        PERCENTAGE,
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 99}, off("filter", "InterPodAffinity"))),
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 99}, off("score", "InterPodAffinity"))),
    ),
    "a sample, and all filters are off": Case(
        "sampling",
        Severity.ERROR,
        PERCENTAGE,
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 5}, off("filter", "*"))),
        registration(profiles({**FULL_OFFLOAD, PERCENTAGE: 100}, off("filter", "*"))),
    ),
    "the percentage of the profile wins, a sample": Case(
        "sampling",
        Severity.ERROR,
        "profiles[0].percentageOfNodesToScore",
        registration(sampling(100, of_profile=0)),
        registration(sampling(None, of_profile=100)),
    ),
    "a sample for an extender that does not filter": Case(
        "sampling",
        Severity.ERROR,
        PERCENTAGE,
        registration(sampling(50)),
        registration(sampling(50), filterVerb=None),
    ),
    "passed over, though nobody else filters": Case(
        "ignorable-filter",
        Severity.ERROR,
        "extenders[0].ignorable",
        registration(FULL_OFFLOAD, ignorable=True),
        registration(BESIDE, ignorable=True),
    ),
    "nobody filters": Case(
        "filter-by-nobody",
        Severity.ERROR,
        "extenders[0].filterVerb",
        registration(FULL_OFFLOAD, filterVerb=None),
        registration(FULL_OFFLOAD),
    ),
    "claims are not bound": Case(
        "filter-by-nobody",
        Severity.ERROR,
        "profiles[0].plugins.filter",
        registration(profiles(SCORE_OFFLOAD, off("filter", "VolumeBinding"))),
        registration(profiles(SCORE_OFFLOAD, off("score", "VolumeBinding"))),
    ),
    "nobody preempts": Case(
        "filter-by-nobody",
        Severity.WARNING,
        "profiles[0].plugins.postFilter",
        registration(profiles(SCORE_OFFLOAD, off("postFilter", "DefaultPreemption"))),
        registration(profiles(SCORE_OFFLOAD, off("preEnqueue", "DefaultPreemption"))),
    ),
    "a filter that neither has": Case(
        "filter-in-neither",
        Severity.ERROR,
        "profiles[0].plugins",
        registration(profiles(FULL_OFFLOAD, off("multiPoint", "TaintToleration"))),
        registration(profiles(FULL_OFFLOAD, off("multiPoint", "TaintToleration")), settings={"profile": "full"}),
    ),
    "filtered twice": Case(
        "filtered-twice",
        Severity.INFO,
        "profiles[0].plugins.filter",
        registration(BESIDE),
        registration(FULL_OFFLOAD),
    ),
    "a score without its preScore": Case(
        "half-switched-off",
        Severity.ERROR,
        "profiles[0].plugins.preScore",
        registration(profiles(SCORE_OFFLOAD, off("preScore", "InterPodAffinity"))),
        registration(profiles(SCORE_OFFLOAD, off("preScore", "NodeAffinity"))),
    ),
    "a filter without its preFilter": Case(
        "half-switched-off",
        Severity.ERROR,
        "profiles[0].plugins.preFilter",
        registration(profiles(SCORE_OFFLOAD, off("preFilter", "NodePorts"))),
        registration(profiles(SCORE_OFFLOAD, off("preFilter", "NodePorts") | off("filter", "NodePorts"))),
    ),
    "a preFilter without its filter": Case(
        "half-switched-off",
        Severity.WARNING,
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
