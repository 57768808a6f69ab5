"""All reflectors of one API server, run together."""

import asyncio
from collections.abc import Sequence

from app.api_server.client import ApiClient
from app.watch.feed import MirrorFeed
from app.watch.freshness import ResourceState
from app.watch.memory import UNLIMITED, MemoryWatch
from app.watch.reflector import Reflector
from app.watch.retry import Retries, Timing
from core.events import Kind


class Watcher:
    """Feeds the objects of several resources of a cluster to one feed."""

    def __init__(
        self,
        client: ApiClient,
        states: Sequence[ResourceState],
        feed: MirrorFeed,
        timing: Timing,
        memory: MemoryWatch = UNLIMITED,
    ) -> None:
        """Make one reflector for each state. Their changes go to `feed`, between two requests."""
        self._client = client
        self._retries = retries = Retries(client, timing)
        self.reflectors = [Reflector(state, client, feed, retries, memory) for state in states]

    async def resync(self, kind: Kind) -> None:
        """Sync the objects of one kind again, see `Reflector.resync`. Raises LookupError for an unwatched kind."""
        reflector = next((each for each in self.reflectors if each.state.resource.kind is kind), None)
        if reflector is None:
            raise LookupError(f"{kind.__name__}s are not watched")
        await reflector.resync()

    async def run(self) -> None:
        """Follow the server until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._retries.probe(), name="probe of the API server")
                for reflector in self.reflectors:
                    tasks.create_task(reflector.run(), name=f"reflector {reflector.state.plural}")
        finally:
            await self._client.close()
