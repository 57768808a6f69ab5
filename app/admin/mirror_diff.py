"""Lists the watched resources again, page by page, and compares them with the mirror."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus

import msgspec

from app.api_server.client import ApiClient, StatusError
from app.long_work import LongWork
from app.objects.decode import DecodeError
from app.objects.resources import Resource
from app.watch.freshness import ResourceState
from app.watch.objects import ObjectReader, Unreadable
from app.watch.stream import Pages, decode_page
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Comparer, Differences


async def mirror_diff(  # noqa: PLR0913, PLR0917  # the two sides, the time between two lists, and the turn
    client: ApiClient,
    resources: Iterable[Resource],
    mirror: ClusterMirror,
    settle: float,
    sleep: Callable[[float], Awaitable[None]],
    work: LongWork,
) -> dict[str, Differences]:
    """Return the differences that last longer than `settle` seconds, by resource.

    Objects change during a list. So a difference counts only if a second list, `settle` seconds later, shows it again.
    Resources without a difference are listed once. Raises ApiError, CredentialsError, DecodeError.
    """
    found = {resource: await _compare(client, resource, mirror, work) for resource in resources}
    suspects = [resource for resource, differences in found.items() if differences]
    if suspects:
        await sleep(settle)
    for resource in suspects:
        found[resource] = (await _compare(client, resource, mirror, work)).persisting(found[resource])
    return {resource.name: differences for resource, differences in found.items()}


async def _compare(client: ApiClient, resource: Resource, mirror: ClusterMirror, work: LongWork) -> Differences:
    comparer = Comparer(mirror, resource.kind)
    reader = ObjectReader(ResourceState(resource))  # its own state: this list is not part of the watch
    async for items in _pages(client, resource):
        async with work.turn():
            for item in items:
                listed = reader.read(item)
                if isinstance(listed, Unreadable):
                    comparer.pass_over(listed.full_name, listed.uid)
                else:
                    comparer.add(listed)
                if work.over:
                    await work.give_way()
    async with work.turn():
        for _ in comparer.finish():
            if work.over:
                await work.give_way()
    return comparer.differences()


async def _pages(client: ApiClient, resource: Resource) -> AsyncIterator[list[msgspec.Raw]]:
    params = {"fieldSelector": resource.field_selector} if resource.field_selector else {}
    pages = Pages(client, resource.path)
    while True:
        try:
            body = await pages.get(params)
        except StatusError as error:
            if error.code == HTTPStatus.NOT_FOUND and resource.optional:
                return  # absent: the watch skips it, too
            raise
        try:
            page = decode_page(body)
        except DecodeError as error:
            raise DecodeError("", f"GET {resource.path}: {error}") from None
        yield page.items
        if not page.continue_token:
            return
        params["continue"] = page.continue_token
