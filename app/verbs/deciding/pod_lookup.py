"""Whether the API server has a pod that the watch has not shown: the pod of a simulator, or a very new pod."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Final, NamedTuple

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.verbs.binding.binding_args import BindingArgs, is_name
from app.verbs.binding.pod_api import PodApi
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

_PATIENCE: Final = 2.0  # seconds, below kube-scheduler's httpTimeout
_LASTS: Final = 30.0  # seconds that a response is kept; by then the watch has shown the pod
_MAX_PODS: Final = 4096


class Standing(Enum):
    """The state of a pod at the API server."""

    PENDING = "pending"
    """The API server has the pod, without a node. A decision for the pod is valid."""
    SETTLED = "settled"
    """The API server lacks the pod, or the pod has a node or has ended. There is nothing to decide."""
    UNKNOWN = "unknown"
    """The API server must be asked."""


class _Found(NamedTuple):
    standing: Standing
    until: float


class PodLookup:
    """The standing of pods, from the watch or from recent responses of the API server."""

    def __init__(self, mirror: ClusterMirror, pods: PodApi | None, clock: Callable[[], float]) -> None:
        """`pods` reads pods. It is None for a mirror without a cluster, where nothing is decided."""
        self._mirror = mirror
        self._pods = pods
        self._clock = clock
        self._found: OrderedDict[str, _Found] = OrderedDict()  # uid -> response, the oldest first

    def standing(self, pod: Pod) -> Standing:
        """Return the standing of a pod as far as it is known.

        PENDING from a response of the API server is returned only once. By the next request the watch may have shown
        the pod and its deletion.
        """
        if self._pods is None or not pod.resource_version or not (is_name(pod.namespace) and is_name(pod.name)):
            return Standing.SETTLED  # no API server has such a pod, and an invalid name must not get into a URL path
        if pod.uid in self._mirror.pending or self._mirror.is_assumed(pod.uid):
            return Standing.PENDING
        if self._mirror.is_mirrored(pod.uid):
            return Standing.SETTLED
        found = self._found.get(pod.uid)
        if found is None or self._clock() >= found.until:
            return Standing.UNKNOWN
        if found.standing is Standing.PENDING:
            del self._found[pod.uid]
        return found.standing

    async def wait(self, pod: Pod, seconds: float) -> None:
        """Return when the watch shows the pod without a node, at the latest after `seconds`.

        Mostly the watches of the scheduler and of Kindred show a new pod within the same millisecond. With a fixed
        sleep instead, at most 100 pods a second were scheduled while they were created.
        """
        if pod.uid in self._mirror.pending:  # the watch showed it after the first check, before this task ran
            return
        shown = asyncio.Event()
        with self._mirror.pending.expecting(pod.uid, shown.set), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await shown.wait()

    async def ask(self, pod: Pod) -> str:
        """Read a pod from the API server and keep its standing. Return the error in one line, or an empty text."""
        if self._pods is None:
            return ""
        try:
            async with asyncio.timeout(_PATIENCE):
                live = await self._pods.get(BindingArgs(pod.namespace, pod.name, pod.uid, ""))
        except TimeoutError:
            return f"the API server did not respond within {_PATIENCE:g} s"
        except (ApiError, CredentialsError, DecodeError) as error:
            return str(error)
        pending = live is not None and live.uid == pod.uid and not live.node_name and not live.terminal
        self._found.pop(pod.uid, None)
        self._found[pod.uid] = _Found(Standing.PENDING if pending else Standing.SETTLED, self._clock() + _LASTS)
        if len(self._found) > _MAX_PODS:
            self._found.popitem(last=False)
        return ""
