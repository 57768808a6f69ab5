"""Error messages for a pod's labels, in the wording of the release in effect."""

from core.mirror.cluster import ClusterMirror
from core.objects.label_validation import in_bytes


def said(mirror: ClusterMirror, message: str) -> str:
    """Return a message from the decoding of a pod in the release's wording."""
    return in_bytes(message) if mirror.rules.label_errors_in_bytes else message
