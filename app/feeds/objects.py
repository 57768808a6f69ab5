"""The objects of one resource: decoded, and passed to the mirror."""

import asyncio
import gc
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import msgspec

from app.feeds.freshness import ResourceState
from app.feeds.known_objects import KnownObjects, KnownPods, Unreadable
from app.feeds.stream import MAX_LINE_BYTES, is_older
from app.objects.decode import DecodeError
from app.objects.decode_pod import WirePod, decode_pod
from app.objects.resources import decode_identity
from app.process.logs import one_line
from core.events import ClusterEvent, Kind, Object
from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import PodState, PodTransition
from core.mirror.waiting_claims import WaitingClaims
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_FEW_BYTES: Final = 1024 * 1024  # elements of smaller objects are not counted
_MAX_ELEMENTS: Final = 500_000
"""JSON elements of one object. A decoded element takes up to 80 bytes, even if its JSON is short. In an object that an
API server has validated, an element has at least about ten bytes of JSON: 1.5 MiB are 150,000 elements."""


def _refuse_too_large(raw: msgspec.Raw, size: int) -> None:
    if size > MAX_LINE_BYTES:
        raise DecodeError("", f"an object of more than {MAX_LINE_BYTES} bytes")
    if bytes(raw).count(b",") > _MAX_ELEMENTS:
        raise DecodeError("", f"an object of more than {_MAX_ELEMENTS} elements")


class ObjectReader:
    """Decodes the objects of one resource, and counts errors in the resource's state."""

    def __init__(self, state: ResourceState) -> None:
        self._state = state
        self._decode = state.resource.decode

    def read(self, raw: msgspec.Raw | WirePod) -> Object | Unreadable:
        """Return the fields of an object that the core needs."""
        try:
            decoded = decode_pod(raw) if isinstance(raw, WirePod) else self._decode(self._counted(raw))
        except DecodeError as error:
            return self._unreadable(raw, error)
        if isinstance(decoded, Pod) and decoded.affinity.errors:
            self._report_terms(decoded)
        return decoded

    def _counted(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Count an object of a list, or of a line by itself. Raises DecodeError for one that is too large."""
        size = memoryview(raw).nbytes
        self._state.read_objects += 1
        self._state.read_bytes += size
        if size > _FEW_BYTES:
            _refuse_too_large(raw, size)
        return raw

    def read_unless_known(self, raw: msgspec.Raw | WirePod, known: KnownObjects) -> Object | Unreadable | str:
        """Return the known object as its entry, or decode the object if it has another version.

        Without this, a list of 150,000 known pods would take the memory of 150,000 further Pods for a while.
        """
        if known:
            try:
                unchanged = known.of_version(*decode_identity(raw))
            except DecodeError:
                unchanged = None  # `read` reports the error
            if unchanged is not None:
                return known.entry_of(unchanged)
        return self.read(raw)

    def _unreadable(self, raw: msgspec.Raw | WirePod, error: DecodeError) -> Unreadable:
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


class BulkLoads:
    """Disables garbage collection while any load is in progress, and freezes the live objects after the last load.

    A load makes hardly any garbage, but the collector would scan its objects repeatedly. A full collection over an
    unfrozen mirror of 150,000 pods stopped the process for 244 ms. After `gc.freeze()` it takes 0.01 ms. Every freeze
    except the first needs a collection before it. Otherwise garbage would be frozen and leak, such as connections
    closed since the last freeze, with their TLS buffers. Such a collection scans only objects that are newer than the
    last freeze. Before the first freeze, that would be the whole mirror, which had almost no garbage when measured.

    If all of these loads failed, there is no freeze. What they left is frozen after one that succeeds.
    """

    def __init__(self) -> None:
        self._running = 0
        self._loaded = False  # whether a load succeeded since the last freeze
        self._frozen = False  # whether there was a freeze

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wrap a load. Loads may overlap."""
        self._running += 1
        gc.disable()
        try:
            yield
            self._loaded = True
        finally:
            self._running -= 1
            if not self._running:
                self._end()

    def _end(self) -> None:
        if self._loaded:
            if self._frozen:
                gc.collect()
            gc.freeze()
            self._frozen = True
            # CPython delays a full collection until the new objects are a quarter of the objects that survived the last
            # one (gcmodule.c, long_lived_total). That number still includes the frozen objects. So without this call,
            # garbage would stay until tens of thousands of new objects exist.
            gc.collect()
            self._loaded = False
        gc.enable()


_EXPIRY_EVERY: Final = 1.0  # seconds
_CATCHES_UP: Final = 30.0  # seconds in which a watch that goes on has sent what was missed, the oldest first


class MirrorFeed:
    """Passes the cluster's changes to the mirror. While the service runs, only the feed and the verbs change it."""

    def __init__(
        self,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        observe_confirmation: Callable[[float], None],
        wall_clock: Callable[[], float] = time.time,
        states: Sequence[Callable[[ClusterMirror], Listener]] = (),
    ) -> None:
        """`observe_confirmation` gets the seconds from a pod's assumption to the event that confirms it.

        `states` are derived from the mirror after the first list of pods.
        """
        self._mirror = mirror
        self._clock = clock
        self._wall_clock = wall_clock
        self._waiting = mirror.derived(WaitingClaims)
        self._observe_confirmation = observe_confirmation
        self._states = states
        self._loads = BulkLoads()

    def known(self, kind: Kind) -> KnownObjects:
        """Return the objects of a kind that are passed on, none of them yet."""
        if kind is Pod:
            return KnownPods(self.apply, self.add, self._mirror.get_pod)
        return KnownObjects(self.apply, self.add)

    def add(self, added: Sequence[Object]) -> Sequence[Object]:
        """Take over the unknown objects that need nothing of `apply`, and return the others. See ClusterMirror.add."""
        return self._mirror.add(added)

    def derive(self, kind: Kind) -> Iterator[None]:
        """Derive the states from the mirror after a list of a kind, one per step. A state takes up to 0.1 s, once."""
        for make in self._states if kind is Pod else ():
            self._mirror.derived(make)
            yield

    def apply(self, event: ClusterEvent) -> None:
        """Take over one change."""
        assumed = self._mirror.assumed.get(event.object.uid)
        transition = self._mirror.apply(event)
        if transition is None:
            return
        if assumed is not None and transition.to_state is PodState.ADDED:
            self._observe_confirmation(self._clock() - assumed.assumed_at)
        if assumed is None or transition.from_node != transition.to_node:
            _report(transition)

    def loading(self) -> AbstractContextManager[None]:
        """Surround the time in which very many objects are loaded."""
        return self._loads.loading()

    async def follow_time(
        self, is_stale: Callable[[], bool] = lambda: False, version: Callable[[], str] = lambda: ""
    ) -> None:
        """Apply what changes with time alone, until cancelled.

        Assumed pods that the watch does not confirm in time are dropped, claims whose devices are not bound in time are
        marked, and the times are updated since which pods wait for their victims. While the mirror `is_stale`, and
        shortly after, no pod is dropped: it may be bound, and decisions begin again with the first line of the watch.

        `version`: up to which resource version the mirror has all pods. Empty while a list is due.
        """
        stale_at, last = -math.inf, ""
        while True:
            await asyncio.sleep(_EXPIRY_EVERY)
            now = self._clock()
            stale_at = now if is_stale() else stale_at
            self._mirror.preemptors.follow(now)
            if (latest := version()) != last:  # a restored etcd has lower versions, and its watch stands still
                self._drop_deleted(latest)
            last = latest
            for pod in self._mirror.expire(now) if now - stale_at >= _CATCHES_UP else ():
                log.warning("pods: %s: assumed on %s and never seen there, dropped", pod.full_name, pod.node_name)
            for claim in self._waiting.overdue(self._wall_clock()):
                self._mirror.apply(ClusterEvent("Update", claim))

    def _drop_deleted(self, version: str) -> None:
        """Drop the assumed pods that only a GET has shown, and that the mirror lacks at a later version.

        A list came in the place of their events, or the events were faster than the response to the GET.
        """
        for pod in [each.pod for each in self._mirror.assumed.values()]:
            if pod.uid not in self._mirror.pending and is_older(pod.resource_version, version):
                self.apply(ClusterEvent("Delete", pod))


def _report(transition: PodTransition) -> None:
    pod, before, after = one_line(transition.pod), transition.from_node, transition.to_node
    match transition.from_state, transition.to_state:
        case PodState.ASSUMED, PodState.ADDED:
            log.warning("pods: %s: assumed on %s, but bound to %s", pod, one_line(before), one_line(after))
        case PodState.ADDED, PodState.ADDED:
            log.warning("pods: %s: moved from %s to %s", pod, one_line(before), one_line(after))
        case PodState.ASSUMED, PodState.DELETED:
            log.info("pods: %s: deleted while assumed on %s", pod, one_line(before))
        case PodState.INITIAL, PodState.DELETED:
            log.debug("pods: %s: deleted, but was not in the mirror", pod)
