"""How many files of app and core a watch event passes, from its bytes to its effect in a service."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from app.api_server.client import ApiClient
from app.commands.dump import load_dump
from app.feeds.freshness import ResourceState
from app.feeds.objects import MirrorFeed
from app.feeds.reflector import Reflector
from app.feeds.retry import Retries, Timing
from app.objects.resources import RESOURCES
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.objects.pod import Pod
from tests.builders import make_pod
from tests.calls import Calls

SYNCED: Final[dict[str, Any]] = {
    "type": "BOOKMARK",
    "object": {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}},
}


class Streaming(ApiClient):
    """Sends events. The files that the last one passes are recorded."""

    def __init__(self, *events: Mapping[str, Any]) -> None:  # no connections: what is inherited is not used
        self._lines = [json.dumps(event).encode() + b"\n" for event in (events[0], SYNCED, *events[1:])]
        self.calls = Calls()
        self.over = asyncio.Event()

    @asynccontextmanager
    async def stream(self, _path: str, _params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch."""
        yield self._sent()

    async def _sent(self) -> AsyncIterator[bytes]:
        for line in self._lines[:-1]:
            yield line
        with self.calls.watching():
            yield self._lines[-1]
        self.over.set()
        await asyncio.Event().wait()


async def files_of_the_last(*events: Mapping[str, Any]) -> list[str]:
    """Follow pods in a service with the profile full."""
    settings = Settings(profile="full")
    mirror = load_dump(settings, {"snapshot": None, "demo": True, "skip_invalid": False}).mirror
    create_service(settings, mirror, None)
    client = Streaming(*events)
    feed = MirrorFeed(mirror, time.monotonic, lambda _: None)
    reflector = Reflector(ResourceState(RESOURCES[Pod]), client, feed, Retries(client, Timing()))
    following = asyncio.create_task(reflector.run())
    await client.over.wait()
    following.cancel()
    return client.calls.files


def event(act: str, version: int, *, name: str = "new", **fields: object) -> dict[str, Any]:
    """Return an event of a pod on a node of the demo."""
    body = make_pod(name).on("node1").label("app", "web").obj()
    body["metadata"].update(uid=name, resourceVersion=str(version))
    return {"type": act, "object": {**body, **fields}}


STATUS: Final = {"phase": "Running", "podIP": "10.0.0.1"}


@pytest.mark.parametrize(
    ("events", "most"),
    [
        pytest.param((event("ADDED", 2), event("MODIFIED", 3, status=STATUS)), 25, id="status"),
        pytest.param((event("ADDED", 2), event("ADDED", 2)), 25, id="known"),
        pytest.param((event("ADDED", 2, name="other"), event("ADDED", 3)), 25, id="added"),
        pytest.param((event("ADDED", 2), event("DELETED", 3)), 25, id="deleted"),
    ],
)
def test_an_event_passes_few_files(events: Sequence[Mapping[str, Any]], most: int) -> None:
    files = asyncio.run(files_of_the_last(*events))
    assert "app/feeds/reflector.py" in files
    assert len(files) <= most, files
