"""What Prometheus is told."""

from app.telemetry.metrics.exposition import Metrics

__all__ = ["Metrics"]
