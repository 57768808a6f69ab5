"""The namespace that this replica runs in: by the settings, else by the service account that kubelet mounts."""

from pathlib import Path
from typing import Final

from app.settings import Settings

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(settings: Settings) -> str:
    """Return the namespace that this replica runs in, as far as is known; empty outside of a cluster."""
    if settings.pod_namespace:
        return settings.pod_namespace
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
