"""The pod of a request as the API server has it: from the watch, or from a GET if the watch is late.

A request's own copy of a pod causes no effect. Its sender may be wrong, late or an intruder, and an equal
resourceVersion proves nothing. So assumptions, bindings, preemptions and evictions are for the pod that this module
returns. It has the namespace, the name and the uid of the request, and the server's spec.

The request's copy only shows whether the watch is late. If its resourceVersion differs from the watch, and a field that
decides differs, the caller waits for the watch. After that, a GET shows whether the watch or the request is old. The
bytes cannot be compared: kube-scheduler's informer drops managedFields (pkg/scheduler/scheduler.go, trim).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from app.api_server.client import ApiError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.verbs.pod_api import BindingArgs, PodApi, is_name
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, decides_alike

_PATIENCE: Final = 2.0  # seconds, below kube-scheduler's httpTimeout
_LASTS: Final = 30.0  # seconds for which it is kept that a pod is not pending: no later state of that uid is
_AT_ONCE: Final = 0.1  # seconds for which a pending pod is kept: for the evaluation right after its GET
_MAX_PODS: Final = 4096


class _Metadata(msgspec.Struct, rename="camel", frozen=True, gc=False):
    uid: str = ""
    namespace: str = ""
    name: str = ""
    resource_version: str = ""


class _Identity(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


_identity_decoder: Final = msgspec.json.Decoder(_Identity)


class Standing(Enum):
    """The state of a pod at the API server."""

    PENDING = "pending"
    """The API server has the pod, without a node. A decision for the pod is valid."""
    SETTLED = "settled"
    """The API server lacks the pod, or the pod has a node or has ended. There is nothing to decide."""
    UNKNOWN = "unknown"
    """The API server must be asked, because the watch may be late."""


class Found(NamedTuple):
    """The standing of a pod, and the pod as the API server has it if it is pending."""

    standing: Standing
    pod: Pod | None = None


_SETTLED: Final = Found(Standing.SETTLED)
_UNKNOWN: Final = Found(Standing.UNKNOWN)


class _Kept(NamedTuple):
    found: Found
    until: float


class PodLookup:
    """Pods from the watch or from recent responses of the API server."""

    def __init__(self, mirror: ClusterMirror, pods: PodApi | None, clock: Callable[[], float]) -> None:
        """`pods` reads pods. It is None for a mirror without a cluster, where no pod is pending."""
        self._mirror = mirror
        self.pods: Final = pods
        """Reads and binds pods at the API server. None without a cluster."""
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()  # (NAMESPACE/NAME, uid) -> response
        self._compared: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """uid -> resourceVersions of the watch and of a request that is old, as a GET has shown"""

    def of(self, asked: Pod) -> Found:
        """Return the pod of a request and its standing. UNKNOWN until the watch or `ask` has shown the pod.

        A pod that a GET has shown is returned once, and only right after the GET. Later the pod may be changed or
        deleted, and the watch may have shown that.
        """
        if self.pods is None or not asked.resource_version or not (is_name(asked.namespace) and is_name(asked.name)):
            return _SETTLED  # no API server has such a pod, and an invalid name must not get into a URL path
        return self.named(asked.full_name, asked.uid, asked)

    def shown(self, raw: msgspec.Raw) -> Pod | None:
        """Return the pending pod of the watch, if a request has it in the same version. Else None.

        The request's copy decides nothing then, so it is not decoded. That saves 15 us for an ordinary pod.
        """
        if self.pods is None:
            return None
        try:
            metadata = _identity_decoder.decode(raw).metadata
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None  # decoding the whole pod reports the field
        pod = self._mirror.pending.get(metadata.uid)
        if pod is None or not pod.resource_version:
            return None
        same = (pod.namespace, pod.name, pod.resource_version) == (
            metadata.namespace,
            metadata.name,
            metadata.resource_version,
        )
        return pod if same else None

    def named(self, full_name: str, uid: str, asked: Pod | None) -> Found:
        """Return a pod by its name and uid, and its standing. `asked` is the copy in a request, if there was one."""
        shown = self._mirror.pending.get(uid)
        if shown is not None:
            if shown.full_name != full_name:
                return _SETTLED
            if asked is None or self._is_current(shown, asked):
                return Found(Standing.PENDING, shown)
        elif self._mirror.is_mirrored(uid) and not self._mirror.is_assumed(uid):
            return _SETTLED
        kept = self._kept.get((full_name, uid))
        if kept is None or self._clock() >= kept.until:
            return _UNKNOWN
        if kept.found.standing is Standing.PENDING:
            del self._kept[full_name, uid]
        return kept.found

    async def wait(self, asked: Pod, seconds: float) -> None:
        """Return when the watch shows another state of the pod without a node, at the latest after `seconds`.

        Mostly the watches of the scheduler and of Kindred show a new pod within the same millisecond. With a fixed
        sleep instead, at most 100 pods a second were scheduled while they were created.
        """
        known = self._mirror.pending.get(asked.uid)
        if known is not None and self._is_current(known, asked):  # shown after the first look, before this task ran
            return
        shown = asyncio.Event()
        with self._mirror.pending.expecting(asked.uid, shown.set), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await shown.wait()

    async def ask(self, asked: Pod) -> str:
        """Read the pod of a request, so that `of` knows it. Return the error in one line, or an empty text."""
        try:
            async with asyncio.timeout(_PATIENCE):
                live = await self.read(BindingArgs(asked.namespace, asked.name, asked.uid, ""))
        except TimeoutError:
            return f"the API server did not respond within {_PATIENCE:g} s"
        except (ApiError, CredentialsError, DecodeError) as error:
            return str(error)
        if live is not None and _is_pending(live, asked.uid):
            self._keep(asked.full_name, asked.uid, Found(Standing.PENDING, self._mirror.counted(live)), _AT_ONCE)
            shown = self._mirror.pending.get(asked.uid)
            if shown is not None and shown.resource_version == live.resource_version:  # so the request is old or wrong
                self._compared[asked.uid] = shown.resource_version, asked.resource_version
                _drop_oldest(self._compared)
        return ""

    async def read(self, args: BindingArgs) -> Pod | None:
        """Return the present pod of a name, with any uid. None if there is none. That it is not pending is kept.

        Raises ApiError, CredentialsError, DecodeError.
        """
        if self.pods is None:
            return None
        live = await self.pods.get(args)
        if live is None or not _is_pending(live, args.uid):
            self._keep(args.full_name, args.uid, _SETTLED, _LASTS)
        return live

    def _keep(self, full_name: str, uid: str, found: Found, seconds: float) -> None:
        self._kept.pop((full_name, uid), None)
        self._kept[full_name, uid] = _Kept(found, self._clock() + seconds)
        _drop_oldest(self._kept)

    def _is_current(self, shown: Pod, asked: Pod) -> bool:
        """Return whether the watch agrees with the request, or the server has confirmed that the watch is not late.

        The usual case is an equal resourceVersion, which costs no comparison.
        """
        versions = shown.resource_version, asked.resource_version
        if versions[0] == versions[1] or decides_alike(shown, self._mirror.counted(asked)):
            return True
        return self._compared.get(shown.uid) == versions


def _is_pending(live: Pod, uid: str) -> bool:
    return live.uid == uid and not live.node_name and not live.terminal


def _drop_oldest(kept: OrderedDict[Any, Any]) -> None:
    if len(kept) > _MAX_PODS:
        kept.popitem(last=False)
