"""Whether a service account has the rights that Kindred needs, by one SubjectAccessReview for each verb."""

import asyncio
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import Credentials, CredentialsError
from app.commands.rbac import NAME, cluster_rules, lease_rules
from app.json_text import encode
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.scheduler_configuration.schema import Finding, Severity
from app.settings import Settings

CHECK: Final = "rbac"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_AT_ONCE: Final = 8


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
    turns = asyncio.Semaphore(_AT_ONCE)

    async def is_allowed(need: Need) -> bool:
        async with turns:
            body = await client.post(_REVIEWS, _review(need, account))
        return _review_decoder.decode(body).status.allowed

    try:
        async with asyncio.TaskGroup() as group:  # no request is open when the client is closed
            asked = [group.create_task(is_allowed(need)) for need in wanted]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await client.close()
    return [need for need, task in zip(wanted, asked, strict=True) if not task.result()]


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
    """Yield a finding for each missing right: a warning if only explanations need it.

    Raises UnreadableError, SettingsError.
    """
    serving = {*needs(settings.model_copy(update={"admin": ""}), account)}
    for need in denied(credentials, list(needs(settings, account)), account):
        where = f"{need.resource}{'.' + need.group if need.group else ''}"
        place = f" in the namespace {need.namespace}" if need.namespace else " in all namespaces"
        serves = need in serving
        yield Finding(
            CHECK,
            Severity.ERROR if serves else Severity.WARNING,
            where,
            f"the service account {account.namespace}/{account.name} may not {need.verb} {need.resource}{place}"
            f"{'' if serves else ', for explanations'}",
            f"{need.rule}; `kindred rbac{' --bind true' if settings.bind else ''}` prints all of it"
            f"{'' if serves else '; or no admin port'}",
            "docs/install.md",
        )
