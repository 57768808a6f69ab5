"""A mirror of the cluster for one explanation, listed with the caller's rights, without a service or a watch."""

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from app.answered_release import AnsweredRelease
from app.api_server.client import ApiClient, StatusError
from app.commands.why.rights import MissingRightsError, Right, user_in
from app.objects.decode import DecodeError
from app.objects.resources import RESOURCES
from app.settings import Settings
from app.watch.bulk_load import BulkLoads
from app.watch.freshness import Freshness, ResourceState
from app.watch.objects import ObjectReader, Unreadable
from app.watch.server_release import fetch_version
from app.watch.stream import Pages, decode_page
from core.events import ClusterEvent, Kind
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod

_REQUIRED: Final = (Node, Pod)
"""Kinds without which nothing can be explained. If another kind is forbidden, the rules that read it are not judged."""
Progress = Callable[[str, int], None]
"""Takes the name of a resource, and the number of its objects so far."""


class ListedCluster(NamedTuple):
    """A cluster within a short time: the kinds are listed one after another."""

    mirror: ClusterMirror
    freshness: Freshness
    """Has the missing kinds, and why each is missing."""
    release: AnsweredRelease
    states: Sequence[ResourceState]


async def list_cluster(
    client: ApiClient, kinds: Sequence[Kind], settings: Settings, progress: Progress
) -> ListedCluster:
    """List the objects of these kinds. Raises MissingRightsError, ApiError, CredentialsError and DecodeError."""
    mirror = ClusterMirror()
    states = [ResourceState(RESOURCES[kind], serves=kind in _REQUIRED) for kind in kinds]
    forbidden: list[StatusError] = []
    with BulkLoads().loading():
        for state in states:
            try:
                await _list_any_version(client, state, mirror, progress)
            except StatusError as error:
                if not _may_go_on(state, error):
                    raise
                if state.serves:
                    forbidden.append(error)
    if forbidden:
        raise MissingRightsError([_right(state) for state in states if state.forbidden], user_in(forbidden[0].message))
    release = AnsweredRelease(settings, mirror)
    await _take_release(client, release)
    return ListedCluster(mirror, Freshness(states, float("inf"), time.monotonic), release, states)


async def _list_any_version(client: ApiClient, state: ResourceState, mirror: ClusterMirror, progress: Progress) -> None:
    """List the objects in the first version that the server has."""
    while True:
        try:
            return await _list(client, state, mirror, progress)
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND or not state.try_next_version():
                raise


async def _list(client: ApiClient, state: ResourceState, mirror: ClusterMirror, progress: Progress) -> None:
    resource, reader = state.resource, ObjectReader(state)
    pages = Pages(client, resource.path)
    params = {"fieldSelector": resource.field_selector} if resource.field_selector else {}
    token = ""
    while True:
        page = decode_page(await pages.get({**params, "continue": token} if token else params))
        for raw in page.items:
            read = reader.read(raw)
            if not isinstance(read, Unreadable):
                mirror.apply(ClusterEvent("Add", read))
                state.objects += 1
        progress(state.plural, state.objects)
        token = page.continue_token
        if not token:
            break
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


def _right(state: ResourceState) -> Right:
    return Right("list", state.resource.plural, state.resource.group)


async def _take_release(client: ApiClient, release: AnsweredRelease) -> None:
    """Use the release of the API server, unless it does not report one or the settings have one."""
    if release.is_fixed:
        return
    try:
        told = await fetch_version(client)
    except (StatusError, DecodeError):
        return
    release.take(told, "server")
