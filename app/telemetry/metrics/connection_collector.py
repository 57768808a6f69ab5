"""The connections of the ports, and their certificates, looked up when it is asked for."""

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.server.connections import Connections
from app.server.tls.reloaded import ReloadedTls


class ConnectionCollector:
    """What stands now, and what was turned away since the start."""

    def __init__(self, ports: Sequence[Connections]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        opened = GaugeMetricFamily("kindred_connections_open", "Connections that stand.", labels=["port"])
        refused = CounterMetricFamily(
            "kindred_connections_refused",
            "Connections that were turned away, or closed before their time, by why.",
            labels=["port", "reason"],
        )
        for port in self._ports:
            opened.add_metric([port.port], port.open)
            for reason, count in port.refused.items():
                refused.add_metric([port.port, reason.value], count)
        yield from (opened, refused)


class TlsCollector:
    """Until when certificates hold, and what became of new ones."""

    def __init__(self, ports: Sequence[ReloadedTls]) -> None:
        self._ports = ports

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        ends = GaugeMetricFamily(
            "kindred_tls_certificate_not_after_seconds",
            "When the certificate of the port ends, in seconds since 1970.",
            labels=["port"],
        )
        reloads = CounterMetricFamily(
            "kindred_tls_reloads",
            "Certificates and authorities that were read anew, or that changed and could not be used, by result.",
            labels=["port", "result"],
        )
        for port in self._ports:
            ends.add_metric([port.port], port.not_after)
            for result, count in port.reloads.items():
                reloads.add_metric([port.port, result], count)
        yield from (ends, reloads)
