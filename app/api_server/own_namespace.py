"""The namespace of this replica: from the downward API, else from the service account that kubelet mounts."""

import os
from pathlib import Path
from typing import Final

from app.process.files import MAX_TOKEN_BYTES, read_file

VARIABLE: Final = "POD_NAMESPACE"
"""The usual name of the variable that a manifest sets by the downward API. It is no setting."""
_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace() -> str:
    """Return the namespace of this replica. Empty if unknown, as outside of a cluster."""
    return os.environ.get(VARIABLE) or namespace_of(_SERVICE_ACCOUNT_NAMESPACE)


def namespace_of(file: Path) -> str:
    """Return the namespace in a file that kubelet mounts. Empty if it cannot be read."""
    try:
        return read_file(file, MAX_TOKEN_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""
