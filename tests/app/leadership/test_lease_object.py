"""The wire of a Lease."""

from datetime import UTC, datetime

import msgspec
import pytest

from app.leadership.lease_object import LeaseRecord, decode_lease, encode_lease, encode_new_lease, micro_time
from app.objects.decode import DecodeError

METADATA = {"name": "kindred", "resourceVersion": "7", "labels": {"app": "x"}, "managedFields": [{"manager": "k"}]}
SPEC = {
    "holderIdentity": "a_1",
    "leaseDurationSeconds": 15,
    "acquireTime": "2026-01-01T00:00:00.000000Z",
    "renewTime": "2026-01-01T00:00:02.000000Z",
    "leaseTransitions": 3,
}
RECORD = LeaseRecord("a_1", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:02.000000Z", 3)


def body(**fields: object) -> bytes:
    return msgspec.json.encode({"kind": "Lease", **fields})


def test_a_lease_is_read_and_goes_back_with_its_metadata_as_they_came() -> None:
    lease = decode_lease(body(metadata=METADATA, spec={**SPEC, "strategy": "of another release"}))
    assert lease.record == RECORD
    assert msgspec.json.decode(encode_lease(lease, RECORD)) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": METADATA,
        "spec": SPEC,
    }


def test_a_new_lease_has_a_name_and_a_namespace() -> None:
    made = msgspec.json.decode(encode_new_lease("ours", "kindred", RECORD))
    assert (made["metadata"], made["spec"]) == ({"namespace": "ours", "name": "kindred"}, SPEC)


@pytest.mark.parametrize("spec", [None, {}, dict.fromkeys(SPEC)], ids=["null", "empty", "nulls"])
def test_what_is_not_said_is_empty(spec: object) -> None:
    assert decode_lease(body(metadata=METADATA, spec=spec)).record == LeaseRecord()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(b"{}", "metadata: required", id="no-metadata"),
        pytest.param(b'{"metadata":null}', "metadata: required", id="null-metadata"),
        pytest.param(b'{"metadata":{},"spec":{"leaseDurationSeconds":"1"}}', "leaseDurationSeconds", id="no-number"),
        pytest.param(b"<html>", "malformed JSON", id="no-json"),
    ],
)
def test_what_is_no_lease_is_refused(wrong: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode_lease(wrong)


def test_a_micro_time_is_utc_with_microseconds() -> None:
    assert micro_time(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)) == "2026-01-02T03:04:05.000006Z"
