"""Carries out a plan of preemption: the writes to the API server, their order, and the effect of a failure.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go (prepareCandidate, PreemptPod).

    nominate the node        first. It reserves the capacity. If it fails, no pod is evicted
    evict the victims        one after the other: each is marked, and then deleted. The first failure ends the
                             preemption, so that no further pod is evicted. So does a node that the pod gets meanwhile,
                             or its deletion
    clear lower nominations  of pods with lower priority that are nominated for the node and may no longer fit there.
                             kube-scheduler then retries them sooner, and they may preempt elsewhere. Not of assumed
                             pods, which upstream's nominator does not have either (schedule_one.go, assume)
    write Events             one for each victim

The last two steps are best effort: a failure is logged, and the preemption still counts as a success.
"""

import asyncio
import logging
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.objects.decode import DecodeError
from app.process.logs import one_line
from app.verbs.pods import ReadRate, TooManyReadsError
from app.verbs.wire_in import decode_incoming_pod
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import UNSEEN
from core.objects.pod import Pod

log = logging.getLogger(__name__)

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


class EvictionApi:
    """Reads, nominates and evicts pods of one cluster. All methods raise EvictionError.

    Upstream's writes have only the pod's name. Here each write also has the uid, so that it cannot affect a newer pod
    with the same name.
    """

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Limit the reads by `clock`, in seconds."""
        self._client = client
        self._reads = ReadRate(clock)

    async def read(self, pod: Pod) -> Pod | None:
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
            return decode_incoming_pod(msgspec.Raw(body))
        except DecodeError as error:
            raise EvictionError(f"pod {pod.full_name} cannot be read: {error}") from None

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

    async def evict(self, victim: Pod, scheduler_name: str, needed: Callable[[], bool] = lambda: True) -> bool:
        """Mark a pod as preempted and delete it. Return False if it no longer existed, which is a success, too.

        The mark may take seconds, so `needed` is called after it. If it returns False, the pod is not deleted.
        """
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if not await self._patch_status(victim, {"conditions": [condition]}) or not needed():
            return False
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": victim.uid}}
        return await _sent(lambda: self._client.delete(_path(victim), msgspec.json.encode(options))) is not None

    async def _patch_status(self, pod: Pod, status: dict[str, Any]) -> bool:
        # The uid is immutable. So the server rejects the patch for a pod with another uid (as in pkg/util/pod/pod.go).
        body = msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})
        return await _sent(lambda: self._client.patch(f"{_path(pod)}/status", body)) is not None


def preempted_event(victim: Pod, preemptor: Pod, node: str, *, host: str, now: datetime) -> dict[str, Any]:
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
        "related": _reference(preemptor),
        "note": f"Preempted by pod {preemptor.uid} on node {node}",
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
                raise EvictionError(_error_text(error)) from None
        except (ApiError, CredentialsError) as error:
            raise EvictionError(str(error)) from None
        except TimeoutError:
            raise EvictionError(f"the API server did not respond within {_MAX_LENGTH:g} s") from None
        await asyncio.sleep(pause)
    return None


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"


def _is_not_found(error: StatusError) -> bool:
    other_uid = error.code == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in error.message
    return error.code in _GONE or other_uid


def _error_text(error: StatusError) -> str:
    if error.code == HTTPStatus.FORBIDDEN:
        return f"{error}; the RBAC rules that are needed: {'; '.join(RBAC_RULES)}"
    return str(error)


class EvictionResult(Enum):
    """The result for a pod without a node. Also the values of the metric's label."""

    PREEMPTED = "preempted"
    """The victims were deleted, and the node is nominated."""
    FITS = "fits"
    """The pod now fits on one of the nodes, or has got one."""
    WAITS = "waits"
    """The pod waits for victims, of its own or another preemption, that still terminate."""
    NEVER = "never"
    """The pod's preemptionPolicy is Never."""
    NO_CANDIDATE = "no_candidate"
    """On no node would victims of lower priority help."""
    NOMINATED = "nominated"
    """kube-scheduler has meanwhile found victims for the pod."""
    SETTLED = "settled"
    """The pod is bound or terminating, or does not exist, such as the pod of a simulator."""
    NOT_GIVEN_UP = "not_given_up"
    """kube-scheduler has not reported the pod as unschedulable."""
    STALE = "stale"
    """The mirror is stale."""
    FAILED = "failed"
    """The API server rejected a request, or was unreachable."""
    DROPPED = "dropped"
    """Too many pods were waiting for their turn."""


class EvictionOutcome(NamedTuple):
    """The result of a turn, and the number of evicted pods."""

    result: EvictionResult
    evicted: int = 0


class Plan(msgspec.Struct, frozen=True, gc=False):
    """The node to nominate, and the pods to evict there, the most important first."""

    node: str
    victims: Sequence[Pod]


class Preemption(NamedTuple):
    """The preemption for a pod, and the time until which the watch may lag behind it."""

    node: str
    victims: tuple[str, ...]
    """The uids of the victims."""
    until: float


class Preemptions:
    """uid of a preemptor -> its preemption. The evictor adds entries, and `filter` looks pods up."""

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float]) -> None:
        """`mirror` shows whether victims still exist. `clock` returns seconds."""
        self._mirror = mirror
        self._clock = clock
        self._preemptions: dict[str, Preemption] = {}
        self._last = ""  # uid of the last or present preemptor

    def begin(self, uid: str) -> None:
        """Record that a preemption for a pod begins."""
        self._last = uid

    def add(self, uid: str, node: str, victims: Sequence[str]) -> None:
        """Record the nominated node of a pod, and the victims there, evicted or already terminating."""
        now = self._clock()
        self._preemptions[uid] = Preemption(node, tuple(victims), now + UNSEEN)
        self._mirror.preemptors.evicted(uid, node, victims, now)

    def forget(self, uid: str) -> None:
        """Remove the preemption for a pod that no longer gets the node."""
        self._preemptions.pop(uid, None)
        self._mirror.preemptors.forget(uid)

    def includes(self, uid: str) -> bool:
        """Return whether a preemption for a pod is in progress or recent."""
        return uid == self._last or uid in self._preemptions

    def node_for(self, uid: str) -> str:
        """Return the nominated node of a pod. Empty without a recent preemption for it."""
        known = self._preemptions.get(uid)
        return known.node if known is not None else ""

    def lost_nomination(self, uid: str) -> str:
        """Return the node of a preemption if the watch shows the pod without a nomination. Else an empty text."""
        pending = self._mirror.pending.get(uid)
        return self.node_for(uid) if pending is not None and not pending.nominated_node_name else ""

    def going(self) -> Mapping[str, Preemption]:
        """Return the preemptions with victims that still exist, and drop old ones."""
        now = self._clock()
        going = {uid: each for uid, each in self._preemptions.items() if self._is_going(each, now)}
        self._preemptions = {uid: each for uid, each in self._preemptions.items() if uid in going or now < each.until}
        return going

    def _is_going(self, preemption: Preemption, now: float) -> bool:
        victims = [pod for uid in preemption.victims if (pod := self._mirror.get_pod(uid)) is not None]
        return any(pod.terminating or now < preemption.until for pod in victims)


class Executor:
    """Writes a plan to the API server. Raises EvictionError if the nomination fails. Then no pod was evicted."""

    def __init__(
        self,
        api: EvictionApi,
        preemptions: Preemptions,
        mirror: ClusterMirror,
        may_evict: Callable[[], bool],
        release: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Record preemptions in `preemptions`. `mirror` has the nominated pods. Evict only while `may_evict`.

        `release` ends the reservation of a gang for a pod, by its uid, and returns whether there was one. Such a victim
        is not deleted, as no waiting pod is upstream: nothing binds it.
        """
        self.api = api
        self.may_evict = may_evict
        self._preemptions = preemptions
        self._mirror = mirror
        self._release = release
        self._host = socket.gethostname()

    async def carry_out(self, pod: Pod, plan: Plan) -> EvictionOutcome:
        """Do the four steps of the module's docstring."""
        self._preemptions.begin(pod.uid)
        was_pending = pod.uid in self._mirror.pending
        if not await self.api.nominate(pod, plan.node) or self._mirror.is_mirrored(pod.uid):
            return EvictionOutcome(EvictionResult.SETTLED)
        deleted: list[Pod] = []
        going: list[str] = []
        evicted = 0
        result = EvictionResult.PREEMPTED
        try:
            for victim in plan.victims:
                needed = partial(self._is_needed, pod, victim, plan.node, was_pending=was_pending)
                if not needed() or self._release(victim.uid):
                    continue
                if not victim.terminating:
                    if await self.api.evict(victim, pod.scheduler_name, needed):
                        deleted.append(victim)
                    evicted += 1
                going.append(victim.uid)
        except EvictionError as error:
            log.warning("preemption: %s: %s", pod.full_name, one_line(str(error)))
            result = EvictionResult.FAILED
        self._preemptions.add(pod.uid, plan.node, going)
        log.info("preemption: %s", _message(pod, plan, evicted))
        if result is EvictionResult.PREEMPTED:
            await self._clear_lower_nominations(pod, plan.node)
        await self._write_events(pod, plan.node, deleted)
        return EvictionOutcome(result, evicted)

    async def nominate_again(self, pod: Pod, node: str) -> None:
        """Nominate a pod that lost its nomination while its victims terminate. Raises EvictionError."""
        await self.api.nominate(pod, node)
        log.info("preemption: %s is nominated for %s again", one_line(pod.full_name), one_line(node))

    def _is_needed(self, preemptor: Pod, victim: Pod, node: str, *, was_pending: bool) -> bool:
        """Return whether a victim still holds a place on the node. Raises EvictionError if none may be evicted.

        `was_pending`: the watch has shown the preemptor, so that it shows its deletion, too.
        """
        if not victim.terminating:
            pending = self._mirror.pending.get(preemptor.uid)
            if not self.may_evict():
                raise EvictionError("the mirror is stale, or this replica no longer leads")
            # Its scheduler tries it again at any time, and its owner may delete it.
            is_deleted = was_pending if pending is None else pending.terminating
            if is_deleted or self._mirror.is_mirrored(preemptor.uid):
                raise EvictionError("it has a node by now, or was deleted")
        at = self._mirror.get_pod(victim.uid)
        return at is not None and at.node_name == node

    async def _clear_lower_nominations(self, preemptor: Pod, node: str) -> None:
        nominated = self._mirror.pending.nominated_for(node).values()
        for pod in [each for each in nominated if each.priority < preemptor.priority]:
            if self._mirror.is_mirrored(pod.uid):  # its binding waits, and another leader finds its place by that
                continue
            self._preemptions.forget(pod.uid)  # else the evictor would nominate it again
            try:
                await self.api.clear_nomination(pod)
            except EvictionError as error:
                message = one_line(f"{pod.full_name} stays nominated for {node}: {error}")
                log.warning("preemption: %s: %s", one_line(preemptor.full_name), message)

    async def _write_events(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Write an Event for each victim. The first failure ends the loop, because a failure may take seconds."""
        for number, victim in enumerate(victims):
            event = preempted_event(victim, preemptor, node, host=self._host, now=datetime.now(UTC))
            try:
                await self.api.create_event(victim.namespace, event)
            except EvictionError as error:
                message = one_line(f"{len(victims) - number} of {len(victims)} Events were not written: {error}")
                log.warning("preemption: %s: %s", one_line(preemptor.full_name), message)
                return


def _message(pod: Pod, plan: Plan, evicted: int) -> str:
    victims = ", ".join(f"{each.full_name} (priority {each.priority})" for each in plan.victims)
    return one_line(f"{pod.full_name} (priority {pod.priority}) is to get {plan.node}; evicted {evicted} of {victims}")
