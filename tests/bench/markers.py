"""How late the mirror is while the bench cluster churns."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from tests.bench.live import BenchError, FakeApi, HttpClient, Kindred, repeating
from tests.bench.report import Latencies, Span

_MARK_EVERY: Final = 1.0  # seconds
_LOOK_EVERY: Final = 0.001
_MAX_DELAY_LENGTH: Final = 60.0
_PODS: Final = "/api/v1/pods"


class Markers:
    """Measures the delay of the mirror by pods on nodes that do not exist. The mirror shows such a node by its name."""

    def __init__(self, api: FakeApi, service: Kindred) -> None:
        self._api = FakeApi(api.url)  # its own connection, because it runs in a thread
        self._client = HttpClient(service.admin_url)
        self._made = 0

    def mark(self) -> Span:
        """Create a pod and wait until the mirror has it, and with it all earlier pod events. Raises BenchError."""
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
        """Mark every second during the block."""
        delays = Latencies()
        with repeating(lambda: delays.spans.append(self.mark()), _MARK_EVERY):
            yield delays
