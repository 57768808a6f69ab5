"""The reflectors of all resources of a cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from app.api_server.client import ApiClient
from app.feeds.freshness import ResourceState
from app.feeds.memory import UNLIMITED, MemoryWatch
from app.feeds.objects import MirrorFeed
from app.feeds.reflector import Reflector
from app.feeds.retry import Retries, Timing
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

    async def catch_up(self, kind: Kind, write: Callable[[], Awaitable[str]] | None) -> None:
        """Return when the mirror has all changes of a kind up to now. Raises LookupError for an unwatched kind.

        `write` changes an object of this kind, see `Reflector.shows`. Without it, or without its event, by a sync.
        """
        reflector = self._of(kind)
        if write is None or not await reflector.shows(write):
            await reflector.resync()

    def version(self, kind: Kind) -> str:
        """Return up to which resource version the mirror has all objects of a kind. Empty while a list is due.

        Raises LookupError for an unwatched kind.
        """
        return self._of(kind).version

    def _of(self, kind: Kind) -> Reflector:
        reflector = next((each for each in self.reflectors if each.state.resource.kind is kind), None)
        if reflector is None:
            raise LookupError(f"{kind.__name__}s are not watched")
        return reflector

    async def run(self) -> None:
        """Follow the server until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._retries.probe(), name="probe of the API server")
                for reflector in self.reflectors:
                    tasks.create_task(reflector.run(), name=f"reflector {reflector.state.plural}")
        finally:
            await self._client.close()
