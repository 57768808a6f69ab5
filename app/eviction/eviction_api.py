"""The requests of a preemption to the API server: reading the preemptor, nominations, deletion of victims, and Events.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go (PreemptPod). Upstream's writes have only
the pod's name. Here each write also has the uid, so that it cannot affect a newer pod with the same name.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError, Wire, decoding
from app.verbs.pod_api import ReadRate, TooManyReadsError
from app.verbs.wire_in import decode_incoming_pod
from core.objects.pod import Pod

RBAC_RULES: Final = (
    'apiGroups: [""], resources: ["pods"], verbs: ["get", "delete"]',
    'apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]',
    'apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"]',
)
"""The rules of a ClusterRole for preemption, each as one line of YAML."""

_PAUSES: Final = (0.1, 0.4)  # seconds before the second and the third attempt after a temporary error
_MAX_LENGTH: Final = 5.0  # timeout of one request in seconds
_MAX_NAME: Final = 253  # characters; the name of an Event must be a DNS subdomain
_MAX_INSTANCE: Final = 128  # characters that the API server allows
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_GONE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})


class EvictionError(Exception):
    """The API server rejected the request, or was unreachable. The message is one line."""


class LivePod(msgspec.Struct, frozen=True, gc=False):
    """The API server's state of a pod. `given_up`: its scheduler has found no node for it."""

    pod: Pod
    scheduler_name: str
    given_up: bool


class _Spec(Wire):
    scheduler_name: str | None = None


class _Condition(Wire):
    type: str | None = None
    status: str | None = None
    reason: str | None = None


class _Status(Wire):
    conditions: list[_Condition] | None = None


class _Pod(Wire):
    spec: _Spec | None = None
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Pod)


class EvictionApi:
    """Reads, nominates and evicts pods of one cluster. All methods raise EvictionError."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Limit the reads by `clock`, in seconds."""
        self._client = client
        self._reads = ReadRate(clock)

    async def read(self, pod: Pod) -> LivePod | None:
        """Return the present pod of that name, with any uid. None if there is none. See ReadRate for the limit."""
        try:
            await self._reads.turn(pod.full_name)
        except TooManyReadsError as error:
            raise EvictionError(str(error)) from None
        # Without a resourceVersion the server does a quorum read. Its watch cache could return an old state.
        body = await _sent(lambda: self._client.get(_path(pod), {}))
        if body is None:
            return None
        try:
            decoded, wire = decode_incoming_pod(msgspec.Raw(body)), decoding(_decoder.decode, body)
        except DecodeError as error:
            raise EvictionError(f"pod {pod.full_name} cannot be read: {error}") from None
        conditions = (wire.status or _Status()).conditions or ()
        return LivePod(decoded, (wire.spec or _Spec()).scheduler_name or "", any(map(_is_unschedulable, conditions)))

    async def nominate(self, pod: Pod, node: str) -> bool:
        """Set the nominated node of a pod. Return whether the pod still exists."""
        return await self._patch_status(pod, {"nominatedNodeName": node})

    async def clear_nomination(self, pod: Pod) -> None:
        """Remove the nominated node of a pod, if the pod still exists."""
        await self._patch_status(pod, {"nominatedNodeName": None})

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        """Create an Event of events.k8s.io."""
        path = f"/apis/events.k8s.io/v1/namespaces/{quote(namespace, safe='')}/events"
        await _sent(lambda: self._client.post(path, msgspec.json.encode(event)))

    async def evict(self, victim: Pod, scheduler_name: str) -> bool:
        """Mark a pod as preempted and delete it. Return False if it no longer existed, which is a success, too."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if not await self._patch_status(victim, {"conditions": [condition]}):
            return False
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.uid}}
        return await _sent(lambda: self._client.delete(_path(victim), msgspec.json.encode(options))) is not None

    async def _patch_status(self, pod: Pod, status: dict[str, Any]) -> bool:
        # The uid is immutable. So the server rejects the patch for a pod with another uid (as in pkg/util/pod/pod.go).
        body = msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})
        return await _sent(lambda: self._client.patch(f"{_path(pod)}/status", body)) is not None


def preempted_event(victim: Pod, preemptor: LivePod, node: str, *, host: str, now: datetime) -> dict[str, Any]:
    """Return the Event of a victim, with the fields that kube-scheduler sets. `now` is in UTC.

    `host` is this machine's name. Source: executor.go (PreemptPod) and k8s.io/client-go v0.36 tools/events (makeEvent,
    NewRecorder).
    """
    nanoseconds = (now - _EPOCH) // _MICROSECOND * 1000
    name = f"{victim.name}.{nanoseconds:x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name if len(name) <= _MAX_NAME else str(uuid.uuid4()), "namespace": victim.namespace},
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": preemptor.scheduler_name,
        "reportingInstance": f"{preemptor.scheduler_name}-{host}"[:_MAX_INSTANCE],
        "action": "Preempting",
        "reason": "Preempted",
        "regarding": _reference(victim),
        "related": _reference(preemptor.pod),
        "note": f"Preempted by pod {preemptor.pod.uid} on node {node}",
        "type": "Normal",
    }


def _reference(pod: Pod) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


async def _sent(request: Callable[[], Awaitable[bytes]]) -> bytes | None:
    """Return the response. None if the pod no longer exists. Temporary errors are retried."""
    for pause in (*_PAUSES, None):
        try:
            async with asyncio.timeout(_MAX_LENGTH):
                return await request()
        except StatusError as error:
            if _is_not_found(error):
                return None
            if pause is None or not error.is_temporary:
                raise EvictionError(_told(error)) from None
        except (ApiError, CredentialsError) as error:
            raise EvictionError(str(error)) from None
        except TimeoutError:
            raise EvictionError(f"the API server did not respond within {_MAX_LENGTH:g} s") from None
        await asyncio.sleep(pause)
    return None


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"


def _is_unschedulable(condition: _Condition) -> bool:
    # schedule_one.go, schedulingCycle: the reason is Unschedulable even if PostFilter ends with an error.
    return (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")


def _is_not_found(error: StatusError) -> bool:
    other_uid = error.code == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in error.message
    return error.code in _GONE or other_uid


def _told(error: StatusError) -> str:
    if error.code == HTTPStatus.FORBIDDEN:
        return f"{error}; the RBAC rules that are needed: {'; '.join(RBAC_RULES)}"
    return str(error)
