"""Where the verbs of an extender lead to, which pods it is asked about, and in which order."""

from typing import Any

import pytest

from app.scheduler_configuration.finding import Severity
from app.scheduler_configuration.scheduler_config import parse_scheduler_config
from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    error,
    extenders,
    found,
    info,
    registration,
    warning,
)

PREFIX = "extenders[0].urlPrefix"
OTHER = {"urlPrefix": "http://other", "filterVerb": "filter"}
GPU = {"name": "example.com/gpu"}


def behind(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of an extender
    return {**BESIDE, "extenders": [*BESIDE["extenders"], {**OTHER, **fields}]}


def with_kindred_first(document: dict[str, Any], **settings: object) -> Any:  # noqa: ANN401  # a registration
    looked_at = registration(document, settings=settings)
    (first, *_) = looked_at.config.extenders
    return looked_at._replace(extender=first)


CASES = {
    "no-verb": error("verb-name", "extenders[0]", registration(prioritizeVerb=None), registration()),
    "a-slip-of-the-pen": error(
        "verb-name",
        "extenders[0].prioritizeVerb",
        registration(prioritizeVerb="prioritise"),
        registration(prioritizeVerb="prioritize"),
    ),
    "the-verb-of-another": error(
        "verb-name", "extenders[0].filterVerb", registration(filterVerb="bind"), registration(BESIDE)
    ),
    "a-slash": warning(
        "verb-name", "extenders[0].filterVerb", registration(filterVerb="/filter"), registration(BESIDE)
    ),
    "no-url": error(
        "url-prefix",
        "extenders[1].urlPrefix",
        registration(extenders(BESIDE, OTHER), urlPrefix="//10.96.0.10:8888"),
        registration(),
    ),
    "a-bracket-that-does-not-end": error("url-prefix", PREFIX, registration(urlPrefix="http://["), registration()),
    "a-port-that-is-none": error("url-prefix", PREFIX, registration(urlPrefix="http://kindred:http"), registration()),
    "a-query": error("url-prefix", PREFIX, registration(urlPrefix="http://10.96.0.10:8888?a=b"), registration()),
    "the-verb-in-the-url": error(
        "url-prefix",
        PREFIX,
        registration(urlPrefix="http://10.96.0.10:8888/filter"),
        registration(urlPrefix="http://10.96.0.10:8888/"),
    ),
    "a-path": warning("url-prefix", PREFIX, registration(urlPrefix="http://10.96.0.10:8888/v1"), registration()),
    "no-port": warning("url-prefix", PREFIX, registration(urlPrefix="http://kindred"), registration()),
    "a-name-of-the-cluster": info(
        "host-name", PREFIX, registration(urlPrefix="http://kindred.kindred.svc:8888"), registration()
    ),
    "a-part-of-the-pods": warning(
        "managed-resources",
        "extenders[0].managedResources",
        registration(managedResources=[GPU]),
        registration(managedResources=[]),
    ),
    "nobody-filters-the-other-pods": error(
        "managed-resources",
        "extenders[0].managedResources",
        registration(FULL_OFFLOAD, managedResources=[GPU]),
        registration(FULL_OFFLOAD),
    ),
    "behind-another-filter": info(
        "extender-order",
        "extenders[1]",
        registration(extenders(FULL_OFFLOAD, OTHER)),
        registration(extenders(FULL_OFFLOAD, {"urlPrefix": "http://other", "preemptVerb": "preempt"})),
    ),
    "behind-one-that-is-written-after-it-as-it-is-ignorable-itself": info(
        "extender-order",
        "extenders[0]",
        with_kindred_first(behind(filterVerb=None, preemptVerb="preempt")),
        with_kindred_first(behind(ignorable=True)),
    ),
    "a-sample-for-those-behind": warning(
        "extender-order",
        "extenders[0]",
        with_kindred_first(behind(ignorable=True), percentage_of_nodes_to_score=0),
        with_kindred_first(behind(ignorable=True)),
    ),
    "evicts-for-those-behind": warning(
        "extender-order",
        "extenders[0]",
        with_kindred_first(behind(ignorable=True), preempt="evict"),
        with_kindred_first(behind(ignorable=True)),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_a_resource_that_nobody_counts_is_an_error() -> None:
    findings = found(registration(managedResources=[{**GPU, "ignoredByScheduler": True}]), "managed-resources")
    assert [finding.severity for finding in findings] == [Severity.WARNING, Severity.ERROR]


def test_a_verb_tells_whose_it_is() -> None:
    (finding,) = found(registration(filterVerb="bind"), "verb-name")
    assert finding.message == "'bind', which is for bindVerb: Kindred serves this verb at /filter"
    assert finding.fix == "filterVerb: filter"


def test_extenders_that_are_ignorable_are_asked_last() -> None:
    text = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, extenders: ["
    text += "{urlPrefix: a, ignorable: true}, {urlPrefix: b}, {urlPrefix: c, ignorable: true}, {urlPrefix: d}]}"
    config = parse_scheduler_config(text).config
    assert config is not None
    assert [extender.url_prefix for extender in config.order()] == ["b", "d", "a", "c"]


@pytest.mark.parametrize(
    "document", [BESIDE, {**FULL_OFFLOAD, "extenders": SCORE_OFFLOAD["extenders"]}], ids=["beside", "no filter"]
)
def test_a_part_of_the_pods_is_an_error_only_where_nobody_filters_the_others(document: dict[str, Any]) -> None:
    (finding,) = found(registration(document, managedResources=[GPU]), "managed-resources")
    assert finding.severity is Severity.WARNING
