"""Who binds, and what happens between a decision and its event; who preempts."""

import pytest

from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    OFF,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    error,
    extenders,
    found,
    info,
    profiles,
    registration,
    warning,
)

PREEMPT = "extenders[0].preemptVerb"
BIND = "extenders[0].bindVerb"
OTHER_BINDER = {"urlPrefix": "http://other", "bindVerb": "bind"}
CASES = {
    "the-gap": error("gap", BIND, registration(FULL_OFFLOAD, bindVerb=None), registration(FULL_OFFLOAD)),
    "the-gap-where-another-binds": error(
        "gap",
        "extenders[1].bindVerb",
        registration(extenders(FULL_OFFLOAD, OTHER_BINDER), bindVerb=None),
        registration(extenders(BESIDE, OTHER_BINDER)),
    ),
    "a-verb-that-binds-no-pod": error(
        "bind-off", BIND, registration(FULL_OFFLOAD, settings={"bind": False}), registration(FULL_OFFLOAD)
    ),
    "a-verb-that-others-can-use": info(
        "bind-off", BIND, registration(settings={"bind": True}), registration(settings={"bind": False})
    ),
    "several-that-may-bind": info(
        "replicas",
        "leaderElection (KINDRED_LEADER_ELECTION)",
        registration(FULL_OFFLOAD, settings={"leader_election": "off"}),
        registration(FULL_OFFLOAD),
    ),
    "a-verb-that-drops-every-node": error(
        "preempt",
        PREEMPT,
        registration(FULL_OFFLOAD, settings={"preempt": "off"}),
        registration(FULL_OFFLOAD, settings={"preempt": "evict"}),
    ),
    "victims-without-regard-to-what-kindred-filters": warning(
        "preempt", PREEMPT, registration(FULL_OFFLOAD, preemptVerb=None), registration(SCORE_OFFLOAD)
    ),
    "no-victims-where-kindred-alone-refuses": info(
        "preempt", PREEMPT, registration(FULL_OFFLOAD), registration(FULL_OFFLOAD, settings={"preempt": "evict"})
    ),
    "evicts-and-does-not-bind": error(
        "evict",
        BIND,
        registration(FULL_OFFLOAD, bindVerb=None, settings={"preempt": "evict"}),
        registration(FULL_OFFLOAD, bindVerb=None),
    ),
    "evicts-after-a-sample": error(
        "evict",
        "percentageOfNodesToScore",
        registration({**FULL_OFFLOAD, "percentageOfNodesToScore": 0}, settings={"preempt": "evict"}),
        registration(FULL_OFFLOAD, settings={"preempt": "evict"}),
    ),
    "evicts-after-a-sample-of-a-profile": error(
        "evict",
        "profiles[0].percentageOfNodesToScore",
        registration(
            profiles(FULL_OFFLOAD, {"multiPoint": OFF}, percentageOfNodesToScore=50), settings={"preempt": "evict"}
        ),
        registration(
            profiles(
                {**FULL_OFFLOAD, "percentageOfNodesToScore": 0}, {"multiPoint": OFF}, percentageOfNodesToScore=100
            ),
            settings={"preempt": "evict"},
        ),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_the_gap_names_who_binds_instead() -> None:
    (finding,) = found(registration(extenders(FULL_OFFLOAD, OTHER_BINDER), bindVerb=None), "gap")
    assert finding.message.startswith("extenders[0] binds, while Kindred alone filters by InterPodAffinity: ")
