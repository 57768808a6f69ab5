"""Calls a running Kindred, and checks what it says of itself."""

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

import httpx
import msgspec
from pydantic import ValidationError

from app.admin.health_routes import Readiness, Version
from app.commands.admin_client import Access, CannotAskError, UnusableFileError, get_response
from app.commands.doctor.findings import DECIDE, RUN, Finding, Problem, Severity, error, info
from app.objects.resources import RESOURCES
from app.process.json_text import decode
from app.settings.settings import Settings
from app.settings.types import split_address
from core.objects.groups import SchedulingGroup

T = TypeVar("T")

_TIMEOUT: Final = 5.0  # seconds, the default of kube-scheduler
REACHABLE: Final = "service-reachable"
READY: Final = "service-ready"
GROUPS: Final = "service-groups"
OF_KINDRED: Final = (READY, GROUPS)
"""The checks that only a Kindred can pass."""


class Visit(NamedTuple):
    """The responses of a service, by path, or why there are none."""

    url: str
    responses: Mapping[str, httpx.Response]
    failure: str = ""


def visit(access: Access) -> Visit:
    """Call a service. Raises UnusableFileError."""
    url = access["url"].rstrip("/")
    try:
        return Visit(url, {at: _response(access, at) for at in ("/version", "/readyz")})
    except UnusableFileError:
        raise
    except CannotAskError as error:
        return Visit(url, {}, str(error))


def _response(access: Access, path: str) -> httpx.Response:
    hint = "is that a port of Kindred?"  # the scheduler's, or another: all of them say what the checks read
    return get_response(access, "GET", path, patience=_TIMEOUT, not_understood=hint)


def is_kindred(visited: Visit) -> bool:
    """Return whether Kindred has responded."""
    return not visited.failure and _decoded(visited, "/version", lambda body: decode(body, Version)) is not None


def _decoded(visited: Visit, path: str, parse: Callable[[bytes], T]) -> T | None:
    try:
        return parse(visited.responses[path].content)
    except (msgspec.DecodeError, ValidationError):
        return None


def service_findings(visited: Visit, settings: Settings) -> Iterator[Finding]:
    """Yield what is wrong with a service."""
    if visited.failure:
        fix = "start Kindred, or correct the URL and the files of TLS"
        yield Finding(REACHABLE, Severity.ERROR, visited.url, visited.failure, fix, RUN)
    elif not is_kindred(visited):
        status = visited.responses["/version"].status_code
        wants_token = status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
        what = "wants a login, as Kindred's admin port with a token does" if wants_token else "is not of Kindred"
        message = f"the response there (status {status}) {what}"
        fix = f"--url with Kindred's host and port, {split_address(settings.listen).port} by the settings"
        yield Finding(REACHABLE, Severity.ERROR, f"{visited.url}/version", message, fix, RUN)
    else:
        readiness = _decoded(visited, "/readyz", Readiness.model_validate_json)
        yield from (Finding(READY, *problem, RUN) for problem in _unready(visited, readiness))
        groups = RESOURCES[SchedulingGroup].name
        absent = readiness is not None and groups in readiness.resources and readiness.resources[groups].absent
        if absent and settings.decide_groups_scheduler:
            where = f"{visited.url}/readyz resources.{groups}"
            message = "the API server does not have PodGroups of scheduling.k8s.io: their members get an Error"
            fix = "the feature gate GenericWorkload and --runtime-config in kube-apiserver, if there are such groups"
            yield Finding(GROUPS, Severity.INFO, where, message, fix, DECIDE)


def _unready(visited: Visit, readiness: Readiness | None) -> Iterator[Problem]:
    where = f"{visited.url}/readyz"
    if readiness is None:
        yield error(
            where, f"status {visited.responses['/readyz'].status_code}, without a valid body", "look at Kindred's log"
        )
        return
    rules = {name: each.missing_rbac_rule for name, each in readiness.resources.items() if each.missing_rbac_rule}
    for name, rule in sorted(rules.items()):
        yield error(
            f"{where} resources.{name}",
            f"Kindred may not list and watch {name}, and serves no request until it has listed them",
            f"- {{{rule}}} in its ClusterRole; `kindred rbac` prints all of it",
        )
    if readiness.ready and not readiness.nodes:
        yield error(
            where, "ready, and its mirror has no node: every node fails", "the kubeconfig or dump of the right cluster"
        )
    elif not readiness.ready:
        for problem in readiness.problems or ["not ready, without a reason"]:
            if not any(name in problem for name in rules):
                yield _not_ready(where, problem)


def _not_ready(where: str, problem: str) -> Problem:
    if problem.startswith(("another replica leads", "not leading")):
        fix = "use the Service, which sends requests to the leader"
        return info(where, f"not ready, as intended: {problem}", fix)
    return error(where, problem, "look at Kindred's log; docs/architecture.md says what kube-scheduler does then")
