"""The wire format of a Lease: the fields that an election reads and writes.

Source: k8s.io/api coordination/v1 types.go and k8s.io/client-go tools/leaderelection/resourcelock/leaselock.go.
"""

from datetime import UTC, datetime
from typing import Final

import msgspec

from app.objects.decode import NULL, DecodeError, Int32, Wire, decoding

_API_VERSION: Final = "coordination.k8s.io/v1"


class LeaseRecord(msgspec.Struct, frozen=True, gc=False):
    """The holder of a Lease. No holder: the Lease was released. Times are text, because only people read them."""

    holder: str = ""
    seconds: int = 0
    """Seconds after the last change of the record in which no other replica may take it."""
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A Lease from the API server. `metadata`, with the resourceVersion, is sent back unchanged."""

    metadata: msgspec.Raw
    record: LeaseRecord


class _Spec(Wire):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: Int32 | None = None


class _Lease(Wire):
    metadata: msgspec.Raw = NULL
    spec: _Spec | None = None


_decoder: Final = msgspec.json.Decoder(_Lease)


def decode_lease(body: bytes) -> Lease:
    """Decode a Lease. Raises DecodeError."""
    lease = decoding(_decoder.decode, body)
    if lease.metadata == NULL:
        raise DecodeError("metadata", "required")
    spec = lease.spec or _Spec()
    record = LeaseRecord(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )
    return Lease(msgspec.Raw(bytes(lease.metadata)), record)  # a copy, not a view of the whole body


def micro_time(time: datetime) -> str:
    """Return a time in the format of Kubernetes' MicroTime."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def encode_lease(metadata: object, record: LeaseRecord) -> bytes:
    """Return a Lease. With the metadata that was read, the API server accepts it only if the Lease is unchanged."""
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.seconds,
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }
    return msgspec.json.encode({"apiVersion": _API_VERSION, "kind": "Lease", "metadata": metadata, "spec": spec})
