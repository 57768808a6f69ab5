"""All reflectors together."""

import asyncio

import pytest

from app.api_server.client import ApiClient
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.objects.resources import RESOURCES
from app.watch.freshness import ResourceState
from app.watch.watcher import Watcher
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.watch.following import QUICK, Following, MirrorOnly, scenario
from tests.app.watch.small_cluster import seed
from tests.fake_apiserver import FakeApiServer


@scenario()
async def test_each_state_has_a_reflector_that_feeds_the_same_mirror(server: FakeApiServer) -> None:
    seed(server)
    async with Following(server, Node, Pod, Namespace) as following:
        await following.until_equal()
        assert [each.state for each in following.watcher.reflectors] == list(following.states.values())
        assert len(following.mirror.nodes.slots) == 2
        assert following.mirror.pod_count() == 2
        assert len(following.mirror.namespaces) == 2


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
