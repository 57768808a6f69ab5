"""Whether the API server has a pod that the watch has not shown (yet): pods of simulators, and very new ones."""

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
_LASTS: Final = 30.0  # seconds; by then the watch has shown the pod
_MAX_PODS: Final = 4096


class Standing(Enum):
    """The state of a pod at the API server."""

    PENDING = "pending"
    """It has the pod, without a node: a decision for it is valid."""
    SETTLED = "settled"
    """It has not, or the pod has a node or has ended: there is nothing to decide."""
    UNKNOWN = "unknown"
    """It has to be asked."""


class _Found(NamedTuple):
    standing: Standing
    until: float


class PodLookup:
    """Returns the standing of pods, from the watch, or from recent responses of the API server."""

    def __init__(self, mirror: ClusterMirror, pods: PodApi | None, clock: Callable[[], float]) -> None:
        """Ask at `pods`; None for a mirror without a cluster, where nothing is decided. Times are of `clock`."""
        self._mirror = mirror
        self._pods = pods
        self._clock = clock
        self._found: OrderedDict[str, _Found] = OrderedDict()  # uid -> answer; the oldest first

    def standing(self, pod: Pod) -> Standing:
        """Return the present knowledge about a pod.

        That the API server has it without a node is returned once: at the next request it may be deleted, after the
        watch has shown both.
        """
        if self._pods is None or not pod.resource_version or not (is_name(pod.namespace) and is_name(pod.name)):
            return Standing.SETTLED  # no API server has written it; an invalid name must not get into a path
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
        """Return when the watch shows a pod that has no node, and after `seconds` at the latest.

        A scheduler is mostly told of a new pod within the same millisecond as Kindred. To sleep for a fixed time
        instead made 100 pods a second the most that could be scheduled while they were created.
        """
        if pod.uid in self._mirror.pending:  # shown since the first look, before this task had its turn
            return
        shown = asyncio.Event()
        with self._mirror.pending.expecting(pod.uid, shown.set), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await shown.wait()

    async def ask(self, pod: Pod) -> str:
        """Ask the API server for a pod; return why that failed, one line, or nothing."""
        if self._pods is None:
            return ""
        try:
            async with asyncio.timeout(_PATIENCE):
                live = await self._pods.get(BindingArgs(pod.namespace, pod.name, pod.uid, ""))
        except TimeoutError:
            return f"the API server has not answered within {_PATIENCE:g} s"
        except (ApiError, CredentialsError, DecodeError) as error:
            return str(error)
        pending = live is not None and live.uid == pod.uid and not live.node_name and not live.terminal
        self._found.pop(pod.uid, None)
        self._found[pod.uid] = _Found(Standing.PENDING if pending else Standing.SETTLED, self._clock() + _LASTS)
        if len(self._found) > _MAX_PODS:
            self._found.popitem(last=False)
        return ""
