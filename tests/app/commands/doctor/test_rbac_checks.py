"""Whether a service account may do what Kindred needs, as an API server says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.api_server.credentials import load_credentials
from app.commands.doctor.rbac_checks import Account, Need, needs, rbac_findings
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings import Settings
from tests.app.api_server.api_server import Request, response, serving
from tests.app.api_server.kubeconfigs import write_kubeconfig

ACCOUNT = Account("kindred", "kindred")


def asked(
    folder: Path, settings: Settings, allowed: Callable[[dict[str, str]], bool]
) -> tuple[list[str], list[Request]]:
    """Ask a server that allows so; give what was found to be missing, and the requests."""

    async def answer(request: Request) -> AsyncIterator[bytes]:
        attributes = msgspec.json.decode(request.body)["spec"]["resourceAttributes"]
        yield response(msgspec.json.encode({"status": {"allowed": allowed(attributes)}}), "201 Created")

    async def main() -> tuple[list[str], list[Request]]:
        async with serving(answer) as server:
            credentials = load_credentials(write_kubeconfig(folder / "config", server.url), None)
            findings = await asyncio.to_thread(lambda: [*rbac_findings(credentials, settings, ACCOUNT)])
            return [f"{each.severity.value}: {each.message}" for each in findings], server.requests

    return asyncio.run(main())


def test_nothing_is_found_where_all_is_allowed(tmp_path: Path) -> None:
    missing, requests = asked(tmp_path, Settings(), lambda _: True)
    assert missing == []
    assert {"/apis/authorization.k8s.io/v1/subjectaccessreviews"} == {request.path for request in requests}
    spec: dict[str, Any] = msgspec.json.decode(requests[0].body)["spec"]
    assert spec["user"] == "system:serviceaccount:kindred:kindred"
    assert spec["groups"] == ["system:serviceaccounts", "system:serviceaccounts:kindred", "system:authenticated"]


def test_every_verb_that_is_not_allowed_is_found(tmp_path: Path) -> None:
    missing, _ = asked(tmp_path, Settings(), lambda attributes: attributes["resource"] != "pods")
    assert missing == [
        "error: the service account kindred/kindred may not list pods in all namespaces",
        "error: the service account kindred/kindred may not watch pods in all namespaces",
    ]


def test_what_only_explanations_read_is_a_warning(tmp_path: Path) -> None:
    settings = Settings(admin="127.0.0.1:0")
    missing, _ = asked(tmp_path, settings, lambda attributes: attributes["resource"] not in {"csinodes", "pods"})
    assert missing == [
        "error: the service account kindred/kindred may not list pods in all namespaces",
        "error: the service account kindred/kindred may not watch pods in all namespaces",
        "warning: the service account kindred/kindred may not list csinodes in all namespaces, for explanations",
        "warning: the service account kindred/kindred may not watch csinodes in all namespaces, for explanations",
    ]


def test_a_subresource_is_asked_as_one(tmp_path: Path) -> None:
    missing, _ = asked(tmp_path, Settings(bind=True), lambda attributes: attributes.get("subresource") != "binding")
    assert missing == ["error: the service account kindred/kindred may not create pods/binding in all namespaces"]


def test_the_lease_is_needed_in_a_namespace_and_by_name() -> None:
    wanted = [*needs(Settings(leader_election="kindred"), ACCOUNT)]
    assert [
        Need("coordination.k8s.io", "leases", "create", "kindred"),
        Need("coordination.k8s.io", "leases", "get", "kindred", "kindred"),
        Need("coordination.k8s.io", "leases", "update", "kindred", "kindred"),
    ] == [need for need in wanted if need.resource == "leases"]
    assert wanted[0].rule == '- {apiGroups: [""], resources: ["nodes"], verbs: ["list"]}'
    assert 'resourceNames: ["kindred"], verbs: ["get"]' in wanted[-2].rule


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
