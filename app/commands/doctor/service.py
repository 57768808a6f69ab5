"""Calls a running Kindred, and checks what it says of itself."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from app.api_server.pem import load_authorities, load_identity
from app.commands.doctor.findings import DECIDE, RUN, Finding, Problem, Severity, error, info
from app.objects.resources import RESOURCES
from app.process.files import MAX_TOKEN_BYTES, read_file
from app.process.json_text import decode
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings.settings import Settings
from app.settings.types import split_address
from core.objects.groups import SchedulingGroup

T = TypeVar("T")

_IF_HTTP: Final = "start Kindred or correct the URL, which begins with https if Kindred speaks TLS"
_IF_HTTPS: Final = "--ca-file with the CA of its certificate, or --cert-file and --key-file if it asks for one"
_TIMEOUT: Final = 5.0  # seconds, the default of kube-scheduler
_PATHS: Final = ("/version", "/readyz")
REACHABLE: Final = "service-reachable"
READY: Final = "service-ready"
GROUPS: Final = "service-groups"
OF_KINDRED: Final = (READY, GROUPS)
"""The checks that only a Kindred can pass."""


class TlsFiles(NamedTuple):
    """The trusted authorities and the caller's certificate; None: the machine's authorities, no certificate."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class Answer(NamedTuple):
    """The response."""

    status: int
    body: bytes


class Visit(NamedTuple):
    """The responses of a service, by path. Without one: `failure`, one line, and `mending`, a possible fix."""

    url: str
    answers: Mapping[str, Answer]
    failure: str = ""
    mending: str = ""


class _FailedError(Exception):
    def __init__(self, failure: str, mending: str) -> None:
        super().__init__(failure)
        self.failure = failure
        self.mending = mending


def visit(url: str, files: TlsFiles) -> Visit:
    """Call a service. Raises UnreadableError for a URL or TLS files that cannot be used."""
    base = checked_url(url)
    answers: dict[str, Answer] = {}
    with _client(base, files) as client:
        try:
            for path in _PATHS:
                answers[path] = _asked(client, path)
        except _FailedError as error:
            return Visit(base, answers, failure=error.failure, mending=error.mending)
    return Visit(base, answers)


def fetch_settings(url: str, files: TlsFiles, token_file: Path | None) -> dict[str, dict[str, object]]:
    """Return key -> {value, source} from the admin port. Raises UnreadableError."""
    base = checked_url(url)
    headers = {}
    if token_file is not None:
        try:
            headers["Authorization"] = f"Bearer {read_file(token_file, MAX_TOKEN_BYTES).decode().strip()}"
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableError(f"{token_file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    with _client(base, files) as client:
        try:
            answer = _asked(client, "/debug/config", headers)
        except _FailedError as error:
            raise UnreadableError(f"{base}/debug/config: {error.failure}; {error.mending}") from None
    if answer.status != httpx.codes.OK:
        hint = "; give --admin-token-file" if answer.status in {401, 403} else ""
        raise UnreadableError(f"{base}/debug/config: status {answer.status}{hint}")
    try:
        return decode(answer.body, dict[str, dict[str, object]])
    except msgspec.MsgspecError:
        raise UnreadableError(f"{base}/debug/config: no settings of Kindred; is this its admin port?") from None


def checked_url(url: str) -> str:
    """Return a base URL without a slash at the end. Raises UnreadableError."""
    try:
        parsed = urlsplit(url)
        usable = (
            parsed.scheme in {"http", "https"} and bool(parsed.hostname) and (parsed.port is None or parsed.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise UnreadableError(f"{url!r} is not a URL that begins with http:// or https://")
    return url.rstrip("/")


@contextmanager
def _client(base: str, files: TlsFiles) -> Iterator[httpx.Client]:
    context = _context(files) if base.startswith("https:") else False
    # Without the proxies of the environment: kube-scheduler most often has none.
    with httpx.Client(base_url=base, verify=context, timeout=_TIMEOUT, trust_env=False) as client:
        yield client


def _context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go
    if (files.cert_file is None) != (files.key_file is None):
        raise UnreadableError("--cert-file and --key-file go together")
    named = files.ca_file
    try:
        if files.ca_file is None:
            context.load_default_certs()
        else:
            load_authorities(context, files.ca_file)
        if files.cert_file is not None and files.key_file is not None:
            named = files.cert_file
            load_identity(context, files.cert_file, files.key_file)
    except ssl.SSLError as error:
        raise UnreadableError(f"{named}: cannot be used: {error.strerror or error}") from None
    except OSError as error:
        raise UnreadableError(f"{named}: {error.strerror}") from None
    return context


def _asked(client: httpx.Client, path: str, headers: Mapping[str, str] | None = None) -> Answer:
    try:
        response = client.get(path, headers=headers)
    except httpx.TimeoutException:
        raise _FailedError(
            f"{path}: no response within {_TIMEOUT:g} s",
            "check for a network policy or a firewall in between, or for a Kindred that hangs",
        ) from None
    except (httpx.TransportError, ssl.SSLError) as error:
        raise _failed(path, error, https=client.base_url.scheme == "https") from None
    return Answer(response.status_code, response.content)


def _failed(path: str, error: Exception, *, https: bool) -> _FailedError:
    return _FailedError(f"{path}: {str(error) or type(error).__name__}", _IF_HTTPS if https else _IF_HTTP)


class _Resource(msgspec.Struct):
    absent: bool = False
    missing_rbac_rule: str | None = None


class _Readiness(msgspec.Struct):
    ready: bool
    nodes: int = 0
    problems: list[str] = []
    resources: dict[str, _Resource] = {}


class _Version(msgspec.Struct):
    version: str
    python: str


def is_kindred(visited: Visit) -> bool:
    """Return whether Kindred has responded."""
    return not visited.failure and _decoded(visited, "/version", _Version) is not None


def _decoded(visited: Visit, path: str, kind: type[T]) -> T | None:
    try:
        return decode(visited.answers[path].body, kind)
    except msgspec.DecodeError:
        return None


def service_findings(visited: Visit, settings: Settings) -> Iterator[Finding]:
    """Yield what is wrong with a service."""
    if visited.failure:
        yield Finding(REACHABLE, Severity.ERROR, visited.url, visited.failure, visited.mending, RUN)
    elif not is_kindred(visited):
        message = f"the response there (status {visited.answers['/version'].status}) is not of Kindred"
        fix = f"--url with Kindred's host and port, {split_address(settings.listen).port} by the settings"
        yield Finding(REACHABLE, Severity.ERROR, f"{visited.url}/version", message, fix, RUN)
    else:
        readiness = _decoded(visited, "/readyz", _Readiness)
        yield from (Finding(READY, *problem, RUN) for problem in _unready(visited, readiness))
        if readiness is not None and settings.decide_groups_scheduler:
            yield from _groups(visited, readiness)


def _unready(visited: Visit, readiness: _Readiness | None) -> Iterator[Problem]:
    where = f"{visited.url}/readyz"
    if readiness is None:
        yield error(where, f"status {visited.answers['/readyz'].status}, without a valid body", "look at Kindred's log")
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


def _groups(visited: Visit, readiness: _Readiness) -> Iterator[Finding]:
    name = RESOURCES[SchedulingGroup].name
    if readiness.resources.get(name, _Resource()).absent:
        yield Finding(
            GROUPS,
            Severity.INFO,
            f"{visited.url}/readyz resources.{name}",
            "the API server does not have PodGroups of scheduling.k8s.io: members of a scheduling group get an Error",
            "the feature gate GenericWorkload and --runtime-config in kube-apiserver, if there are such groups",
            DECIDE,
        )
