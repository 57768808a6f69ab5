"""Whether Kindred may do what it needs, and applies the release and the feature gates of the cluster."""

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import TypeAdapter, ValidationError

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import Credentials, CredentialsError
from app.commands.doctor.findings import VERSIONS, Finding, Problem, Severity, error, info, setting, warning
from app.commands.rbac import NAME, cluster_rules, lease_rules
from app.objects.decode import DecodeError
from app.process.json_text import encode
from app.process.logs import one_line
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.settings.settings import Settings
from app.settings.types import AUTO, Gates
from app.watch.release import fetch_version
from core.releases.release import GATES, RELEASES, Release, nearest

RBAC: Final = "rbac"
RELEASE: Final = "kubernetes-release"
FEATURE_GATES: Final = "feature-gates"
_SETTING: Final = setting("kubernetes")
FLAG: Final = "--feature-gates"
_EFFECTS: Final[Mapping[tuple[str, bool], str]] = {
    ("DRAExtendedResource", False): "Kindred passes nodes for devices that no program allocates",
    ("GenericWorkload", False): "Kindred releases the places of members that kube-scheduler binds one by one",
}
"""(gate, whether it is on in kube-scheduler) -> why the difference is an error."""
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "GenericWorkload": "the places of a group that could not be placed count for minutes",
}
"""Gate -> the consequence of a difference that is a warning, if it is no verdict and no score."""
_OF_STAGES: Final = ("AllAlpha", "AllBeta")
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Account(NamedTuple):
    """A service account."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Account":
        """Read NAMESPACE/NAME. Raises UnreadableError."""
        namespace, slash, name = text.partition("/")
        if not (slash and namespace and name) or "/" in name:
            raise UnreadableError(f"--service-account {text!r}: expected NAMESPACE/NAME")
        return cls(namespace, name)


class Need(NamedTuple):
    """A verb on a resource; without a namespace in all namespaces."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    @property
    def rule(self) -> str:
        """The RBAC rule that allows it, as one line of YAML."""
        named = f', resourceNames: ["{self.name}"]' if self.name else ""
        return f'- {{apiGroups: ["{self.group}"], resources: ["{self.resource}"]{named}, verbs: ["{self.verb}"]}}'


def needs(settings: Settings, account: Account) -> Iterator[Need]:
    """Yield all rights that Kindred needs. Raises SettingsError."""
    for rule in cluster_rules(settings):
        yield from _of_rule(rule, "")
    for rule in lease_rules(settings):
        yield from _of_rule(rule, account.namespace or NAME)


def _of_rule(rule: dict[str, Any], namespace: str) -> Iterator[Need]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield from (Need(group, resource, verb, namespace, name) for name in rule.get("resourceNames", [""]))


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status


_review_decoder: Final = msgspec.json.Decoder(_Review)


def denied(credentials: Credentials, wanted: list[Need], account: Account) -> list[Need]:
    """Call the API server, and return the missing rights of the account. Raises UnreadableError."""
    try:
        return asyncio.run(_denied(credentials, wanted, account))
    except StatusError as error:
        hint = "; your own user may not ask that" if error.code == HTTPStatus.FORBIDDEN else ""
        raise UnreadableError(f"{error}{hint}") from None
    except (ApiError, CredentialsError, msgspec.MsgspecError) as error:
        raise UnreadableError(str(error)) from None


async def _denied(credentials: Credentials, wanted: list[Need], account: Account) -> list[Need]:
    client = ApiClient(credentials)
    try:
        return [need for need in wanted if not await _is_allowed(client, need, account)]
    finally:
        await client.close()


async def _is_allowed(client: ApiClient, need: Need, account: Account) -> bool:
    return _review_decoder.decode(await client.post(_REVIEWS, _review(need, account))).status.allowed


def _review(need: Need, account: Account) -> bytes:
    resource, _, subresource = need.resource.partition("/")
    attributes = {
        "group": need.group,
        "resource": resource,
        "subresource": subresource,
        "verb": need.verb,
        "namespace": need.namespace,
        "name": need.name,
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"]
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    return encode({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    })  # fmt: skip


def rbac_findings(credentials: Credentials, settings: Settings, account: Account) -> Iterator[Finding]:
    """Yield a finding for each missing right, by one SubjectAccessReview each: a warning if only explanations need it.

    Raises UnreadableError, SettingsError.
    """
    serving = {*needs(settings.model_copy(update={"admin": ""}), account)}
    for need in denied(credentials, list(needs(settings, account)), account):
        where = f"{need.resource}{'.' + need.group if need.group else ''}"
        place = f" in the namespace {need.namespace}" if need.namespace else " in all namespaces"
        serves = need in serving
        yield Finding(
            RBAC,
            Severity.ERROR if serves else Severity.WARNING,
            where,
            f"the service account {account.namespace}/{account.name} may not {need.verb} {need.resource}{place}"
            f"{'' if serves else ', for explanations'}",
            f"{need.rule}; `kindred rbac{' --bind true' if settings.bind else ''}` prints all of it"
            f"{'' if serves else '; or no admin port'}",
            "docs/install.md",
        )


def release_findings(credentials: Credentials, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if the settings, or the known releases, do not fit the API server's version.

    Raises UnreadableError if the API server cannot be reached.
    """
    try:
        told = asyncio.run(_version(credentials))
    except (StatusError, DecodeError) as failure:
        message = f"GET /version of the API server: {one_line(str(failure))}; Kindred will not know its release either"
        yield _finding(warning(credentials.server, message, f"{_SETTING} with the release of kube-scheduler"))
        return
    except (ApiError, CredentialsError) as failure:
        raise UnreadableError(str(failure)) from None
    found = nearest(told)
    if settings.kubernetes != AUTO and nearest(settings.kubernetes).release != found.release:
        message = f"Kindred answers as Kubernetes {settings.kubernetes}, and the API server is {one_line(told)}"
        yield _finding(
            warning(_SETTING, message, f"{setting('kubernetes', AUTO)}, if kube-scheduler is of that release, too")
        )
    elif not found.exact:
        said = one_line(told) or "of no version"
        message = f"the API server is {said}: answered as {found.release}, the nearest known release"
        yield _finding(warning(credentials.server, message, _newer(told)))


def _newer(told: str) -> str:
    newest = RELEASES[-1]
    if nearest(told).release == newest:
        return f"a Kindred that knows it; this one knows {RELEASES[0]} to {newest}"
    return f"Kubernetes {RELEASES[0]} or newer, or look at scores and reasons with care"


def _finding(problem: Problem) -> Finding:
    return Finding(RELEASE, *problem, VERSIONS)


async def _version(credentials: Credentials) -> str:
    client = ApiClient(credentials)
    try:
        return await fetch_version(client)
    finally:
        await client.close()


def gate_findings(flag: str, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each gate that differs. `flag` is the value of kube-scheduler's flag, empty without one.

    A release that Kindred takes from the API server may be any of the known ones. Raises UnreadableError.
    """
    try:
        scheduler: Mapping[str, bool] = TypeAdapter(Gates).validate_python(flag)
    except ValidationError as failure:
        told = one_line(failure.errors()[0]["msg"])
        raise UnreadableError(f"--scheduler-feature-gates {flag[:100]!r}: {told}") from None
    releases = RELEASES if settings.kubernetes == AUTO else (nearest(settings.kubernetes).release,)
    problems = [_stage(name) for name in _OF_STAGES if name in scheduler]
    for name in GATES:
        ours, theirs = settings.feature_gates, scheduler
        differing = [each for each in releases if _state(each, name, ours) is not _state(each, name, theirs)]
        if differing:
            problems.append(_differs(name, differing, is_on=bool(_state(differing[-1], name, theirs))))
    yield from (Finding(FEATURE_GATES, *problem, VERSIONS) for problem in problems)


def _state(release: Release, name: str, gates: Mapping[str, bool]) -> bool | None:
    """Return whether a gate is on in a release. None: the release does not have it, or has locked it."""
    stage = GATES[name].get(release)
    return None if stage is None or stage.locked else gates.get(name, stage.default)


def _differs(name: str, releases: list[Release], *, is_on: bool) -> Problem:
    states = ("on", "off") if is_on else ("off", "on")
    message = "{} is {} in kube-scheduler and {} in Kindred, with Kubernetes {}".format(
        name, *states, ", ".join(map(str, releases))
    )
    fix = setting("feature_gates", f"{name}={str(is_on).lower()}")
    if effect := _EFFECTS.get((name, is_on)):
        return error(FLAG, f"{message}: {effect}", fix)
    return warning(FLAG, f"{message}: {_CONSEQUENCES.get(name, 'verdicts or scores differ')}", fix)


def _stage(name: str) -> Problem:
    return info(FLAG, f"{name} is not compared: it sets gates by their stage", "each gate by its name")
