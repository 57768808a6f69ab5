"""All reflectors together."""

import asyncio

import pytest

from app.api_server.client import ApiClient
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.objects.resources import RESOURCES
from app.watch.freshness import ResourceState
from app.watch.watcher import Watcher
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import QUICK, MirrorOnly, scenario
from tests.app.watch.small_cluster import seed
from tests.fake_apiserver import FakeApiServer


@scenario()
async def test_the_connections_are_closed_when_it_ends(server: FakeApiServer) -> None:
    seed(server)
    login = Credentials(ClusterAccess(source="test", server=server.url, tls=None), None)
    client = ApiClient(login)
    watcher = Watcher(client, [ResourceState(RESOURCES[Pod])], MirrorOnly(), QUICK)
    running = asyncio.create_task(watcher.run())
    await server.until_watching(RESOURCES[Pod].path)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await server.until(lambda: server.watching() == 0)
    # A connection that was kept open would serve the next request.
    before = server.requests.connections
    await client.get(RESOURCES[Node].path, {})
    assert server.requests.connections == before + 1
    await client.close()
