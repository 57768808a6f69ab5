"""Node usage from the HTTP API of Prometheus: averages and standard deviations over a window, by node."""

from collections.abc import Mapping
from typing import Final

import msgspec

from app.api_server.client import ApiClient
from app.api_server.credentials import ConfigurationError, Credentials, CredentialsError
from app.api_server.login import bearer_of_file
from app.api_server.tls import ClusterAccess, PemSource, TlsSettings, checked_url
from app.feeds.usage_feed import Measurements, UsageSource, covered_until, plausible
from app.objects.decode import DecodeError, decoding
from app.settings.settings import Settings, variable_of
from core.objects.node import NodeMetrics, Usage

PATH: Final = "/api/v1/query"
_STEP: Final = 60  # seconds between the samples of a window
_MILLI: Final = 1000
_WINDOW: Final = 900
"""Seconds over which averages and deviations are computed, as Trimaran's load watcher does by default."""
_NODE_LABEL: Final = "node"
"""Label of the series that has the name of the node. PromQL's label_replace makes it of another one. A port
behind the name is ignored."""
_RANGE: Final = f"{_WINDOW}s:{_STEP}s"


class _Series(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: list[_Series] = []


class _Response(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""


_decoder: Final = msgspec.json.Decoder(_Response)


class Prometheus(UsageSource):
    """Sends five queries: the average and the deviation of cpu and of memory, and the time of the last value.

    The time of the last value is the age of a measurement. An average over a window still has a value long after its
    series has ended.
    """

    name = "Prometheus"

    def __init__(self, client: ApiClient, cpu: str, memory: str) -> None:
        """PromQL: `cpu` in cores, `memory` in bytes, one series a node. The source closes `client`."""
        self._client = client
        self._cpu = cpu
        self._memory = memory

    async def measurements(self) -> Measurements:
        """Query all nodes, see UsageSource."""
        problems: list[str] = []
        times = await self._values(f"max_over_time(timestamp({self._cpu})[{_RANGE}])", "time", problems)
        averages = await self._over_window("avg", "average", problems)
        deviations = await self._over_window("stddev", "deviation", problems)
        metrics = []
        for name, time in times.items():
            try:
                until = covered_until(time)
            except ValueError as error:
                problems.append(f"node {name}: time: {error}")
                continue
            metrics.append(
                NodeMetrics(
                    name=name,
                    measured_at=int(time),
                    covers_pods_until=until,
                    window=float(_WINDOW),
                    cpu=_usage(name, "cpu", averages, deviations, problems),
                    memory=_usage(name, "memory", averages, deviations, problems),
                )
            )
        return Measurements(metrics, problems)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _over_window(self, function: str, what: str, problems: list[str]) -> dict[str, dict[str, float]]:
        """Return resource -> node -> value."""
        return {
            resource: await self._values(f"{function}_over_time(({query})[{_RANGE}])", f"{resource} {what}", problems)
            for resource, query in (("cpu", self._cpu), ("memory", self._memory))
        }

    async def _values(self, query: str, what: str, problems: list[str]) -> dict[str, float]:
        """Return node -> value. A node with several series is left out, because it is unknown which one is right."""
        response = decoding(_decoder.decode, await self._client.get(PATH, {"query": query}))
        if response.status != "success" or response.data is None:
            raise DecodeError("status", f"expected success, got {response.status or 'nothing'} {response.error[:200]}")
        if response.data.result_type != "vector":
            raise DecodeError("data.resultType", f"{what}: expected vector, got {response.data.result_type[:40]!r}")
        found: dict[str, float] = {}
        twice: set[str] = set()
        unlabelled = 0
        for series in response.data.result:
            name = series.metric.get(_NODE_LABEL, "").partition(":")[0]  # no name of a node has a colon
            unlabelled += not name
            if name in found:
                twice.add(name)
            if name and series.value is not None:
                found[name] = _number(series.value[1])
        if unlabelled:
            problems.append(f"{what}: a series without the label {_NODE_LABEL}")
        for name in twice:
            problems.append(f"node {name}: {what}: several series")
            del found[name]
        return found


def prometheus_client(settings: Settings) -> ApiClient:
    """Return a client for the server of the settings. Raises ConfigurationError."""
    where = variable_of("usage_prometheus_url")
    server = checked_url(where, settings.usage_prometheus_url)
    authority, token = settings.usage_prometheus_ca_file, settings.usage_prometheus_token_file
    source = PemSource(variable_of("usage_prometheus_ca_file"), "authorities", str(authority)) if authority else None
    tls = TlsSettings(source) if server.startswith("https:") else None

    def read() -> ClusterAccess:
        authorization = bearer_of_file(token, variable_of("usage_prometheus_token_file")) if token else ""
        return ClusterAccess(where, server, tls, authorization)

    try:
        return ApiClient(Credentials(read(), read))
    except CredentialsError as error:
        raise ConfigurationError(str(error)) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _usage(
    name: str,
    resource: str,
    averages: Mapping[str, Mapping[str, float]],
    deviations: Mapping[str, Mapping[str, float]],
    problems: list[str],
) -> Usage | None:
    average, deviation = averages[resource].get(name), deviations[resource].get(name)
    if average is None:
        problems.append(f"node {name}: {resource} average: absent")
        return None
    scale = _MILLI if resource == "cpu" else 1
    try:
        return Usage(plausible(average * scale), None if deviation is None else plausible(deviation * scale))
    except ValueError as error:
        problems.append(f"node {name}: {resource}: {error}")
        return None
