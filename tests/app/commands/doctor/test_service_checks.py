"""What a running Kindred has said, judged."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from app import __version__
from app.commands.doctor.registration import KnownSettings
from app.commands.doctor.service import Answer, Visit
from app.commands.doctor.service_checks import CHECKS, CHECKS_OF_KINDRED, Running
from app.scheduler_configuration.schema import Finding, Severity
from app.settings import Settings
from app.wiring.engine import create_profile

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


def running(*, known: KnownSettings = KNOWN, **answers: Answer) -> Running:
    """Return a Kindred that is well, but for these answers."""
    well = {
        "version": answer({"version": __version__, "python": "3.11.1"}),
        "readyz": answer(READY),
        "metrics": answer(b'kindred_requests_total{verb="filter",outcome="shed"} 0\n'),
    }
    return Running(Visit(URL, {f"/{path}": each for path, each in {**well, **answers}.items()}), known)


def found(looked_at: Running, check: str) -> list[Finding]:
    (chosen,) = [each for each in (*CHECKS, *CHECKS_OF_KINDRED) if each.id == check]
    return chosen.findings(looked_at)


def readiness(status: int = 200, resources: Mapping[str, Any] | None = None, **fields: Any) -> Answer:  # noqa: ANN401
    return answer({**READY, "resources": resources or {}, **fields}, status)


NOT_READY = readiness(503, ready=False, problems=["pods: never listed"])
STALE = readiness(503, ready=False, problems=["pods: stale"])


def resource(**fields: object) -> dict[str, object]:
    return {"pods": {**FOLLOWED, **fields}}


def test_of_a_kindred_that_is_well_nothing_is_said() -> None:
    assert [finding for check in (*CHECKS, *CHECKS_OF_KINDRED) for finding in check.findings(running())] == []


@pytest.mark.parametrize(
    ("check", "severity", "where", "looked_at"),
    [
        pytest.param(
            "service-reachable",
            Severity.ERROR,
            "",
            Running(Visit(URL, {}, failure="nobody there", mending="look"), KNOWN),
            id="unreachable",
        ),
        pytest.param(
            "service-reachable",
            Severity.ERROR,
            "/version",
            running(version=answer(b"<html>", 404)),
            id="another server",
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
            "service-ready",
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
            "service-cache",
            Severity.ERROR,
            "/metrics",
            running(metrics=answer(b"kindred_equivalence_mismatches_total 1.0\n")),
            id="a wrong cache",
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


def test_a_missing_rule_is_told_once_and_with_what_to_write() -> None:
    resources = {"pods": {**FOLLOWED, "synced": False, "missing_rbac_rule": RULE}}
    looked_at = running(readyz=readiness(503, resources, ready=False, problems=["pods: forbidden", "nodes: refused"]))
    rule, other = found(looked_at, "service-ready")
    assert rule.fix.startswith(f"- {{{RULE}}} in its ClusterRole")
    assert other.message == "nodes: refused"
