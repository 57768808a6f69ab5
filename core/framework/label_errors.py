"""What is wrong with a label of a pod, in the words of the release that is answered for."""

from core.mirror.cluster import ClusterMirror
from core.objects.label_validation import in_bytes


def said(mirror: ClusterMirror, message: str) -> str:
    """Return a message, made when the pod was decoded, as the release has it."""
    return in_bytes(message) if mirror.rules.label_errors_in_bytes else message
