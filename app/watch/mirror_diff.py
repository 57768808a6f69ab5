"""Lists what is watched afresh, page by page, and holds the mirror against it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from app.watch.client import ApiClient
from app.watch.decode import DecodeError
from app.watch.freshness import ResourceState
from app.watch.object_reader import ObjectReader, Unreadable
from app.watch.reflector import PAGE_SIZE
from app.watch.resources import Resource
from app.watch.turns import Turns
from app.watch.wire import decode_page
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Comparer, Differences


async def mirror_diff(
    client: ApiClient,
    resources: Iterable[Resource],
    mirror: ClusterMirror,
    settle: float,
    sleep: Callable[[float], Awaitable[None]],
) -> dict[str, Differences]:
    """Return what differs for longer than `settle` seconds, by resource.

    Objects change while they are listed, so a difference counts only if a second list, `settle` seconds after the first
    ones, shows it again; resources without any are listed once. Raises ApiError, CredentialsError, DecodeError.
    """
    found = {resource: await _compare(client, resource, mirror) for resource in resources}
    suspects = [resource for resource, differences in found.items() if differences]
    if suspects:
        await sleep(settle)
    for resource in suspects:
        found[resource] = (await _compare(client, resource, mirror)).persisting(found[resource])
    return {resource.plural: differences for resource, differences in found.items()}


async def _compare(client: ApiClient, resource: Resource, mirror: ClusterMirror) -> Differences:
    turns = Turns()
    comparer = Comparer(mirror, resource.kind)
    reader = ObjectReader(ResourceState(resource))  # a state of its own: what is read here is no part of the watch
    async for items in _pages(client, resource):
        for item in items:
            listed = reader.read(item)
            if isinstance(listed, Unreadable):
                comparer.pass_over(listed.full_name, listed.uid)
            else:
                comparer.add(listed)
            if turns.over:
                await turns.give_way()
    for _ in comparer.finish():
        if turns.over:
            await turns.give_way()
    return comparer.differences()


async def _pages(client: ApiClient, resource: Resource) -> AsyncIterator[list[msgspec.Raw]]:
    params = {"limit": str(PAGE_SIZE)}
    if resource.field_selector:
        params["fieldSelector"] = resource.field_selector
    while True:
        body = await client.get(resource.path, params)
        try:
            page = decode_page(body)
        except DecodeError as error:
            raise DecodeError("", f"GET {resource.path}: {error}") from None
        yield page.items
        if not page.continue_token:
            return
        params["continue"] = page.continue_token
