"""The namespace of this replica: from the settings, else from the service account that kubelet mounts."""

from pathlib import Path
from typing import Final

from app.settings import Settings

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(settings: Settings) -> str:
    """Return the namespace of this replica. Empty if unknown, as outside of a cluster."""
    if settings.pod_namespace:
        return settings.pod_namespace
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
