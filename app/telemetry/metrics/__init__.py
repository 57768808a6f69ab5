"""The metrics of `/metrics`, in Prometheus' text format."""

from app.telemetry.metrics.exposition import Metrics

__all__ = ["Metrics"]
