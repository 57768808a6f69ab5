"""How late the mirror is, and how many events reach it, while the bench cluster churns."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from tests.bench.latencies import Latencies, Span
from tests.bench.live import BenchError, FakeApi, HttpClient, Kindred, repeating

_MARK_EVERY: Final = 1.0  # seconds
_LOOK_EVERY: Final = 0.001
_MAX_DELAY_LENGTH: Final = 60.0
_PODS: Final = "/api/v1/pods"


class Markers:
    """Measures how late the mirror is, by pods on nodes that nobody has, which the mirror can be asked for by name."""

    def __init__(self, api: FakeApi, service: Kindred) -> None:
        self._api = FakeApi(api.url)  # a connection of its own: this is for a thread
        self._client = HttpClient(service.admin_url)
        self._made = 0

    def mark(self) -> Span:
        """Create a pod and wait until the mirror has it, and so all earlier events of pods. Raises BenchError."""
        self._made += 1
        name = f"marker-{self._made}"
        pod = {"metadata": {"name": name, "namespace": "ns-000"}, "spec": {"nodeName": name, "containers": []}}
        began = time.perf_counter()
        self._api.change("objects", [{"verb": "create", "path": _PODS, "object": pod}])
        while self._client.ask("GET", f"/debug/mirror?node={name}")[0] != HTTPStatus.OK:
            if time.perf_counter() - began > _MAX_DELAY_LENGTH:
                raise BenchError(f"an event did not reach the mirror within {_MAX_DELAY_LENGTH:g} s")
            time.sleep(_LOOK_EVERY)
        delay = Span(began, time.perf_counter())
        self._api.change("objects", [{"verb": "delete", "path": _PODS, "name": name, "namespace": "ns-000"}])
        return delay

    @contextmanager
    def marking(self) -> Iterator[Latencies]:
        """Mark every second for the time of the block."""
        delays = Latencies()
        with repeating(lambda: delays.spans.append(self.mark()), _MARK_EVERY):
            yield delays


class Events:
    """How many events the server has sent and Kindred has received since this was made."""

    def __init__(self, api: FakeApi, service: Kindred) -> None:
        self._api = api
        self._service = service
        self._sent = api.quiet()["events_sent"]
        self._received = self._count()

    def both(self) -> tuple[int, int]:
        """Return (sent, received), once they are equal, or do not become so in a second."""
        sent = self._api.quiet()["events_sent"] - self._sent
        deadline = time.perf_counter() + 1.0
        while (received := self._count() - self._received) != sent and time.perf_counter() < deadline:
            time.sleep(0.1)
        return sent, received

    def _count(self) -> int:
        return round(sum(self._service.metrics().by("resource", "kindred_watch_events_total").values()))
