"""Creates the exporter of traces. OpenTelemetry is an extra, imported only if an endpoint is set."""

import random
import socket
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from app.settings import Settings, SettingsError, variable_of

if TYPE_CHECKING:
    from app.telemetry.request_spans import RequestSpans

_PATH: Final = "/v1/traces"
"""Default path of traces in OTLP: opentelemetry.io/docs/specs/otlp, OTLP/HTTP Request."""


def create_tracing(settings: Settings) -> "RequestSpans | None":
    """Return the exporter of spans; None without tracing. Raises SettingsError."""
    if not settings.traces_endpoint:
        return None
    endpoint = traces_url(settings)
    try:
        from app.telemetry.request_spans import RequestSpans, spans_to  # noqa: PLC0415 - takes 0.1 s and 10 MB
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("opentelemetry"):
            raise
        needed = "needs the extra otel: pip install 'kindred-scheduler[otel]'"
        raise SettingsError(f"{variable_of('traces_endpoint')}: {needed}") from None
    provider = spans_to(endpoint, settings.pod_name or socket.gethostname())
    return RequestSpans(provider, settings.traces_share, random.random, time.time_ns)


def traces_url(settings: Settings) -> str:
    """Return the URL that traces are posted to."""
    parts = urlsplit(settings.traces_endpoint)
    return parts._replace(path=_PATH).geturl() if parts.path in {"", "/"} else settings.traces_endpoint
