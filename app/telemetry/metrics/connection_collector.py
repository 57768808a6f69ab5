"""The connections of the ports and their certificates, read at each scrape."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.server.connections import Connections
from app.server.tls.reloaded import ReloadedTls


class ConnectionCollector:
    """Open connections, and connections refused since the start."""

    def __init__(self, ports: Sequence[Connections]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        opened = GaugeMetricFamily("kindred_connections_open", "Open connections.", labels=["port"])
        refused = CounterMetricFamily(
            "kindred_connections_refused",
            "Connections rejected or closed early, by reason.",
            labels=["port", "reason"],
        )
        for port in self._ports:
            opened.add_metric([port.port], port.open)
            for reason, count in port.refused.items():
                refused.add_metric([port.port, reason.value], count)
        yield from (opened, refused)


class TlsCollector:
    """Expiry of the certificates, and the results of reloads."""

    def __init__(self, ports: Sequence[ReloadedTls]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        ends = GaugeMetricFamily(
            "kindred_tls_certificate_not_after_timestamp_seconds",
            "Expiry of the port's certificate, in seconds since 1970.",
            labels=["port"],
        )
        reloads = CounterMetricFamily(
            "kindred_tls_reloads",
            "Reloads of certificates and authorities, by result.",
            labels=["port", "result"],
        )
        for port in self._ports:
            ends.add_metric([port.port], port.not_after)
            for result, count in port.reloads.items():
                reloads.add_metric([port.port, result], count)
        yield from (ends, reloads)
