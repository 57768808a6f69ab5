"""Where the usage of nodes comes from, metrics.k8s.io or Prometheus; what cannot be right is left out and named."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from app.api_server.client import ApiClient, StatusError
from app.api_server.credentials import ConfigurationError
from app.feeds.prometheus import Prometheus, prometheus_client
from app.feeds.usage_feed import Measurements, covered_until, decode_node_metrics, plausible
from app.objects.decode import DecodeError
from app.settings.settings import Settings
from core.objects.node import NodeMetrics, Usage
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.usage import FakeUsage

ITEM: Final[dict[str, Any]] = {
    "metadata": {"name": "n1", "creationTimestamp": "2026-01-01T00:02:00Z", "labels": {"a": "b"}},
    "timestamp": "2026-01-01T00:02:00Z",
    "window": "15.061s",
    "usage": {"cpu": "123456789n", "memory": "1024Ki"},
}
MEASURED: Final = NodeMetrics(
    name="n1",
    measured_at=1767225720,
    covers_pods_until="2026-01-01T00:01:00Z",
    cpu=Usage(124),
    memory=Usage(2**20),
)


def encoded(*items: object) -> bytes:
    return json.dumps({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}).encode()


def test_a_measurement_has_millicores_and_bytes_rounded_up_and_covers_pods_until_a_minute_before() -> None:
    in_another_zone = {**ITEM, "timestamp": "2026-01-01T02:02:00+02:00"}
    assert decode_node_metrics(encoded(ITEM)) == decode_node_metrics(encoded(in_another_zone)) == ([MEASURED], [])


@pytest.mark.parametrize(
    ("usage", "problem"),
    [
        pytest.param({"memory": "1Mi"}, "node n1: usage.cpu: absent", id="absent"),
        pytest.param({"cpu": "-1", "memory": "1Mi"}, "node n1: usage.cpu: -1000 cannot be", id="negative"),
        pytest.param({"cpu": "NaN", "memory": "1Mi"}, "node n1: usage.cpu: quantities must match", id="nan"),
        pytest.param({"cpu": "9000P", "memory": "1Mi"}, "node n1: usage.cpu: ", id="more-than-any-node-has"),
    ],
)
def test_a_value_that_cannot_be_right_is_left_out_and_the_other_one_taken(usage: object, problem: str) -> None:
    (found,), problems = decode_node_metrics(encoded({**ITEM, "usage": usage}))
    assert (found.cpu, found.memory) == (None, Usage(2**20))
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        pytest.param({**ITEM, "metadata": {}}, "items[0].metadata.name: required", id="no-name"),
        pytest.param({**ITEM, "timestamp": None}, "items[0].timestamp: expected a time", id="no-time"),
        pytest.param({**ITEM, "timestamp": "2026-01-01T00:02:00"}, "items[0].timestamp: without a", id="no-zone"),
        pytest.param(7, "items[0]: expected", id="no-object"),
    ],
)
def test_an_item_that_cannot_be_read_is_passed_over_and_all_others_taken(item: object, problem: str) -> None:
    metrics, problems = decode_node_metrics(encoded(item, ITEM))
    assert metrics == [MEASURED]
    assert len(problems) == 1
    assert problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("raw", "message"), [(b"<html>", "malformed JSON"), (b'{"items":{}}', "items: expected array")]
)
def test_what_is_no_list_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_node_metrics(raw)
    assert str(caught.value).startswith(message)


# Prometheus.


def test_no_node_uses_such_an_amount_and_no_time_is_that_late() -> None:
    for amount in (-0.1, float("nan"), float("inf"), float("-inf"), 1e300):
        with pytest.raises(ValueError, match="cannot be"):
            plausible(amount)
    with pytest.raises(ValueError, match="is not a time"):
        covered_until(1e300)


NOW: Final = 1_767_225_720.0
QUERIES: Final = ("CPU", "MEMORY")
TIME: Final = "max_over_time(timestamp(CPU)[900s:60s])"
CPU: Final = "avg_over_time((CPU)[900s:60s])"
CPU_DEVIATION: Final = "stddev_over_time((CPU)[900s:60s])"
MEMORY: Final = "avg_over_time((MEMORY)[900s:60s])"
MEMORY_DEVIATION: Final = "stddev_over_time((MEMORY)[900s:60s])"


def vector(*series: tuple[Mapping[str, str], str]) -> bytes:
    result = [{"metric": metric, "value": [NOW, value]} for metric, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def of_n1(value: object) -> bytes:
    return vector(({"node": "n1"}, str(value)))


GOOD: Final = {
    TIME: of_n1(NOW),
    CPU: of_n1(0.25),
    CPU_DEVIATION: of_n1(0.05),
    MEMORY: of_n1(2.0**30),
    MEMORY_DEVIATION: of_n1(2.0**20),
}
AVERAGED: Final = NodeMetrics(
    name="n1",
    measured_at=int(NOW),
    covers_pods_until="2026-01-01T00:01:00Z",
    window=900.0,
    cpu=Usage(250, 50),
    memory=Usage(2**30, 2**20),
)


class Server(ApiClient):
    """Answers queries as a test says."""

    def __init__(self, responses: Mapping[str, bytes]) -> None:  # no connections: what is inherited is not used
        self.responses = responses

    async def get(self, path: str, params: Mapping[str, str], _most: int = 0) -> bytes:
        """Return what stands for a query."""
        assert path == "/api/v1/query"
        return self.responses[params["query"]]


def measurements(**changed: bytes) -> Measurements:
    names = {"time": TIME, "cpu": CPU, "cpu_deviation": CPU_DEVIATION, "memory": MEMORY}
    responses = GOOD | {names[name]: response for name, response in changed.items()}
    return asyncio.run(Prometheus(Server(responses), *QUERIES).measurements())


def test_cores_become_millicores_and_the_time_is_that_of_the_last_value() -> None:
    assert measurements() == ([AVERAGED], [])


def test_a_port_behind_the_name_of_a_node_is_passed_over() -> None:
    found = {name: response.replace(b'"n1"', b'"n1:9100"') for name, response in GOOD.items()}
    assert asyncio.run(Prometheus(Server(found), *QUERIES).measurements()) == ([AVERAGED], [])


@pytest.mark.parametrize("value", ["NaN", "-0.5", "1e300", "much"])
def test_a_value_that_no_node_uses_is_named_and_the_other_resource_taken(value: str) -> None:
    (found,), problems = measurements(cpu=of_n1(value))
    assert (found.cpu, found.memory) == (None, AVERAGED.memory)
    assert len(problems) == 1
    assert problems[0].startswith("node n1: cpu: ")
    assert problems[0].endswith(" cannot be")


def test_a_deviation_that_cannot_be_makes_its_resource_unusable() -> None:
    (found,), problems = measurements(cpu_deviation=of_n1("NaN"))
    assert (found.cpu, problems) == (None, ["node n1: cpu: nan cannot be"])


def test_an_average_needs_no_deviation_and_is_named_where_it_is_missing() -> None:
    (found,), problems = measurements(cpu_deviation=vector())
    assert (found.cpu, problems) == (Usage(250), [])
    (found,), problems = measurements(cpu=vector())
    assert (found.cpu, problems) == (None, ["node n1: cpu average: absent"])


def test_a_node_without_a_time_is_passed_over() -> None:
    metrics, problems = measurements(time=of_n1("NaN"))
    assert metrics == []
    assert len(problems) == 1
    assert problems[0].startswith("node n1: time: ")


def test_of_several_series_for_a_node_none_is_taken() -> None:
    (found,), problems = measurements(cpu=vector(({"node": "n1"}, "1"), ({"node": "n1", "job": "x"}, "2")))
    assert (found.cpu, problems) == (
        None,
        ["node n1: cpu average: several series", "node n1: cpu average: absent"],
    )


def test_series_without_the_label_are_named_once() -> None:
    _, problems = measurements(cpu=vector(({}, "1"), ({"instance": "n1"}, "2"), ({"node": "n1"}, "1")))
    assert problems == ["cpu average: a series without the label node"]


@pytest.mark.parametrize(
    ("response", "message"),
    [
        pytest.param(b"<html>", "malformed JSON", id="no-json"),
        pytest.param(b'{"status":"error","error":"bad query"}', "status: expected success, got error bad", id="error"),
        pytest.param(
            b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
            "data.resultType: time: expected vector, got 'matrix'",
            id="matrix",
        ),
    ],
)
def test_a_response_that_is_no_vector_is_refused(response: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        measurements(time=response)
    assert str(caught.value).startswith(message)


# Over HTTP.


def test_a_server_is_asked_by_the_queries_of_the_settings() -> None:
    usage = FakeUsage(cpu={"n1": 250}, memory={"n1": 2**30}, clock=lambda: NOW)
    (found,), problems = asyncio.run(measured_by(Behaviour(other_apis=usage.apis)))
    assert (found.cpu, found.memory, problems) == (Usage(250, 25), Usage(2**30, 107374182), [])
    default = Settings()
    assert usage.queries == [
        f"max_over_time(timestamp({default.usage_cpu_query})[900s:60s])",
        f"avg_over_time(({default.usage_cpu_query})[900s:60s])",
        f"avg_over_time(({default.usage_memory_query})[900s:60s])",
        f"stddev_over_time(({default.usage_cpu_query})[900s:60s])",
        f"stddev_over_time(({default.usage_memory_query})[900s:60s])",
    ]


def test_a_query_that_prometheus_refuses_is_an_error_of_its_status() -> None:
    behaviour = Behaviour(other_apis={"/api/v1/query": lambda _: (400, b'{"status":"error","error":"parse"}')})
    with pytest.raises(StatusError, match="400"):
        asyncio.run(measured_by(behaviour, *QUERIES))


async def measured_by(behaviour: Behaviour, *queries: str) -> Measurements:
    """Ask a server by some queries, or by those of the settings."""
    async with FakeApiServer(behaviour) as server:
        settings = Settings(usage_source="prometheus", usage_prometheus_url=server.url)
        client = prometheus_client(settings)
        cpu, memory = queries or (settings.usage_cpu_query, settings.usage_memory_query)
        try:
            return await Prometheus(client, cpu, memory).measurements()
        finally:
            await client.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            {"usage_prometheus_url": "https://x", "usage_prometheus_ca_file": "/nowhere"},
            "KINDRED_USAGE_PROMETHEUS_CA_FILE: authorities /nowhere: No such file",
            id="authorities",
        ),
        pytest.param(
            {"usage_prometheus_url": "https://x", "usage_prometheus_token_file": "/nowhere"},
            "KINDRED_USAGE_PROMETHEUS_TOKEN_FILE: token file /nowhere: No such file",
            id="token",
        ),
    ],
)
def test_settings_that_reach_no_server_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        prometheus_client(Settings(**settings))
    assert str(caught.value).startswith(message)
