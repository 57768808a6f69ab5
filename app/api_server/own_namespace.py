"""The namespace of this replica: from the settings, else from the service account that kubelet mounts."""

from pathlib import Path
from typing import Final

from app.files import MAX_TOKEN_BYTES, read_file
from app.settings import Settings

_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(settings: Settings) -> str:
    """Return the namespace of this replica. Empty if unknown, as outside of a cluster."""
    if settings.pod_namespace:
        return settings.pod_namespace
    return namespace_of(_SERVICE_ACCOUNT_NAMESPACE)


def namespace_of(file: Path) -> str:
    """Return the namespace in a file that kubelet mounts. Empty if it cannot be read."""
    try:
        return read_file(file, MAX_TOKEN_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""
