"""Whether Kindred may do what it needs, and applies the release and the feature gates of the cluster."""

import asyncio
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from itertools import product
from typing import Final, NamedTuple

import msgspec
from pydantic import TypeAdapter, ValidationError

from app.api_server.access_reviews import GROUP, review_decoder
from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import Credentials, CredentialsError
from app.commands.doctor.findings import VERSIONS, Finding, Problem, Severity, error, info, setting, warning
from app.commands.rbac import cluster_rules, namespaced_rules
from app.feeds.release import fetch_version
from app.objects.decode import DecodeError
from app.objects.resources import rule_text
from app.process.json_text import encode
from app.process.logs import one_line
from app.scheduler_configuration.validation import UnreadableError
from app.settings.groups import OFF
from app.settings.settings import Settings
from app.settings.types import AUTO, Gates
from core.releases.release import ALL_GATES, RELEASES, Release, nearest

RBAC: Final = "rbac"
RELEASE: Final = "kubernetes-release"
FEATURE_GATES: Final = "feature-gates"
_SETTING: Final = setting("kubernetes")
FLAG: Final = "--feature-gates"
_EFFECTS: Final = {
    ("DRAExtendedResource", False): (error, "Kindred passes nodes for devices that no program allocates"),
    ("GenericWorkload", False): (error, "Kindred releases the places of members that kube-scheduler binds one by one"),
    ("GenericWorkload", True): (warning, "the places of a group that could not be placed count for minutes"),
}
"""(gate, whether it is on in kube-scheduler) -> the consequence of a difference, and how grave it is."""
_POPS: Final = "SchedulerPopFromBackoffQ"
"""A gate of kube-scheduler alone, on by default and not locked in all supported releases (kube_features.go)."""
_OF_OTHERS: Final = (warning, "verdicts or scores differ")
_REVIEWS: Final = f"/apis/{GROUP}/subjectaccessreviews"


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


def rule_of(*needs: Need) -> str:
    """Return the RBAC rule that allows verbs on a resource, as one line of YAML."""
    first, names = needs[0], [needs[0].name] if needs[0].name else []
    return f"- {{{rule_text(first.group, [first.resource], [each.verb for each in needs], names)}}}"


def needs(settings: Settings, account: Account) -> Iterator[Need]:
    """Yield all rights that Kindred needs. Raises SettingsError."""
    for namespace, rules in (("", cluster_rules(settings)), (account.namespace, namespaced_rules(settings))):
        for rule in rules:
            named = rule.get("resourceNames", [""])
            for group, resource, verb, name in product(rule["apiGroups"], rule["resources"], rule["verbs"], named):
                yield Need(group, resource, verb, namespace, name)


class UnansweredError(UnreadableError):
    """No API server responds there, or it does not accept the login."""


async def _denied(credentials: Credentials, needed: list[Need], account: Account) -> list[Need]:
    """Call the API server, and return the missing rights of the account. Raises UnreadableError."""
    client = ApiClient(credentials)
    try:
        responses = [(need, await client.post(_REVIEWS, _review(need, account))) for need in needed]
        return [need for need, response in responses if not review_decoder.decode(response).status.allowed]
    except (ApiError, CredentialsError, msgspec.MsgspecError) as failure:
        if isinstance(failure, StatusError) and failure.code == HTTPStatus.FORBIDDEN:
            raise UnreadableError(f"{failure}; your own user may not ask that") from None
        raise UnansweredError(str(failure)) from None
    finally:
        await client.close()


def _review(need: Need, account: Account) -> bytes:
    resource, _, subresource = need.resource.partition("/")
    attributes = {**need._asdict(), "resource": resource, "subresource": subresource}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"]
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    return encode({
        "apiVersion": GROUP,
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": groups,
            "resourceAttributes": {name: value for name, value in attributes.items() if value},
        },
    })  # fmt: skip


def rbac_findings(credentials: Credentials, settings: Settings, account: Account) -> Iterator[Finding]:
    """Yield a finding for each resource of which rights are missing: a warning if only explanations need it.

    Each right takes one SubjectAccessReview. Raises UnreadableError, SettingsError.
    """
    serving = {*needs(settings.model_copy(update={"admin": ""}), account)}
    missing: dict[tuple[Need, bool], list[Need]] = {}
    for need in asyncio.run(_denied(credentials, list(needs(settings, account)), account)):
        missing.setdefault((need._replace(verb=""), need in serving), []).append(need)
    for (need, serves), verbs in missing.items():
        where = f"{need.resource}{'.' + need.group if need.group else ''}"
        place = f" in the namespace {need.namespace}" if need.namespace else " in all namespaces"
        yield Finding(
            RBAC,
            Severity.ERROR if serves else Severity.WARNING,
            where,
            f"the service account {account.namespace}/{account.name} may not "
            f"{' and '.join(each.verb for each in verbs)} {need.resource}{place}"
            f"{'' if serves else ', for explanations'}",
            f"{rule_of(*verbs)}; `kindred rbac{' --bind true' if settings.bind else ''}` prints all of it"
            f"{'' if serves else '; or no admin port'}",
            "docs/install.md",
        )


def release_findings(credentials: Credentials, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if the settings, or the known releases, do not fit the API server's version.

    Raises UnreadableError if the API server cannot be reached.
    """
    problem = asyncio.run(_release_problem(credentials, settings))
    if problem is not None:
        yield Finding(RELEASE, *problem, VERSIONS)


async def _release_problem(credentials: Credentials, settings: Settings) -> Problem | None:
    client = ApiClient(credentials)
    try:
        reported = await fetch_version(client)
    except (StatusError, DecodeError) as failure:
        message = f"GET /version of the API server: {one_line(str(failure))}; Kindred will not know its release either"
        return warning(credentials.server, message, f"{_SETTING} with the release of kube-scheduler")
    except (ApiError, CredentialsError) as failure:
        raise UnreadableError(str(failure)) from None
    finally:
        await client.close()
    found = nearest(reported)
    if settings.kubernetes != AUTO and nearest(settings.kubernetes).release != found.release:
        message = f"Kindred answers as Kubernetes {settings.kubernetes}, and the API server is {one_line(reported)}"
        fix = f"{setting('kubernetes', AUTO)}, if kube-scheduler is of that release, too"
        return warning(_SETTING, message, fix)
    if found.exact:
        return None
    reported = one_line(reported) or "of no version"
    message = f"the API server is {reported}: answered as {found.release}, the nearest known release"
    fix = f"Kubernetes {RELEASES[0]} or newer, or look at scores and reasons with care"
    if found.release == RELEASES[-1]:
        fix = f"a Kindred that knows it; this one knows {RELEASES[0]} to {RELEASES[-1]}"
    return warning(credentials.server, message, fix)


def gate_findings(flag: str, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each gate that differs. `flag` is the value of kube-scheduler's flag, empty without one.

    A release that Kindred takes from the API server may be any of the known ones. With decide, SchedulerPopFromBackoffQ
    must be off: a pod that an extender refuses is tried again after any event, and with the gate an idle kube-scheduler
    does not wait for its backoff (backend/queue/active_queue.go, unlockedPop). Raises UnreadableError.
    """
    try:
        scheduler: Mapping[str, bool] = TypeAdapter(Gates).validate_python(flag)
    except ValidationError as failure:
        reported = one_line(failure.errors()[0]["msg"])
        raise UnreadableError(f"--scheduler-feature-gates {flag[:100]!r}: {reported}") from None
    releases = RELEASES if settings.kubernetes == AUTO else (nearest(settings.kubernetes).release,)
    problems = [
        info(FLAG, f"{name} is not compared: it sets gates by their stage", "each gate by its name")
        for name in ("AllAlpha", "AllBeta")
        if name in scheduler
    ]
    for name in ALL_GATES:
        ours, theirs = settings.feature_gates, scheduler
        differing = [each for each in releases if _state(each, name, ours) is not _state(each, name, theirs)]
        if differing:
            problems.append(_differs(name, differing, is_on=bool(_state(differing[-1], name, theirs))))
    if settings.decide != OFF and scheduler.get(_POPS, scheduler.get("AllBeta", True)):
        message = f"{_POPS} is on: kube-scheduler tries pods that fit nowhere again at any event, without their backoff"
        problems.append(warning(FLAG, message, f"{FLAG}={_POPS}=false for the second kube-scheduler"))
    yield from (Finding(FEATURE_GATES, *problem, VERSIONS) for problem in problems)


def _state(release: Release, name: str, gates: Mapping[str, bool]) -> bool | None:
    """Return whether a gate is on in a release. None: the release does not have it, or has locked it."""
    stage = ALL_GATES[name].get(release)
    return None if stage is None or stage.locked else gates.get(name, stage.default)


def _differs(name: str, releases: list[Release], *, is_on: bool) -> Problem:
    states = ("on", "off") if is_on else ("off", "on")
    message = "{} is {} in kube-scheduler and {} in Kindred, with Kubernetes {}".format(
        name, *states, ", ".join(map(str, releases))
    )
    tell, effect = _EFFECTS.get((name, is_on), _OF_OTHERS)
    return tell(FLAG, f"{message}: {effect}", setting("feature_gates", f"{name}={str(is_on).lower()}"))
