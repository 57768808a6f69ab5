"""What Prometheus is told."""

from app.metrics.exposition import Metrics

__all__ = ["Metrics"]
