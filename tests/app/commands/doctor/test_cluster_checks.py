"""Whether a service account may do what Kindred needs, as an API server says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.api_server.credentials import load_credentials
from app.commands.doctor.cluster_checks import (
    Account,
    Need,
    gate_findings,
    needs,
    rbac_findings,
    release_findings,
    rule_of,
)
from app.commands.doctor.findings import Finding, Severity
from app.scheduler_configuration.validation import UnreadableError
from app.settings.settings import Settings
from tests.app.api_server.api_server import Request, response, serving
from tests.app.api_server.client_setting import write_kubeconfig

ACCOUNT = Account("kindred", "kindred")


def requested(
    folder: Path, settings: Settings, allowed: Callable[[dict[str, str]], bool]
) -> tuple[list[str], list[Request]]:
    """Ask a server that allows so; give what was found to be missing, and the requests."""

    async def respond(request: Request) -> AsyncIterator[bytes]:
        attributes = msgspec.json.decode(request.body)["spec"]["resourceAttributes"]
        yield response(msgspec.json.encode({"status": {"allowed": allowed(attributes)}}), "201 Created")

    async def main() -> tuple[list[str], list[Request]]:
        async with serving(respond) as server:
            credentials = load_credentials(write_kubeconfig(folder / "config", server.url), None)
            findings = await asyncio.to_thread(lambda: [*rbac_findings(credentials, settings, ACCOUNT)])
            return [f"{each.severity.value}: {each.message}" for each in findings], server.requests

    return asyncio.run(main())


def test_nothing_is_found_where_all_is_allowed(tmp_path: Path) -> None:
    missing, requests = requested(tmp_path, Settings(), lambda _: True)
    assert missing == []
    assert {"/apis/authorization.k8s.io/v1/subjectaccessreviews"} == {request.path for request in requests}
    spec: dict[str, Any] = msgspec.json.decode(requests[0].body)["spec"]
    assert spec["user"] == "system:serviceaccount:kindred:kindred"
    assert spec["groups"] == ["system:serviceaccounts", "system:serviceaccounts:kindred", "system:authenticated"]


def test_every_resource_with_verbs_that_are_not_allowed_is_found_once(tmp_path: Path) -> None:
    missing, _ = requested(tmp_path, Settings(), lambda attributes: attributes["resource"] != "pods")
    assert missing == [
        "error: the service account kindred/kindred may not list and watch pods in all namespaces",
    ]


def test_what_only_explanations_read_is_a_warning(tmp_path: Path) -> None:
    settings = Settings(admin="127.0.0.1:0")
    missing, _ = requested(tmp_path, settings, lambda attributes: attributes["resource"] not in {"csinodes", "pods"})
    assert missing == [
        "error: the service account kindred/kindred may not list and watch pods in all namespaces",
        (
            "warning: the service account kindred/kindred may not list and watch csinodes in all namespaces, "
            "for explanations"
        ),
    ]


def test_the_lease_is_needed_in_a_namespace_and_by_name() -> None:
    required = [*needs(Settings(leader_election="kindred"), ACCOUNT)]
    assert [
        Need("coordination.k8s.io", "leases", "create", "kindred"),
        Need("coordination.k8s.io", "leases", "get", "kindred", "kindred"),
        Need("coordination.k8s.io", "leases", "update", "kindred", "kindred"),
    ] == [need for need in required if need.resource == "leases"]
    assert rule_of(*required[:2]) == '- {apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"]}'
    assert 'resourceNames: ["kindred"], verbs: ["get"]' in rule_of(required[-3])


def test_who_may_not_ask_is_told(tmp_path: Path) -> None:
    async def refuse(_: Request) -> AsyncIterator[bytes]:
        yield response(b'{"kind":"Status","code":403,"message":"no"}', "403 Forbidden")

    async def main() -> None:
        async with serving(refuse) as server:
            credentials = load_credentials(write_kubeconfig(tmp_path / "config", server.url), None)
            await asyncio.to_thread(lambda: [*rbac_findings(credentials, Settings(), ACCOUNT)])

    with pytest.raises(UnreadableError, match="your own user may not ask that"):
        asyncio.run(main())


@pytest.mark.parametrize("text", ["kindred", "a/b/c", "/kindred", "kindred/"])
def test_an_account_is_a_namespace_and_a_name(text: str) -> None:
    with pytest.raises(UnreadableError, match="expected NAMESPACE/NAME"):
        Account.parse(text)


def found(folder: Path, settings: Settings, body: bytes, status: str = "200 OK") -> list[Finding]:
    """Ask a server that answers so."""

    async def respond(_: Request) -> AsyncIterator[bytes]:
        yield response(body, status)

    async def main() -> list[Finding]:
        async with serving(respond) as server:
            credentials = load_credentials(write_kubeconfig(folder / "config", server.url), None)
            findings = await asyncio.to_thread(lambda: [*release_findings(credentials, settings)])
            assert {request.path for request in server.requests} == {"/version"}
            return findings

    return asyncio.run(main())


def version(git_version: str) -> bytes:
    return msgspec.json.encode({"major": "1", "minor": "0", "gitVersion": git_version})


@pytest.mark.parametrize(
    ("release", "git_version"), [("auto", "v1.34.1"), ("auto", "v1.37.0+k3s1"), ("1.36", "v1.36.3")]
)
def test_nothing_is_found_where_the_cluster_is_of_the_release(release: str, git_version: str, tmp_path: Path) -> None:
    assert found(tmp_path, Settings(kubernetes=release), version(git_version)) == []


def test_a_setting_that_is_not_the_clusters_release_is_a_warning(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, Settings(kubernetes="1.34"), version("v1.37.1"))
    assert (finding.id, finding.severity, finding.where) == (
        "kubernetes-release",
        Severity.WARNING,
        "kubernetes (KINDRED_KUBERNETES)",
    )
    assert finding.message == "Kindred answers as Kubernetes 1.34, and the API server is v1.37.1"
    assert finding.fix.startswith("kubernetes: auto (KINDRED_KUBERNETES)")


@pytest.mark.parametrize(
    ("setting", "git_version", "release", "fix"),
    [
        ("auto", "v1.38.0", "1.37", "a Kindred that knows it; this one knows 1.34 to 1.37"),
        ("1.37", "v1.38.0", "1.37", "a Kindred that knows it; this one knows 1.34 to 1.37"),
        ("auto", "v1.33.5-eks-3025e55", "1.34", "Kubernetes 1.34 or newer, or look at scores and reasons with care"),
    ],
)
def test_an_unknown_release_is_a_warning(
    setting: str, git_version: str, release: str, fix: str, tmp_path: Path
) -> None:
    (finding,) = found(tmp_path, Settings(kubernetes=setting), version(git_version))
    assert finding.message == f"the API server is {git_version}: answered as {release}, the nearest known release"
    assert finding.fix == fix


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'{"kind":"Status","code":403,"message":"no"}', "403 Forbidden", id="forbidden"),
        pytest.param(b"[]", "200 OK", id="no version"),
    ],
)
def test_a_server_that_does_not_say_is_a_warning(body: bytes, status: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, Settings(), body, status)
    assert finding.message.startswith("GET /version of the API server: ")
    assert finding.fix == "kubernetes (KINDRED_KUBERNETES) with the release of kube-scheduler"


# The feature gates.

DEVICES_OFF = "DRAExtendedResource=false"


def differing(flag: str, **settings: object) -> list[str]:
    findings = gate_findings(flag, Settings.model_validate(settings))
    return [f"{each.severity.value}: {each.message}; {each.fix}" for each in findings]


@pytest.mark.parametrize("kubernetes", ["1.36", "auto"])
def test_devices_that_are_off_in_kube_scheduler_alone_are_an_error(kubernetes: str) -> None:
    (reported,) = differing(DEVICES_OFF, kubernetes=kubernetes)
    assert reported == (
        "error: DRAExtendedResource is off in kube-scheduler and on in Kindred, with Kubernetes 1.36: Kindred passes "
        "nodes for devices that no program allocates; featureGates: DRAExtendedResource=false (KINDRED_FEATURE_GATES)"
    )


def test_groups_that_are_cycles_for_kindred_alone_are_an_error() -> None:
    (reported,) = differing("", kubernetes="1.37", feature_gates="GenericWorkload=true")
    assert reported == (
        "error: GenericWorkload is off in kube-scheduler and on in Kindred, with Kubernetes 1.37: Kindred releases the "
        "places of members that kube-scheduler binds one by one; featureGates: GenericWorkload=false "
        "(KINDRED_FEATURE_GATES)"
    )
    (other,) = differing("GenericWorkload=true", kubernetes="1.37")
    assert other.startswith("warning: GenericWorkload is on in kube-scheduler and off in Kindred")
    assert "the places of a group that could not be placed count for minutes" in other


@pytest.mark.parametrize(
    ("flag", "settings"),
    [
        pytest.param("", {"kubernetes": "1.36"}, id="defaults"),
        pytest.param(DEVICES_OFF, {"feature_gates": DEVICES_OFF}, id="both-off"),
        pytest.param(DEVICES_OFF, {"kubernetes": "1.34"}, id="off-by-default"),
        pytest.param(DEVICES_OFF, {"kubernetes": "1.37"}, id="locked"),
        pytest.param("NoSuchGate=true, SchedulerAsyncAPICalls=false", {}, id="gates-that-change-no-result"),
    ],
)
def test_gates_that_are_the_same_are_no_finding(flag: str, settings: dict[str, object]) -> None:
    assert differing(flag, **settings) == []


def test_other_differences_are_warnings() -> None:
    (on,) = differing("DRAExtendedResource=true", kubernetes="1.35")
    assert on.startswith("warning: DRAExtendedResource is on in kube-scheduler and off in Kindred")
    assert "featureGates: DRAExtendedResource=true" in on
    (ours,) = differing("", feature_gates="StorageCapacityScoring=true")
    assert ours.startswith(
        "warning: StorageCapacityScoring is off in kube-scheduler and on in Kindred, with Kubernetes"
    )
    assert "1.34, 1.35, 1.36: verdicts or scores differ" in ours


WITH_DECIDE = {"decide": "listed-nodes", "decide_schedulers": ("kindred",)}


@pytest.mark.parametrize("flag", ["", "SchedulerPopFromBackoffQ=true", "SchedulerAsyncAPICalls=false"])
def test_with_decide_a_backoff_that_an_idle_scheduler_skips_is_a_warning(flag: str) -> None:
    (reported,) = differing(flag, **WITH_DECIDE)
    assert reported == (
        "warning: SchedulerPopFromBackoffQ is on: kube-scheduler tries pods that fit nowhere again at any event, "
        "without their backoff; --feature-gates=SchedulerPopFromBackoffQ=false for the second kube-scheduler"
    )
    assert differing("SchedulerPopFromBackoffQ=false", **WITH_DECIDE) == []
    (about_beta,) = differing("AllBeta=false", **WITH_DECIDE)
    assert about_beta.startswith("info: AllBeta is not compared"), "this gate is beta in all releases"
    assert differing(flag) == [], "in-tree filters say which events they wait for"


def test_gates_by_their_stage_are_not_compared() -> None:
    assert differing("AllBeta=false") == [
        "info: AllBeta is not compared: it sets gates by their stage; each gate by its name"
    ]


@pytest.mark.parametrize("flag", ["DRAExtendedResource", "DRAExtendedResource=maybe"])
def test_a_flag_that_kube_scheduler_cannot_read_is_an_error(flag: str) -> None:
    with pytest.raises(UnreadableError, match="--scheduler-feature-gates 'DRAExtendedResource"):
        differing(flag)
