"""The settings of the measured usage of nodes."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.setting_types import File, Query, Url


class UsageSettings(BaseModel):
    """The source of measured usage, and its queries. A part of Settings."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    usage_source: Literal["off", "metrics-api", "prometheus"] = "off"
    """Source of the measured usage of nodes: `metrics-api`, `prometheus` or `off`. The plugins that follow usage need
    one. `metrics-api` is metrics.k8s.io of the API server, which metrics-server serves. `prometheus` is the server at
    `usagePrometheusUrl`. See docs/plugins.md."""
    usage_interval: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """Seconds between two polls of the usage of all nodes. A poll that takes longer fails."""
    usage_prometheus_url: Url = ""
    """Base URL of the Prometheus API, such as `https://prometheus.monitoring:9090`, without a user, a password and a
    query."""
    usage_prometheus_token_file: File = None
    """File with the bearer token for Prometheus, only with https. Kindred reads it again when it changes."""
    usage_prometheus_ca_file: File = None
    """Certificate authorities, PEM, that sign the certificate of Prometheus. Empty: the authorities of the system."""
    usage_cpu_query: Query = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))'
    """PromQL query of the CPU in use, in cores, one series for each node. The default reads the metrics of the
    kubelet."""
    usage_memory_query: Query = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
    """PromQL query of the memory in use, in bytes, one series for each node."""
