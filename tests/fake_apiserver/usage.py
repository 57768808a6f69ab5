"""The usage of nodes in the forms of metrics.k8s.io and of Prometheus, for `Behaviour.other_apis`."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tests.fake_apiserver.single_objects import Respond
from tests.fake_apiserver.wire import Request

METRICS_PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
QUERY_PATH: Final = "/api/v1/query"


@dataclass(slots=True)
class FakeUsage:
    """The usage of nodes: cpu in millicores, memory in bytes. `clock` and `age` are seconds."""

    cpu: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    deviation: float = 0.1
    """Deviation as a share of the average."""
    age: float = 0.0
    clock: Callable[[], float] = time.time
    queries: list[str] = field(default_factory=list)
    """The queries to Prometheus."""

    @property
    def apis(self) -> dict[str, Respond]:
        """Path -> response."""
        return {METRICS_PATH: self.metrics_api, QUERY_PATH: self.prometheus}

    def metrics_api(self, _request: Request) -> tuple[int, bytes]:
        """Return a NodeMetricsList."""
        time_text = datetime.fromtimestamp(self.clock() - self.age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "metadata": {"name": name, "creationTimestamp": time_text},
                "timestamp": time_text,
                "window": "15.061s",
                "usage": {"cpu": f"{cpu * 1_000_000}n", "memory": f"{self.memory.get(name, 0) // 1024}Ki"},
            }
            for name, cpu in self.cpu.items()
        ]
        return 200, json.dumps({"kind": "NodeMetricsList", "metadata": {}, "items": items}).encode()

    def prometheus(self, request: Request) -> tuple[int, bytes]:
        """Return a vector for the five kinds of queries that Kindred sends."""
        query = request.query["query"]
        self.queries.append(query)
        values: dict[str, float]
        if query.startswith("max_over_time(timestamp("):
            values = dict.fromkeys(self.cpu, self.clock() - self.age)
        else:
            values = {name: float(each) for name, each in self.memory.items()}
            if "cpu" in query:
                values = {name: each / 1000 for name, each in self.cpu.items()}
            if query.startswith("stddev_over_time("):
                values = {name: each * self.deviation for name, each in values.items()}
        result: list[Any] = [
            {"metric": {"node": name}, "value": [self.clock(), str(each)]} for name, each in values.items()
        ]
        return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
