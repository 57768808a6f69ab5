"""Where kube-scheduler's calls lead to: address, TLS and time, for which pods, and among which other extenders."""

import copy
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.commands.doctor.examination import REGISTRATION_CHECKS
from app.commands.doctor.registration import Registration
from app.scheduler_configuration.scheduler_config import choose_extender, parse_scheduler_config
from app.scheduler_configuration.schema import POINTS
from app.scheduler_configuration.validation import UnreadableError
from app.settings.settings import Settings
from app.wiring.engine import create_profile
from tests.app.commands.doctor.registrations import (
    DECIDING,
    FULL_OFFLOAD,
    NEXT_TO,
    SCORE_OFFLOAD,
    Case,
    assert_reported_apart,
    deciding,
    error,
    extenders,
    found,
    registration,
    warning,
)

PREFIX = "extenders[0].urlPrefix"
TIMEOUT = "extenders[0].httpTimeout"
OTHER = {"urlPrefix": "http://other", "filterVerb": "filter"}
NO_FILTER = {"urlPrefix": "http://other:1", "preemptVerb": "preempt"}
GPU = {"name": "example.com/gpu"}
HTTPS = "https://10.96.0.10:8888"
CA = {"caFile": "/nowhere/ca.crt"}
MUTUAL = {**CA, "certFile": "/nowhere/tls.crt", "keyFile": "/nowhere/tls.key"}
BINDS: dict[str, Any] = {"bind": True, "preempt": "verb"}
SERVED: dict[str, Any] = {"tls_directory": "/nowhere"}
ASKING: dict[str, Any] = {**SERVED, "tls_client_names": ["kube-scheduler"]}


def behind(**fields: Any) -> dict[str, Any]:  # noqa: ANN401  # of an extender
    return {**NEXT_TO, "extenders": [*NEXT_TO["extenders"], {**OTHER, **fields}]}


def with_kindred_first(document: dict[str, Any], **settings: object) -> Any:  # noqa: ANN401  # a registration
    looked_at = registration(document, settings=settings)
    (first, *_) = looked_at.config.extenders
    return looked_at._replace(extender=first)


def twice(**verb: object) -> Any:  # noqa: ANN401  # a registration
    """Make one whose extender comes a second time, with this verb and another writing of its URL."""
    return registration(extenders(SCORE_OFFLOAD, {"urlPrefix": "http://10.96.0.10:8888/", **verb}))


def named(first: str, second: str) -> Any:  # noqa: ANN401  # a registration
    """Make one with two extenders, at these hosts, with different verbs."""
    other = {"urlPrefix": f"http://{first}:8888", "filterVerb": "filter"}
    return registration(extenders(SCORE_OFFLOAD, other), urlPrefix=f"http://{second}:8888")


CASES = {
    "no-verb": error("verb-name", "extenders[0]", registration(prioritizeVerb=None), registration()),
    "a-slip-of-the-pen": error(
        "verb-name",
        "extenders[0].prioritizeVerb",
        registration(prioritizeVerb="prioritise"),
        registration(prioritizeVerb="prioritize"),
    ),
    "no-url": error(
        "url-prefix",
        "extenders[1].urlPrefix",
        registration(extenders(NEXT_TO, OTHER), urlPrefix="//10.96.0.10:8888"),
        registration(),
    ),
    "a-port-that-is-none": error("url-prefix", PREFIX, registration(urlPrefix="http://kindred:http"), registration()),
    "the-verb-in-the-url": error(
        "url-prefix",
        PREFIX,
        registration(urlPrefix="http://10.96.0.10:8888/filter"),
        registration(urlPrefix="http://10.96.0.10:8888/"),
    ),
    "a-path": warning("url-prefix", PREFIX, registration(urlPrefix="http://10.96.0.10:8888/v1"), registration()),
    "the-health-port": error(
        "url-prefix",
        PREFIX,
        registration(urlPrefix="http://10.96.0.10:8889", settings={"health_port": 8889}),
        registration(),
    ),
    "the-admin-port-of-the-overlays": error(
        "url-prefix", PREFIX, registration(urlPrefix="http://10.96.0.10:8890", assumed=True), registration(assumed=True)
    ),
    "a-port-that-kindred-does-not-listen-on": warning(
        "url-prefix",
        PREFIX,
        registration(settings={"listen": "0.0.0.0:9999", "allow_unauthenticated_effects": True}),
        registration(
            urlPrefix="http://10.96.0.10:9999",
            settings={"listen": "0.0.0.0:9999", "allow_unauthenticated_effects": True},
        ),
    ),
    "a-port-of-the-loopback": error(
        "url-prefix",
        PREFIX,
        registration(settings={"listen": "127.0.0.1:8888"}),
        registration(urlPrefix="http://127.0.0.1:8888", settings={"listen": "127.0.0.1:8888"}),
    ),
    "a-text-to-fill-in": error(
        "url-prefix",
        PREFIX,
        registration(urlPrefix="http://<ClusterIP>:8888"),
        registration(urlPrefix="http://a_b:8888"),
    ),
    "a-certificate-without-its-key": error(
        "tls",
        "extenders[0].tlsConfig.keyFile",
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig={**CA, "certFile": "/tls.crt"}),
        registration(urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=MUTUAL),
    ),
    "an-effect-without-a-certificate": warning(
        "tls",
        "extenders[0].tlsConfig.certFile",
        registration(FULL_OFFLOAD, urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=CA, assumed=True, settings=BINDS),
        registration(FULL_OFFLOAD, urlPrefix=HTTPS, enableHTTPS=True, tlsConfig=MUTUAL, assumed=True, settings=BINDS),
    ),
    "one-kindred-twice": error(
        "same-url",
        "extenders[1].urlPrefix",
        twice(prioritizeVerb="prioritize", weight=1),
        registration(extenders(SCORE_OFFLOAD, {**OTHER, "prioritizeVerb": "prioritize", "weight": 1})),
    ),
    "one-kindred-by-two-names-of-its-service": warning(
        "same-url",
        "extenders[1].urlPrefix",
        named("kindred.ns.svc.cluster.local", "kindred.ns"),
        named("other.ns.svc.cluster.local", "kindred.ns"),
    ),
    "one-kindred-by-its-short-name": warning(
        "same-url", "extenders[1].urlPrefix", named("kindred.ns", "kindred"), named("other.ns", "kindred")
    ),
    "one-kindred-in-two-parts": warning(
        "same-url", "extenders[1].urlPrefix", twice(filterVerb="filter"), registration()
    ),
    "settings-of-full-offload": error(
        "other-registration",
        "extenders[0]",
        registration(settings={"bind": True, "preempt": "verb"}),
        registration(settings={"bind": False, "preempt": "verb"}),
    ),
    "settings-without-effects": error(
        "other-registration",
        "extenders[0]",
        registration(FULL_OFFLOAD, settings={"bind": False, "preempt": "off"}),
        registration(FULL_OFFLOAD, settings={"bind": False}),
    ),
    "settings-of-decide": error(
        "other-registration", "extenders[0]", registration(FULL_OFFLOAD, settings=DECIDING), registration(FULL_OFFLOAD)
    ),
    "kindred-answers-all-nodes-to-a-scheduler-that-leaves-it-the-choice": error(
        "other-registration", "extenders[0]", deciding(settings={"decide": "off"}), deciding()
    ),
    "kindred-decides-for-other-schedulers": error(
        "other-registration",
        "decideSchedulers (KINDRED_DECIDE_SCHEDULERS)",
        deciding(
            settings={
                "decide_schedulers": ["another"],
                "decide_claims_scheduler": "",
                "decide_groups_scheduler": "",
            }
        ),
        deciding(settings={"decide_schedulers": ["kindred", "another"]}),
    ),
    "no-port": warning("url-prefix", PREFIX, registration(urlPrefix="http://kindred"), registration()),
    "a-resource-that-nobody-counts": error(
        "managed-resources",
        "extenders[0].managedResources",
        registration(managedResources=[{**GPU, "ignoredByScheduler": True}]),
        registration(managedResources=[GPU]),
    ),
    "nobody-filters-the-other-pods": error(
        "managed-resources",
        "extenders[0].managedResources",
        registration(FULL_OFFLOAD, managedResources=[GPU]),
        registration(NEXT_TO, managedResources=[GPU]),
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
        registration(NEXT_TO, nodeCacheCapable=False),
        registration(nodeCacheCapable=None),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_reported_apart(case)


def test_the_mending_of_a_short_timeout_is_right() -> None:
    (finding,) = found(registration(httpTimeout="500ms", settings={"http_timeout": 2.5}), "timeout")
    assert finding.fix == "httpTimeout: 2500ms, or httpTimeout: 0.5 (KINDRED_HTTP_TIMEOUT)"
    assert finding.message.startswith("500ms, and Kindred's httpTimeout is 2.5 s: ")
    assert found(registration(httpTimeout="2500ms", settings={"http_timeout": 2.5}), "timeout") == []
    assert found(registration(httpTimeout="500ms", settings={"http_timeout": 0.5}), "timeout") == []


def test_the_default_timeout_is_named() -> None:
    (finding,) = found(registration(httpTimeout=None, settings={"http_timeout": 7}), "timeout")
    assert finding.message.startswith("not set, which means 5 s, and ")


KNOWN = [
    (chosen, create_profile(chosen), assumed)
    for chosen in (Settings(), Settings(profile="full", preempt="evict"), Settings(profile="filter:NodePorts"))
    for assumed in (True, False)
]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.floats(),
    st.sampled_from(
        ["", "5s", "-1s", "filter", "/bind", "https://a", "http://[", "http://a:x", "InterPodAffinity", "*", "é"]
    ),
    st.lists(st.one_of(st.none(), st.just({}), st.just({"name": "NodePorts"})), max_size=2),
    st.dictionaries(
        st.sampled_from([*POINTS, "name", "insecure", "caFile", "caData", "certFile", "disabled", "enabled"]),
        st.one_of(st.none(), st.just("AAAA"), st.just([{"name": "InterPodAffinity", "weight": 3}]), st.just({})),
        max_size=3,
    ),
)
KEYS = st.sampled_from(
    ["urlPrefix", "filterVerb", "bindVerb", "weight", "tlsConfig", "enableHTTPS", "httpTimeout", "managedResources",
     "plugins", "pluginConfig", "schedulerName", "percentageOfNodesToScore", "extenders", "profiles", "kind", "odd"]
)  # fmt: skip


def places(node: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # whatever YAML holds
    """Return all objects in a document."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return ([node] if isinstance(node, dict) else []) + [place for child in children for place in places(child)]


@settings(deadline=None)
@given(st.data())
def test_no_document_is_too_much(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from([SCORE_OFFLOAD, FULL_OFFLOAD, NEXT_TO])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(places(document)))
        key = data.draw(st.one_of(KEYS, st.sampled_from(sorted(place)) if place else KEYS))
        place[key] = copy.deepcopy(data.draw(JUNK))
    try:
        config = parse_scheduler_config(yaml.safe_dump(document))
    except UnreadableError:
        return
    extender, problem = choose_extender(config, "", "")
    assert (extender is None) == bool(problem)
    if extender is not None:
        for registration in (
            Registration(config, extender, *data.draw(st.sampled_from(KNOWN))),
            Registration.inferred(config, extender),
        ):
            for check in REGISTRATION_CHECKS:
                check.findings(registration)


@settings(deadline=None)
@given(st.text(alphabet="-:[]{}&*!#|>%@`'\" \n\tab1", max_size=40))
@example("? [a]\n: b")
@example("{[a]: b}")
@example("? {a: b}\n: c")
@example("&a {a: *a}")
@example("a: !!python/object:os.x {}")
@example("a: !!int ''")
def test_no_text_is_too_much(text: str) -> None:
    with pytest.raises(UnreadableError, match=r"\A.+\Z"):
        parse_scheduler_config(text)
