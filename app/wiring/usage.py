"""The feed of node usage, if the settings name a source, and the check that plugins have the source they need."""

import time
from functools import partial
from typing import Final

from app.api_server.client import ApiClient
from app.api_server.credentials import ConfigurationError
from app.settings.settings import Settings, SettingsError, variable_of
from app.telemetry.metrics import Metrics
from app.telemetry.metrics.mirror import usage_metrics
from app.usage.metrics_api import MetricsApi
from app.usage.prometheus import Prometheus, prometheus_client
from app.usage.usage_feed import Apply, UsageFeed, UsageSource
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics
from core.profile import Profile

_MAX_AGE: Final = 180.0
"""Seconds after which a measurement is not used: metrics-server and Prometheus make one a minute or more often."""


def check_usage(settings: Settings, profile: Profile) -> None:
    """Raise SettingsError for plugins that need node usage, if the settings name no source."""
    reading = sorted(plugin.name for plugin in profile.plugins if NodeMetrics in plugin.kinds)
    if reading and settings.usage_source == "off":
        text = f"{', '.join(reading)} needs {variable_of('usage_source')}"
        raise SettingsError(f"{variable_of('profile')}={settings.profile!r}: {text}")


def create_usage_feed(
    settings: Settings,
    mirror: ClusterMirror,
    apply: Apply,
    client: ApiClient,
    metrics: Metrics,
) -> UsageFeed | None:
    """Return the feed of node usage. None if the settings name no source. Raises SettingsError."""
    source = _source(settings, client)
    if source is None:
        return None
    feed = UsageFeed(source, mirror, apply, time.time, interval=settings.usage_interval, max_age=_MAX_AGE)
    metrics.register(partial(usage_metrics, feed))
    return feed


def _source(settings: Settings, client: ApiClient) -> UsageSource | None:
    match settings.usage_source:
        case "off":
            return None
        case "metrics-api":
            return MetricsApi(client)
        case "prometheus":
            try:
                return Prometheus(prometheus_client(settings), settings.usage_cpu_query, settings.usage_memory_query)
            except ConfigurationError as error:
                raise SettingsError(str(error)) from None
