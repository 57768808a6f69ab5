"""What a running Kindred has said, judged."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from app import __version__
from app.commands.doctor.registration import KnownSettings
from app.commands.doctor.service import PROBE_NODE, Answer, Visit
from app.commands.doctor.service_checks import CHECKS, CHECKS_OF_KINDRED, Running
from app.scheduler_configuration.finding import Finding, Severity
from app.settings import Settings
from app.wiring.engine import create_profile
from tests.app.commands.doctor.registrations import registration

URL = "http://10.96.0.10:8888"
SETTINGS = Settings()
KNOWN = KnownSettings(SETTINGS, create_profile(SETTINGS), "the test", assumed=True)
READY = {"ready": True, "nodes": 3, "problems": [], "resources": {}}
FOLLOWED = {"synced": True, "seconds_since_last_byte": 4.0, "problem": None, "missing_rbac_rule": None}
RULE = 'apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]'
UNKNOWN_RELEASE = {"release": "1.37", "source": "server", "exact": False, "told": "v1.38.0", "ignored_gates": []}
UNREADY = {"status": 503}
GROUPS = "podgroups.scheduling.k8s.io"
GROUPING = KNOWN._replace(settings=Settings(admin="127.0.0.1:0", decide_groups_scheduler="kindred-groups"))


def answer(document: object, status: int = 200) -> Answer:
    return Answer(status, document if isinstance(document, bytes) else msgspec.json.encode(document))


def running(*, seconds: float = 0.001, known: KnownSettings = KNOWN, **answers: Answer) -> Running:
    """Return a Kindred that is well, but for these answers."""
    well = {
        "version": answer({"version": __version__, "python": "3.11.1"}),
        "readyz": answer(READY),
        "metrics": answer(b'kindred_requests_total{verb="filter",outcome="shed"} 0\n'),
        "filter": answer({"Nodes": None, "NodeNames": [], "FailedNodes": {PROBE_NODE: "unknown"}, "Error": ""}),
        "prioritize": answer([{"Host": PROBE_NODE, "Score": 0}]),
    }
    return Running(Visit(URL, {f"/{path}": each for path, each in {**well, **answers}.items()}, seconds), known, None)


def found(looked_at: Running, check: str) -> list[Finding]:
    (chosen,) = [each for each in (*CHECKS, *CHECKS_OF_KINDRED) if each.id == check]
    return chosen.findings(looked_at)


def readiness(status: int = 200, resources: Mapping[str, Any] | None = None, **fields: Any) -> Answer:  # noqa: ANN401
    return answer({**READY, "resources": resources or {}, **fields}, status)


NOT_READY = readiness(503, ready=False, problems=["pods: never listed"])
STALE = readiness(503, ready=False, problems=["pods: stale"])


def resource(**fields: object) -> dict[str, object]:
    return {"pods": {**FOLLOWED, **fields}}


def test_of_a_kindred_that_is_well_there_is_only_to_know_how_fast_it_is() -> None:
    findings = [finding for check in (*CHECKS, *CHECKS_OF_KINDRED) for finding in check.findings(running())]
    assert [(finding.id, finding.severity) for finding in findings] == [("service-latency", Severity.INFO)]
    assert findings[0].message == "a request about one node takes 1.0 ms from here"


@pytest.mark.parametrize(
    ("check", "severity", "where", "looked_at"),
    [
        pytest.param(
            "service-reachable",
            Severity.ERROR,
            "",
            Running(Visit(URL, {}, failure="nobody there", mending="look"), KNOWN, None),
            id="unreachable",
        ),
        pytest.param(
            "service-identity", Severity.ERROR, "/version", running(version=answer(b"<html>", 404)), id="another server"
        ),
        pytest.param(
            "service-identity",
            Severity.INFO,
            "/version",
            running(version=answer({"version": "9.9.9", "python": "3"})),
            id="another version",
        ),
        pytest.param(
            "service-release",
            Severity.WARNING,
            "/version",
            running(version=answer({"version": __version__, "python": "3", "kubernetes": UNKNOWN_RELEASE})),
            id="another release of Kubernetes",
        ),
        pytest.param("service-ready", Severity.ERROR, "/readyz", running(readyz=NOT_READY), id="not ready"),
        pytest.param(
            "service-ready",
            Severity.ERROR,
            "/readyz",
            running(readyz=readiness(503, ready=False)),
            id="not ready without a reason",
        ),
        pytest.param("service-ready", Severity.ERROR, "/readyz", running(readyz=answer(b"", 500)), id="no readiness"),
        pytest.param("service-ready", Severity.ERROR, "/readyz", running(readyz=readiness(nodes=0)), id="no node"),
        pytest.param(
            "service-ready",
            Severity.INFO,
            "/readyz",
            running(readyz=readiness(503, ready=False, problems=["another replica leads: kindred-1"])),
            id="another replica leads",
        ),
        pytest.param(
            "service-ready",
            Severity.INFO,
            "/readyz",
            running(readyz=readiness(503, ready=False, problems=["not leading"])),
            id="another replica leads, without its name",
        ),
        pytest.param(
            "service-rbac",
            Severity.ERROR,
            "/readyz resources.pods",
            running(readyz=readiness(resources=resource(missing_rbac_rule=RULE))),
            id="a rule is missing",
        ),
        pytest.param(
            "service-groups",
            Severity.INFO,
            f"/readyz resources.{GROUPS}",
            running(known=GROUPING, readyz=readiness(resources={GROUPS: {**FOLLOWED, "absent": True}})),
            id="no groups",
        ),
        pytest.param(
            "service-stale",
            Severity.WARNING,
            "/readyz resources.pods",
            running(readyz=readiness(resources=resource(seconds_since_last_byte=120.0))),
            id="late",
        ),
        pytest.param(
            "service-stale",
            Severity.ERROR,
            "/readyz resources.pods",
            running(readyz=readiness(resources=resource(seconds_since_last_byte=181.0))),
            id="stale",
        ),
        pytest.param(
            "service-answers", Severity.ERROR, "/filter", running(filter=answer({"Error": "broken"})), id="an Error"
        ),
        pytest.param("service-answers", Severity.ERROR, "/filter", running(filter=answer(b"", 500)), id="a status"),
        pytest.param(
            "service-answers", Severity.ERROR, "/prioritize", running(prioritize=answer([])), id="a node is missing"
        ),
        pytest.param(
            "service-answers",
            Severity.ERROR,
            "/prioritize",
            running(prioritize=answer({"Error": "no"})),
            id="no scores",
        ),
        pytest.param("service-latency", Severity.WARNING, "/filter", running(seconds=0.6), id="slow"),
        pytest.param(
            "service-metrics", Severity.WARNING, "/metrics", running(metrics=answer(b"", 404)), id="no metrics"
        ),
        pytest.param(
            "service-metrics",
            Severity.ERROR,
            "/metrics",
            running(metrics=answer(b"kindred_requests_total{")),
            id="cut off",
        ),
        *(
            pytest.param(
                "service-metrics", severity, "/metrics", running(metrics=answer(text.encode() + b"\n")), id=text
            )
            for severity, text in (
                (Severity.ERROR, "kindred_equivalence_mismatches_total 1"),
                (Severity.ERROR, 'kindred_requests_total{verb="bind",outcome="internal_error"} 2'),
                (Severity.WARNING, 'kindred_requests_total{verb="filter",outcome="shed"} 3'),
                (Severity.WARNING, 'kindred_requests_total{verb="bind",outcome="failed"} 3'),
                (Severity.INFO, 'kindred_stale_requests_total{verb="filter"} 1'),
            )
        ),
    ],
)
def test_what_is_wrong_is_found_once(check: str, severity: Severity, where: str, looked_at: Running) -> None:
    (finding,) = found(looked_at, check)
    assert (severity, URL + where) == (finding.severity, finding.where)


def test_groups_that_the_server_lacks_matter_for_a_scheduler_of_groups_alone() -> None:
    absent, there = ({GROUPS: {**FOLLOWED, "absent": absent}} for absent in (True, False))
    assert found(running(readyz=readiness(resources=absent)), "service-groups") == []
    assert found(running(known=GROUPING, readyz=readiness(resources=there)), "service-groups") == []


def test_a_slow_service_is_held_against_the_timeout_of_the_extender() -> None:
    with_timeout = running(seconds=0.15)._replace(registration=registration(httpTimeout="1s"))
    (finding,) = found(with_timeout, "service-latency")
    assert Severity.WARNING is finding.severity
    assert "more than 100 ms, a tenth of the httpTimeout" in finding.message


def test_a_missing_rule_is_told_once_and_with_what_to_write() -> None:
    resources = {"pods": {**FOLLOWED, "synced": False, "missing_rbac_rule": RULE}}
    looked_at = running(readyz=readiness(503, resources, ready=False, problems=["pods: forbidden", "nodes: refused"]))
    (finding,) = found(looked_at, "service-rbac")
    assert finding.fix.startswith(f"- {{{RULE}}} in its ClusterRole")
    assert [finding.message for finding in found(looked_at, "service-ready")] == ["nodes: refused"]


def test_an_error_of_a_mirror_that_is_not_ready_is_told_by_its_readiness_alone() -> None:
    refusing = running(readyz=STALE, filter=answer({"Error": "stale"}), prioritize=answer([]))
    assert found(refusing, "service-answers") == []
    assert [finding.message for finding in found(refusing, "service-ready")] == ["pods: stale"]


def test_the_limit_of_staleness_is_that_of_the_settings() -> None:
    patient = KnownSettings(Settings(stale_after=300, assumed_pod_ttl=400), KNOWN.plugins, "the test", assumed=False)
    late = readiness(resources=resource(seconds_since_last_byte=181.0, problem="connection refused"))
    (finding,) = found(running(readyz=late, known=patient), "service-stale")
    assert Severity.WARNING is finding.severity
    assert finding.message.startswith("no data for pods for 181 s: connection refused; after 300 s, its staleAfter,")
