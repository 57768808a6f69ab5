"""The error of a pod's label, in the words of the release in effect."""

from core.mirror.cluster import ClusterMirror
from core.objects.label_validation import in_bytes


def said(mirror: ClusterMirror, message: str) -> str:
    """Return a message, made when the pod was decoded, as the release has it."""
    return in_bytes(message) if mirror.rules.label_errors_in_bytes else message
