"""Node usage from the metrics API, metrics.k8s.io/v1beta1, which metrics-server serves through the API server.

An implausible value is left out and reported. All other values are returned. Source: k8s.io/metrics
pkg/apis/metrics/v1beta1/types.go.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Final, NamedTuple

import msgspec

from app.api_server.client import ApiClient, StatusError
from app.objects.decode import MAX_NAME_BYTES, NULL, DecodeError, Unread, Wire, decoding, is_longer, quantity_of
from core.mirror.node_values import MAX_AMOUNT
from core.objects.node import NodeMetrics, Usage
from core.objects.quantity import millis, units

PATH: Final = "/apis/metrics.k8s.io/v1beta1/nodes"
RBAC_RULE: Final = 'apiGroups: ["metrics.k8s.io"], resources: ["nodes"], verbs: ["get", "list"]'

_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.NOT_FOUND: "no metrics-server is installed",
    HTTPStatus.FORBIDDEN: f"the RBAC rule that is missing: {RBAC_RULE}",
    HTTPStatus.SERVICE_UNAVAILABLE: "metrics-server is not available",
}
REPORTING_INTERVAL: Final = 60
"""A pod that starts less than this number of seconds before the end of a window counts as not measured.

Source: scheduler-plugins trimaran (metricsAgentReportingIntervalSeconds), koordinator loadaware
(DefaultNodeMetricReportInterval).
"""


class Measurements(NamedTuple):
    """The measurements of a source, at most one a node, and its problems, one line for each unusable value."""

    metrics: Sequence[NodeMetrics]
    problems: Sequence[str]


class _Metadata(Wire):
    name: str | None = None


class _Amounts(Wire):
    cpu: Annotated[msgspec.Raw, Unread(str)] = NULL
    memory: Annotated[msgspec.Raw, Unread(str)] = NULL


class _Item(Wire):
    metadata: _Metadata | None = None
    timestamp: str | None = None
    window: str | None = None
    usage: _Amounts | None = None


class _List(Wire):
    items: list[msgspec.Raw] | None = None


_list_decoder: Final = msgspec.json.Decoder(_List)
_item_decoder: Final = msgspec.json.Decoder(_Item)


class MetricsApi:
    """One sample per node, over the window of metrics-server (about 15 s). There are no standard deviations."""

    name = "metrics.k8s.io"

    def __init__(self, client: ApiClient) -> None:
        """`client` is the client of the API server."""
        self._client = client

    async def measurements(self) -> Measurements:
        """List all nodes; see UsageSource."""
        return decode_node_metrics(await self._client.get(PATH, {}))

    def remedy(self, error: Exception) -> str:
        """Return the remedy if the API is not installed, forbidden or not available. Else empty."""
        return _REMEDIES.get(error.code, "") if isinstance(error, StatusError) else ""

    async def close(self) -> None:
        """Close nothing: the watcher closes the client."""


def decode_node_metrics(raw: bytes) -> Measurements:
    """Decode a list. Raises DecodeError if the JSON is not a list of objects."""
    metrics: dict[str, NodeMetrics] = {}
    problems: list[str] = []
    for index, item in enumerate(decoding(_list_decoder.decode, raw).items or ()):
        try:
            found = _decoded(item, problems)
        except DecodeError as error:
            problems.append(str(error.under(f"items[{index}]")))
        else:
            metrics[found.name] = found
    return Measurements([*metrics.values()], problems)


def covered_until(measured_at: float) -> str:
    """Return the latest start of a pod that a measurement covers, as NodeMetrics has it. Raises ValueError."""
    try:
        return datetime.fromtimestamp(int(measured_at) - REPORTING_INTERVAL, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError) as error:
        raise ValueError(f"{measured_at} is not a time") from error


def plausible(amount: float) -> int:
    """Return a measured amount as an integer. Raises ValueError for an amount that no node can use."""
    if not 0 <= amount <= MAX_AMOUNT:  # also rejects NaN
        raise ValueError(f"{amount} cannot be")
    return round(amount)


def _decoded(raw: msgspec.Raw, problems: list[str]) -> NodeMetrics:
    item = decoding(_item_decoder.decode, raw)
    name = item.metadata.name if item.metadata is not None else None
    if not name or is_longer(name, MAX_NAME_BYTES):
        raise DecodeError("metadata.name", "required" if not name else f"longer than {MAX_NAME_BYTES} bytes")
    measured_at = _seconds(item.timestamp or "")
    usage = item.usage or _Amounts()
    return NodeMetrics(
        name=name,
        measured_at=measured_at,
        covers_pods_until=covered_until(measured_at),
        cpu=_amount(name, "cpu", usage.cpu, problems),
        memory=_amount(name, "memory", usage.memory, problems),
    )


def _seconds(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise DecodeError("timestamp", f"expected a time in the format of RFC 3339, got {text[:40]!r}") from None
    if found.tzinfo is None:
        raise DecodeError("timestamp", f"without a time zone: {text[:40]!r}")
    return int(found.timestamp())


def _amount(name: str, resource: str, raw: msgspec.Raw, problems: list[str]) -> Usage | None:
    """Return the usage of a resource. None if it is absent or implausible."""
    if raw == NULL:
        problems.append(f"node {name}: usage.{resource}: absent")
        return None
    try:
        exact = quantity_of(raw, f"usage.{resource}")
        return Usage(plausible(millis(exact) if resource == "cpu" else units(exact)))
    except ValueError as error:  # DecodeError is a ValueError
        text = str(error) if isinstance(error, DecodeError) else f"usage.{resource}: {error}"
        problems.append(f"node {name}: {text}")
        return None
