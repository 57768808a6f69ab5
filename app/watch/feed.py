"""Passes all watched changes to the mirror, and logs unexpected ones."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from app.process.logs import one_line
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.placement import AssumedPod, PodState, PodTransition
from core.objects.pod import Pod

# Disables the garbage collector during bulk loads, and freezes the loaded objects afterwards.
#
# A load makes hardly any garbage, but the collector would scan its objects repeatedly. A full collection over an
# unfrozen mirror of 150,000 pods stopped the process for 244 ms. After `gc.freeze()` it takes 0.01 ms. Every freeze
# except the first needs a collection before it. Otherwise garbage would be frozen and leak, such as connections
# closed since the last freeze, with their TLS buffers. Such a collection scans only objects that are newer than the
# last freeze. Before the first freeze, that would be the whole mirror, which had almost no garbage when measured.


class BulkLoads:
    """Disables collection while any load is in progress, and freezes the live objects after the last load.

    If all of these loads failed, there is no freeze, because they left no objects.
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


log = logging.getLogger(__name__)

_EXPIRY_EVERY: Final = 1.0  # seconds
_FAILURE_LATE: Final = 30.0  # seconds: by then the watch has shown the condition of an earlier attempt


class MirrorFeed:
    """Passes the cluster's changes to the mirror. While the service runs, only the feed and the verbs change it."""

    def __init__(
        self, mirror: ClusterMirror, clock: Callable[[], float], observe_confirmation: Callable[[float], None]
    ) -> None:
        """`observe_confirmation` gets the seconds from a pod's assumption to the event that confirms it."""
        self._mirror = mirror
        self._clock = clock
        self._observe_confirmation = observe_confirmation
        self._loads = BulkLoads()

    def apply(self, event: ClusterEvent) -> None:
        """Take over one change."""
        assumed = self._mirror.assumed.get(event.object.uid)
        transition = self._mirror.apply(event)
        if transition is None:
            if assumed is not None:
                self._end_if_failed(event, assumed)
            return
        if assumed is not None and transition.to_state is PodState.ADDED:
            self._observe_confirmation(self._clock() - assumed.assumed_at)
        _report(transition)

    def _end_if_failed(self, event: ClusterEvent, assumed: AssumedPod) -> None:
        """End an assumption if the pod's status reports that the scheduling attempt failed.

        A scheduler writes the condition PodScheduled in the background, and the watch may lag. So while an assumption
        is young, or if its binding may wait for minutes, the condition may belong to an earlier attempt. It is ignored
        then, because a pod that is missing in the mirror could break a rule.
        """
        pod = event.object
        if not isinstance(pod, Pod) or not pod.failure or assumed.deadline is None or assumed.waits:
            return
        if self._clock() - assumed.assumed_at > _FAILURE_LATE and self._mirror.is_assumed(pod.uid):
            self._mirror.forget(pod.uid)
            log.info("pods: %s: assumed on %s, but its scheduling has failed", pod.full_name, assumed.pod.node_name)

    def loading(self) -> AbstractContextManager[None]:
        """Surround the time in which very many objects are loaded."""
        return self._loads.loading()

    async def expire_assumed_pods(self) -> None:
        """Drop assumed pods that the watch does not confirm in time, until cancelled.

        Also update the times since which pods wait for their victims.
        """
        while True:
            await asyncio.sleep(_EXPIRY_EVERY)
            now = self._clock()
            self._mirror.preemptors.follow(now)
            for pod in self._mirror.expire(now):
                log.warning("pods: %s: assumed on %s and never seen there, dropped", pod.full_name, pod.node_name)


def _report(transition: PodTransition) -> None:
    pod, before, after = one_line(transition.pod), transition.from_node, transition.to_node
    match transition.from_state, transition.to_state:
        case PodState.ASSUMED, PodState.ADDED if before != after:
            log.warning("pods: %s: assumed on %s, but bound to %s", pod, one_line(before), one_line(after))
        case PodState.ADDED, PodState.ADDED:
            log.warning("pods: %s: moved from %s to %s", pod, one_line(before), one_line(after))
        case PodState.ASSUMED, PodState.DELETED:
            log.info("pods: %s: deleted while assumed on %s", pod, one_line(before))
        case PodState.INITIAL, PodState.DELETED:
            log.debug("pods: %s: deleted, but was not in the mirror", pod)
