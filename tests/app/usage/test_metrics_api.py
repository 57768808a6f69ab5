"""A NodeMetricsList to the core's values; what cannot be right is left out and named."""

import json
from typing import Any, Final

import pytest

from app.objects.decode import DecodeError
from app.usage.usage_feed import covered_until, decode_node_metrics, plausible
from core.objects.node import NodeMetrics, Usage

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
    assert decode_node_metrics(encoded(ITEM)) == ([MEASURED], [])


def test_times_of_any_zone_are_one_time() -> None:
    (found,), _ = decode_node_metrics(encoded({**ITEM, "timestamp": "2026-01-01T02:02:00+02:00"}))
    assert found == MEASURED


@pytest.mark.parametrize(
    ("usage", "problem"),
    [
        pytest.param({"memory": "1Mi"}, "node n1: usage.cpu: absent", id="absent"),
        pytest.param({"cpu": None, "memory": "1Mi"}, "node n1: usage.cpu: absent", id="null"),
        pytest.param({"cpu": "-1", "memory": "1Mi"}, "node n1: usage.cpu: -1000 cannot be", id="negative"),
        pytest.param({"cpu": "NaN", "memory": "1Mi"}, "node n1: usage.cpu: quantities must match", id="nan"),
        pytest.param({"cpu": "Inf", "memory": "1Mi"}, "node n1: usage.cpu: quantities must match", id="infinite"),
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
        pytest.param({**ITEM, "metadata": {"name": "x" * 300}}, "items[0].metadata.name: longer than", id="long-name"),
        pytest.param({**ITEM, "timestamp": None}, "items[0].timestamp: expected a time", id="no-time"),
        pytest.param({**ITEM, "timestamp": "soon"}, "items[0].timestamp: expected a time", id="no-time-at-all"),
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
    ("raw", "message"),
    [
        pytest.param(b"<html>", "malformed JSON", id="no-json"),
        pytest.param(b'{"items":{}}', "items: expected array", id="no-list"),
    ],
)
def test_what_is_no_list_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_node_metrics(raw)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("amount", [-0.1, float("nan"), float("inf"), float("-inf"), 1e300])
def test_no_node_uses_such_an_amount(amount: float) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        plausible(amount)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a time"):
        covered_until(1e300)
