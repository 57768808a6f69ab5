"""A mirror of the cluster for one explanation, listed with the caller's rights; and which rights are missing."""

import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

import msgspec

from app.api_server.client import ApiClient, StatusError
from app.commands.dump import Cluster
from app.commands.output import print_line
from app.feeds.freshness import Freshness, ResourceState
from app.feeds.known_objects import Unreadable
from app.feeds.objects import BulkLoads, ObjectReader
from app.feeds.release import ReleaseTracker, fetch_version
from app.feeds.stream import pages_of
from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES, rule_text
from app.process.logs import one_line
from app.settings.settings import Settings
from core.events import ClusterEvent, Kind
from core.explaining.words import counted
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod

_USER: Final = re.compile(r'[Uu]ser "([^"]+)"')


class Right(NamedTuple):
    """Verbs on one resource. Without a namespace: in the whole cluster."""

    verb: str
    """One, or several separated by commas."""
    resource: str
    """The plural, with a subresource behind a slash."""
    group: str = ""
    namespace: str = ""


class MissingRightsError(Exception):
    """The API server forbids a request. The message is a line for people; `rules` are the lines of YAML to add."""

    def __init__(self, rights: Sequence[Right], user: str = "") -> None:
        """Take rights for one verb, all in one namespace or in the cluster."""
        first = rights[0]
        resources = ", ".join(right.resource for right in rights)
        place = f"in namespace {first.namespace}" if first.namespace else "in the whole cluster"
        role = f"a Role in namespace {first.namespace}" if first.namespace else "a ClusterRole"
        may_not = f"{user or 'this user'} may not {first.verb.replace(',', ' and ')} {resources} {place}"
        super().__init__(f"{may_not}. Add to {role}:")
        self.rights = tuple(rights)
        self.rules = tuple(f"  {rule}" for rule in _rules(rights))


def _rules(rights: Sequence[Right]) -> Iterator[str]:
    by_group: dict[str, list[str]] = {}
    for right in rights:
        by_group.setdefault(right.group, []).append(right.resource)
    for group, resources in by_group.items():
        yield f"- {{{rule_text(group, resources, rights[0].verb.split(','))}}}"


def user_in(rejection: str) -> str:
    """Return the user that the API server names in a refusal; empty if it names none."""
    found = _USER.search(rejection)
    return one_line(found[1]) if found else ""


@asynccontextmanager
async def needing(right: Right) -> AsyncIterator[None]:
    """Wrap a request that needs a right. Raises MissingRightsError if the API server forbids it."""
    try:
        yield
    except StatusError as error:
        # A service behind the API server's proxy can return 403, too, without a Status and so without a reason.
        if error.code != HTTPStatus.FORBIDDEN or not error.reason:
            raise
        raise MissingRightsError([right], user_in(error.message)) from None


_REQUIRED: Final = (Node, Pod)
"""Kinds without which nothing can be explained. If another kind is forbidden, the rules that read it are not judged."""


Seen: TypeAlias = Callable[[str, msgspec.Raw], None]
"""Takes the kind and the JSON of each listed object."""


async def list_cluster(
    client: ApiClient, kinds: Sequence[Kind], settings: Settings, seen: Seen = lambda _kind, _raw: None
) -> Cluster:
    """List the objects of these kinds. Raises MissingRightsError, ApiError, CredentialsError and DecodeError."""
    mirror = ClusterMirror()
    states = [ResourceState(RESOURCES[kind], serves=kind in _REQUIRED) for kind in kinds]
    forbidden: list[StatusError] = []
    with BulkLoads().loading():
        for state in states:
            try:
                await _list_any_version(client, state, mirror, seen)
            except StatusError as error:
                if not _may_go_on(state, error):
                    raise
                if state.serves:
                    forbidden.append(error)
    if forbidden:
        missing = [state.resource for state in states if state.forbidden]
        rights = [Right("list", resource.plural, resource.group) for resource in missing]
        raise MissingRightsError(rights, user_in(forbidden[0].message))
    release = ReleaseTracker(settings, mirror)
    if not release.is_fixed:
        with suppress(StatusError, DecodeError):  # the API server reports none
            release.take(await fetch_version(client), "server")
    return Cluster(mirror, release, Freshness(states, float("inf"), time.monotonic))


def report(cluster: Cluster, server: str) -> None:
    """Say on standard error what was listed."""
    states = [state for state in cluster.freshness.states if state.synced and state.objects]
    listed = ", ".join(f"{state.objects:,} {state.plural}" for state in states) or counted(0, "object")
    print_line(f"Listed {listed} of {server}", err=True)


async def _list_any_version(client: ApiClient, state: ResourceState, mirror: ClusterMirror, seen: Seen) -> None:
    while True:
        try:
            return await _list(client, state, mirror, seen)
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND or not state.try_next_version():
                raise


async def _list(client: ApiClient, state: ResourceState, mirror: ClusterMirror, seen: Seen) -> None:
    reader = ObjectReader(state)
    async for page in pages_of(client, state.resource):
        for raw in page.items:
            seen(state.resource.api_kind, raw)
            read = reader.read(raw)
            if not isinstance(read, Unreadable):
                mirror.apply(ClusterEvent("Add", read))
                state.objects += 1
    state.complete(time.monotonic())


def _may_go_on(state: ResourceState, error: StatusError) -> bool:
    """Record why a kind is missing, and return whether the others suffice."""
    if error.code == HTTPStatus.NOT_FOUND and state.resource.optional:
        state.synced = state.absent = True
        return True
    if error.code != HTTPStatus.FORBIDDEN:
        return False
    state.problem, state.forbidden = "forbidden", True
    return True
