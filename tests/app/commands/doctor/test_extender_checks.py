"""Where kube-scheduler's calls lead to: address, TLS and time, for which pods, and among which other extenders."""

from typing import Any

import pytest

from app.scheduler_configuration.scheduler_config import parse_scheduler_config
from app.scheduler_configuration.schema import Severity
from tests.app.commands.doctor.registrations import (
    BESIDE,
    FULL_OFFLOAD,
    SCORE_OFFLOAD,
    Case,
    assert_told_apart,
    error,
    extenders,
    found,
    not_checked,
    registration,
    warning,
)

PREFIX = "extenders[0].urlPrefix"
TIMEOUT = "extenders[0].httpTimeout"
OTHER = {"urlPrefix": "http://other", "filterVerb": "filter"}
NO_FILTER = {"urlPrefix": "http://other:1", "preemptVerb": "preempt"}
BINDER = {"urlPrefix": "http://other", "bindVerb": "bind"}
GPU = {"name": "example.com/gpu"}
HTTPS = "https://10.96.0.10:8888"
CA = {"caFile": "/nowhere/ca.crt"}
MUTUAL = {**CA, "certFile": "/nowhere/tls.crt", "keyFile": "/nowhere/tls.key"}
SERVED: dict[str, Any] = {"tls_directory": "/nowhere"}
ASKING: dict[str, Any] = {**SERVED, "tls_client_names": ["kube-scheduler"]}


def behind(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of an extender
    return {**BESIDE, "extenders": [*BESIDE["extenders"], {**OTHER, **fields}]}


def with_kindred_first(document: dict[str, Any], **settings: object) -> Any:  # noqa: ANN401  # a registration
    looked_at = registration(document, settings=settings)
    (first, *_) = looked_at.config.extenders
    return looked_at._replace(extender=first)


CASES = {
    "two-profiles-of-one-name": error(
        "rejected-values",
        "profiles[0].schedulerName",
        registration({**FULL_OFFLOAD, "profiles": [{"schedulerName": "one"}, {"schedulerName": "one"}]}),
        registration({**FULL_OFFLOAD, "profiles": [{}]}),
    ),
    "no-weight": error("rejected-values", "extenders[0].weight", registration(weight=None), registration(weight=1)),
    "a-negative-weight": error(
        "rejected-values", "extenders[0].weight", registration(weight=-1), registration(weight=2)
    ),
    "two-binders": error(
        "rejected-values",
        "extenders",
        registration(extenders(FULL_OFFLOAD, BINDER)),
        registration(extenders(SCORE_OFFLOAD, BINDER)),
    ),
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
    "a-slash": error("verb-name", "extenders[0].filterVerb", registration(filterVerb="/filter"), registration(BESIDE)),
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
    "a-sample-for-those-behind": warning(
        "other-extenders",
        "extenders[0]",
        with_kindred_first(behind(ignorable=True), percentage_of_nodes_to_score=0),
        with_kindred_first(behind(ignorable=True)),
    ),
    "evicts-for-those-behind": warning(
        "other-extenders",
        "extenders[0]",
        with_kindred_first(behind(ignorable=True), preempt="evict"),
        with_kindred_first(behind(ignorable=True)),
    ),
    "a-timeout-below-the-deadline": warning(
        "timeout",
        TIMEOUT,
        registration(httpTimeout="4s", settings={"http_timeout": 5}),
        registration(httpTimeout="4s", settings={"http_timeout": 4.9}),
    ),
    "the-default-timeout-below-the-deadline": warning(
        "timeout",
        TIMEOUT,
        registration(httpTimeout=None, settings={"http_timeout": 6.25}),
        registration(httpTimeout=None),
    ),
    "a-timeout-below-the-timeout-of-bind": error(
        "timeout",
        TIMEOUT,
        registration(FULL_OFFLOAD, httpTimeout="1m20s", settings={"http_timeout": 100}),
        registration(FULL_OFFLOAD, httpTimeout="1m21s", settings={"http_timeout": 100}),
    ),
    "https-in-words-only": error(
        "tls",
        "extenders[0].urlPrefix",
        registration(enableHTTPS=True),
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=CA),
    ),
    "a-ca-for-plain-http": error("tls", "extenders[0].urlPrefix", registration(tlsConfig=CA), registration()),
    "an-https-url-and-no-ca-of-the-cluster": warning(
        "tls",
        "extenders[0].enableHTTPS",
        registration(urlPrefix=HTTPS),
        registration(urlPrefix=HTTPS, tlsConfig=CA),
    ),
    "tls-without-a-ca": error(
        "tls",
        "extenders[1].tlsConfig.caFile",
        registration(extenders(SCORE_OFFLOAD, NO_FILTER), urlPrefix=HTTPS, enableHTTPS=True),
        registration(extenders(SCORE_OFFLOAD, NO_FILTER), urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=CA),
    ),
    "tls-that-believes-everybody": warning(
        "tls",
        "extenders[0].tlsConfig.insecure",
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig={"insecure": True}),
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig={"caData": "AAAA"}),
    ),
    "plain-http-to-tls": error(
        "tls-of-kindred",
        "extenders[0].urlPrefix",
        registration(settings=SERVED),
        registration(urlPrefix=HTTPS, settings=SERVED),
    ),
    "tls-to-plain-http": error(
        "tls-of-kindred", "extenders[0].urlPrefix", registration(urlPrefix=HTTPS), registration()
    ),
    "no-client-certificate": error(
        "tls-of-kindred",
        "extenders[0].tlsConfig.certFile",
        registration(urlPrefix=HTTPS, tlsConfig=CA, settings=ASKING),
        registration(urlPrefix=HTTPS, tlsConfig=MUTUAL, settings=ASKING),
    ),
    "whole-nodes-and-a-filter": error(
        "node-cache-capable",
        "extenders[0].nodeCacheCapable",
        registration(BESIDE, nodeCacheCapable=False),
        registration(BESIDE),
    ),
    "whole-nodes-by-default-for-scores-alone": warning(
        "node-cache-capable", "extenders[0].nodeCacheCapable", registration(nodeCacheCapable=None), registration()
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
    assert finding.message == "'bind', which is for bindVerb: kube-scheduler calls /bind, and Kindred serves /filter"
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


def test_the_mending_of_a_short_timeout_is_right() -> None:
    (finding,) = found(registration(httpTimeout="500ms", settings={"http_timeout": 2.5}), "timeout")
    assert finding.fix == "httpTimeout: 2500ms, or httpTimeout: 0.5 (KINDRED_HTTP_TIMEOUT)"
    assert finding.message.startswith("500ms, and Kindred's httpTimeout is 2.5 s: ")
    assert found(registration(httpTimeout="2500ms", settings={"http_timeout": 2.5}), "timeout") == []
    assert found(registration(httpTimeout="500ms", settings={"http_timeout": 0.5}), "timeout") == []


def test_the_default_timeout_is_named() -> None:
    (finding,) = found(registration(httpTimeout=None, settings={"http_timeout": 7}), "timeout")
    assert finding.message.startswith("not set, which means 5 s, and ")


def test_what_follows_from_settings_that_were_not_given_is_no_error_yet() -> None:
    (finding,) = found(registration(FULL_OFFLOAD, httpTimeout="1s", assumed=True), "timeout")
    assert finding.severity is Severity.WARNING
    assert "httpTimeout is 5 s (the default)" in finding.message


def test_whether_kindred_speaks_tls_is_not_said_of_settings_that_were_not_given() -> None:
    looked_at = registration(urlPrefix=HTTPS, assumed=True)
    assert found(looked_at, "tls-of-kindred") == []
    assert not_checked(looked_at, "tls-of-kindred") == ["Kindred's settings: --config FILE or --admin-url URL"]


def test_the_binder_to_keep_is_kindred_if_it_is_one() -> None:
    (finding,) = found(registration(extenders(FULL_OFFLOAD, BINDER)), "rejected-values")
    assert finding.fix == "keep bindVerb only in extenders[1]"
    (finding,) = found(registration(extenders(SCORE_OFFLOAD, BINDER, BINDER)), "rejected-values")
    assert finding.fix == "keep bindVerb only in extenders[1]"


def test_whole_nodes_are_worse_after_filter() -> None:
    (finding,) = found(registration(BESIDE, nodeCacheCapable=False), "node-cache-capable")
    assert "issue 141781" in finding.message
    (finding,) = found(registration(nodeCacheCapable=False), "node-cache-capable")
    assert "issue 141781" not in finding.message
