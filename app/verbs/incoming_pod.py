"""A v1.Pod from a request, or from a GET of the API server, and not from the watch."""

from typing import Final

import msgspec

from app.objects.decode import NULL, DecodeError, under
from app.objects.decode_pod import decode_pod
from core.objects.pod import Pod

_MAX_POD_BYTES: Final = 4 * 1024 * 1024  # etcd takes objects of up to 1.5 MiB


def decode_incoming_pod(raw: msgspec.Raw) -> Pod:
    """Decode the pod of a request. Every affinity term must be valid. Raises DecodeError."""
    if raw == NULL:
        raise DecodeError("Pod", "required")
    if memoryview(raw).nbytes > _MAX_POD_BYTES:
        raise DecodeError("Pod", f"larger than {_MAX_POD_BYTES} bytes")
    with under("Pod"):
        pod = decode_pod(raw)
    for error in pod.affinity.errors:
        raise DecodeError(f"Pod.spec.affinity.{error.field}", error.message)
    return pod
