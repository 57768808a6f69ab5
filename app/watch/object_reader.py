"""Decodes the objects of a list or watch. An object that cannot be decoded is logged, counted and skipped."""

import logging
from time import perf_counter
from typing import Final

import msgspec

from app.logs import one_line
from app.objects.decode import DecodeError
from app.objects.resources import decode_identity
from app.watch.freshness import ResourceState
from app.watch.known_objects import KnownObjects
from app.watch.lines import MAX_LINE_BYTES
from core.events import Object
from core.objects.pod import Pod

log = logging.getLogger(__name__)


_FEW_BYTES: Final = 1024 * 1024  # elements of smaller objects are not counted
_MAX_ELEMENTS: Final = 500_000
"""JSON elements of one object. A decoded element takes up to 80 bytes, even if its JSON is short. In an object that an
API server has validated, an element has at least about ten bytes of JSON: 1.5 MiB are 150,000 elements."""


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """An object with only a readable identity, or not even that. Unreadable parts are empty."""

    full_name: str = ""
    uid: str = ""
    resource_version: str = ""


def _refuse_too_large(raw: msgspec.Raw, size: int) -> None:
    if size > MAX_LINE_BYTES:
        raise DecodeError("", f"an object of more than {MAX_LINE_BYTES} bytes")
    if bytes(raw).count(b",") > _MAX_ELEMENTS:
        raise DecodeError("", f"an object of more than {_MAX_ELEMENTS} elements")


class ObjectReader:
    """Decodes the objects of one resource, and counts errors and time in the resource's state."""

    def __init__(self, state: ResourceState) -> None:
        self._state = state
        self._decode = state.resource.decode

    def read(self, raw: msgspec.Raw) -> Object | Unreadable:
        """Return the fields of an object that the core needs."""
        began = perf_counter()
        size = memoryview(raw).nbytes
        self._state.read_objects += 1
        self._state.read_bytes += size
        try:
            if size > _FEW_BYTES:
                _refuse_too_large(raw, size)
            decoded = self._decode(raw)
        except DecodeError as error:
            return self._unreadable(raw, error)
        finally:
            self._state.decode_seconds += perf_counter() - began
        if isinstance(decoded, Pod) and decoded.affinity.errors:
            self._report_terms(decoded)
        return decoded

    def read_unless_known(self, raw: msgspec.Raw, known: KnownObjects) -> Object | Unreadable:
        """Return the known object, or decode the object if it has another version.

        Without this, a list of 150,000 known pods would take the memory of 150,000 further Pods for a while.
        """
        if known:
            began = perf_counter()
            try:
                unchanged = known.of_version(*decode_identity(raw))
            except DecodeError:
                unchanged = None  # `read` reports the error
            self._state.decode_seconds += perf_counter() - began
            if unchanged is not None:
                return unchanged
        return self.read(raw)

    def _unreadable(self, raw: msgspec.Raw, error: DecodeError) -> Unreadable:
        try:
            identity = Unreadable(*decode_identity(raw))
        except DecodeError:
            identity = Unreadable()
        self._state.decode_errors += 1
        name = identity.full_name or "an object without a readable name"
        log.warning("%s: skipped %s: %s", self._state.plural, one_line(name), one_line(str(error)))
        return identity

    def _report_terms(self, pod: Pod) -> None:
        # kube-scheduler keeps such a pod, too, without the invalid list of terms (NodeInfo.AddPod).
        self._state.decode_errors += 1
        for error in pod.affinity.errors:
            log.warning(
                "pods: %s: kept without its %s: spec.affinity.%s: %s",
                one_line(pod.full_name),
                error.group,
                one_line(error.field),
                one_line(error.message),
            )
