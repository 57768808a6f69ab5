"""Pods as the API server has them: reads and bindings of single pods, and the pod of a request.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultbinder/default_binder.go for the request, and
pkg/registry/core/pod/storage/storage.go (BindingREST) for the response: 201, or 409. The response is 409 for a pod that
already has a node, even the same one, that is being deleted, or that has another uid. So a second post is harmless.
"""

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError
from app.api_server.credentials import CredentialsError
from app.objects.decode import Body, DecodeError, GoStruct, decoding
from app.objects.resources import decode_identity
from app.process.logs import one_line
from app.verbs.wire_in import decode_incoming_pod
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, decides_alike

# The wire of `bind`: ExtenderBindingArgs in, ExtenderBindingResult out.
#
# Source: k8s.io/kube-scheduler extender/v1/types.go. Go reads keys in any case.

_ARGS: Final = GoStruct("ExtenderBindingArgs", "PodName", "PodNamespace", "PodUID", "Node")
_MAX_BYTES: Final = 64 * 1024  # four names fit, while a body of a million keys would take a gigabyte when decoded
_MAX_NAME_LENGTH: Final = 253
# RFC 1123, as the API server checks it. An invalid name must not become part of a URL path.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_text_decoder: Final = msgspec.json.Decoder(str | None)


class BindingArgs(msgspec.Struct, frozen=True, gc=False):
    """The pod of a binding, and its node."""

    namespace: str
    name: str
    uid: str
    node: str

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME of the pod."""
        return f"{self.namespace}/{self.name}"


def decode_binding_args(body: Body) -> BindingArgs:
    """Decode ExtenderBindingArgs with keys in any case. Raises DecodeError that names the field."""
    if len(body) > _MAX_BYTES:
        raise DecodeError("body", f"larger than {_MAX_BYTES} bytes")
    fields: dict[str, str | None] = {}
    for name, raw in _ARGS.decode(body).items():
        try:
            fields[name] = decoding(_text_decoder.decode, raw)
        except DecodeError as error:
            raise error.under(name) from None
    return BindingArgs(
        _checked_name("PodNamespace", fields),
        _checked_name("PodName", fields),
        _required("PodUID", fields),
        _required("Node", fields),
    )


def is_name(text: str) -> bool:
    """Return whether an object of the API server can have a name."""
    return len(text) <= _MAX_NAME_LENGTH and _NAME.fullmatch(text) is not None


def binding_result(error: str = "") -> bytes:
    """Return an ExtenderBindingResult. With an error, on one line, the scheduler drops the binding and tries again."""
    return b'{"Error":' + msgspec.json.encode(one_line(error)) + b"}"


def _required(field: str, fields: dict[str, str | None]) -> str:
    text = fields.get(field)
    if not text:
        raise DecodeError(field, "required")
    return text


def _checked_name(field: str, fields: dict[str, str | None]) -> str:
    name = _required(field, fields)
    if not is_name(name):
        raise DecodeError(field, f"{name!r} is not a valid object name")
    return name


# A request may name a pod that does not exist. Without a limit, each such request would be a GET of the API server,
# which serves others, too.

READS_A_SECOND: Final = 100
"""A kube-scheduler sends one `filter` after the other. A late watch costs each of them 30 ms, so 33 reads a second."""
READS_OF_A_NAME: Final = 5
"""Reads of one name a second. An attempt reads a pod twice at most, and the next one begins a second later."""
_SECOND: Final = 1.0
_ROUNDING: Final = 1e-6  # seconds; the times are sums of fractions
_MAX_NAMES: Final = 4096


class TooManyReadsError(ApiError):
    """The pod was not read, because too many were."""


class ReadRate:
    """Turns for reads. Both limits are over a window of a second that moves on with each read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds."""
        self._clock = clock
        self._next = 0.0  # time at which the rate is used up to that moment
        self._of_name: OrderedDict[str, float] = OrderedDict()  # the same for each name, the oldest first

    async def turn(self, name: str) -> None:
        """Return when a pod may be read, within a second. Raises TooManyReadsError if that is later."""
        now = self._clock()
        of_name = max(self._of_name.get(name, 0.0), now) + _SECOND / READS_OF_A_NAME
        if of_name > now + _SECOND + _ROUNDING:
            raise TooManyReadsError(f"more than {READS_OF_A_NAME} reads of pod {name} a second")
        at = max(self._next, now) + _SECOND / READS_A_SECOND
        wait = at - now - _SECOND  # the reads of a second may come at once
        if wait > _SECOND + _ROUNDING:
            raise TooManyReadsError(f"more than {READS_A_SECOND} reads of pods a second")
        self._next = at
        self._of_name[name] = of_name
        self._of_name.move_to_end(name)
        if len(self._of_name) > _MAX_NAMES:
            self._of_name.popitem(last=False)
        if wait > _ROUNDING:
            await asyncio.sleep(wait)


GET_RULE: Final = 'apiGroups: [""], resources: ["pods"], verbs: ["get"]'
"""The rule of a ClusterRole that allows `PodApi.get`, as a line of YAML."""
RBAC_RULES: Final = ('apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]', GET_RULE)
"""The rules of a ClusterRole for `PodApi.bind` and `PodApi.get`, each as one line of YAML."""

_PAUSES: Final = (0.1, 0.4)  # seconds before the second and the third attempt, unless the server asks for more

_Failure: TypeAlias = ApiError | CredentialsError


class BindError(Exception):
    """A binding that the API server has not acknowledged. The message is one line.

    `rejected`: the server rejected the binding, and not for a temporary reason. `may_be_done`: the server may have
    bound the pod nevertheless, or had bound it before.
    """

    def __init__(self, text: str, *, rejected: bool, may_be_done: bool) -> None:
        super().__init__(text)
        self.rejected = rejected
        self.may_be_done = may_be_done


class PodApi:
    """Reads and binds pods of one cluster."""

    def __init__(self, client: ApiClient, clock: Callable[[], float] = time.monotonic) -> None:
        """Limit the reads by `clock`, in seconds."""
        self._client = client
        self._reads = ReadRate(clock)

    async def get(self, args: BindingArgs, *, limited: bool = True) -> Pod | None:
        """Return the present pod of that name, with any uid. None if there is none.

        Reads that requests cause are `limited`, see ReadRate. Raises ApiError, CredentialsError, DecodeError.
        """
        if limited:
            await self._reads.turn(args.full_name)
        try:
            # Without a resourceVersion the server does a quorum read. Its watch cache could return an old state.
            body = await self._client.get(_path(args), {})
        except StatusError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return decode_incoming_pod(msgspec.Raw(body))

    async def bind(self, args: BindingArgs, until: float, may_post: Callable[[], bool]) -> None:
        """Bind the pod, if it still has that uid. Retries after temporary errors. Raises BindError.

        `until` is a time of the event loop's clock. No attempt begins later, but the caller must cancel a running one.
        `may_post` is called right before each attempt is sent.
        """
        body = _binding(args)
        may_be_done = False
        for pause in (*_PAUSES, None):
            try:
                await self._client.post(f"{_path(args)}/binding", body, may_post)
            except (ApiError, CredentialsError) as error:
                may_be_done = may_be_done or _may_be_done(error)
                wait = _wait(error, pause)
                if wait is None or asyncio.get_running_loop().time() + wait >= until:
                    rejected = isinstance(error, StatusError) and not error.is_temporary
                    raise BindError(_message(error), rejected=rejected, may_be_done=may_be_done) from None
                await asyncio.sleep(wait)
            else:
                return


def _path(args: BindingArgs) -> str:
    return f"/api/v1/namespaces/{args.namespace}/pods/{args.name}"


def _binding(args: BindingArgs) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": args.name, "namespace": args.namespace, "uid": args.uid},
            "target": {"kind": "Node", "name": args.node},
        }
    )


def _may_be_done(error: _Failure) -> bool:
    match error:
        case StatusError():
            # etcd may have committed the write behind a 5xx, and a 409 may mean that the pod has a node.
            return error.code == HTTPStatus.CONFLICT or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        case ConnectionFailedError():
            return not error.unsent
    return isinstance(error, ApiError)


def _wait(error: _Failure, pause: float | None) -> float | None:
    """Return the seconds before the next attempt. None: there is no further attempt."""
    if pause is None or not isinstance(error, StatusError) or not error.is_temporary:
        return None
    return max(pause, error.retry_after or 0.0)


def _message(error: _Failure) -> str:
    if isinstance(error, StatusError) and error.code == HTTPStatus.FORBIDDEN:
        return f"{error}; the RBAC rule that is missing: {RBAC_RULES[0]}"
    return str(error)


# The pod of a request as the API server has it: from the watch, or from a GET if the watch is late.
#
# A request's own copy of a pod causes no effect. Its sender may be wrong, late or an intruder, and an equal
# resourceVersion proves nothing. So assumptions, bindings, preemptions and evictions are for the pod that this module
# returns. It has the namespace, the name and the uid of the request, and the server's spec.
#
# The request's copy only shows whether the watch is late. If its resourceVersion differs from the watch, and a field
# that decides differs, the caller waits for the watch. After that, a GET shows whether the watch or the request is
# old. The bytes cannot be compared: kube-scheduler's informer drops managedFields (pkg/scheduler/scheduler.go, trim).

_PATIENCE: Final = 2.0  # seconds, below kube-scheduler's httpTimeout
_LASTS: Final = 30.0  # seconds for which it is kept that a pod is not pending: no later state of that uid is
_AT_ONCE: Final = 0.1  # seconds for which a pending pod is kept: for the evaluation right after its GET
_MAX_PODS: Final = 4096


class LookupState(Enum):
    """The state of a pod at the API server."""

    PENDING = "pending"
    """The API server has the pod, without a node. A decision for the pod is valid."""
    SETTLED = "settled"
    """The API server lacks the pod, or the pod has a node or has ended. There is nothing to decide."""
    UNKNOWN = "unknown"
    """The API server must be asked, because the watch may be late."""


class Found(NamedTuple):
    """The standing of a pod, and the pod as the API server has it if it is pending."""

    state: LookupState
    pod: Pod | None = None


_SETTLED: Final = Found(LookupState.SETTLED)
_UNKNOWN: Final = Found(LookupState.UNKNOWN)


class _Lookup(NamedTuple):
    found: Found
    until: float


class PodLookup:
    """Pods from the watch or from recent responses of the API server."""

    def __init__(self, mirror: ClusterMirror, pods: PodApi | None, clock: Callable[[], float]) -> None:
        """`pods` reads and binds pods. It is None for a mirror without a cluster, where no pod is pending."""
        self._mirror = mirror
        self.pods: Final = pods
        self._clock = clock
        self._lookups: OrderedDict[tuple[str, str], _Lookup] = OrderedDict()  # (NAMESPACE/NAME, uid) -> response
        self._compared: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """uid -> resourceVersions of the watch and of a request that is old, as a GET has shown"""

    def of(self, sent: Pod) -> Found:
        """Return the pod of a request and its standing. UNKNOWN until the watch or `ask` has shown the pod.

        Of a pod that was decided for, or whose binding has ended without a known result, the watch may be late: `ask`
        shows whether it is bound.
        A pod that a GET has shown is returned once, and only right after the GET. Later the pod may be changed or
        deleted, and the watch may have shown that.
        """
        watched = self._mirror.pending.get(sent.uid)
        if sent is watched and self.pods is not None and not self._mirror.is_doubtful(sent.uid):
            return Found(LookupState.PENDING, sent)  # `from_watch` has returned it
        if self.pods is None or not sent.resource_version or not (is_name(sent.namespace) and is_name(sent.name)):
            return _SETTLED  # no API server has such a pod, and an invalid name must not get into a URL path
        return self.named(sent.full_name, sent.uid, sent)

    def from_watch(self, raw: bytes | msgspec.Raw, identity: tuple[str, str, str] | None = None) -> Pod | None:
        """Return the pending pod of the watch, if a request has it in the same version. Else None.

        The request's copy decides nothing then, so only its `identity` is decoded. That saves 15 us.
        """
        try:
            full_name, uid, version = identity or decode_identity(raw)
        except DecodeError:
            return None  # decoding the whole pod reports the field
        pod = self._mirror.pending.get(uid) if self.pods is not None and version else None
        same = pod is not None and pod.resource_version == version and pod.full_name == full_name
        return pod if same else None

    def named(self, full_name: str, uid: str, sent: Pod | None) -> Found:
        """Return a pod by its name and uid, and its standing. `asked` is the copy in a request, if there was one."""
        watched = self._mirror.pending.get(uid)
        if watched is not None:
            if watched.full_name != full_name:
                return _SETTLED
            if not self._mirror.is_doubtful(uid) and (sent is None or self._is_current(watched, sent)):
                return Found(LookupState.PENDING, watched)
        elif self._mirror.is_mirrored(uid) and not self._mirror.is_assumed(uid):
            return _SETTLED
        lookup = self._lookups.get((full_name, uid))
        if lookup is None or self._clock() >= lookup.until:
            return _UNKNOWN
        if lookup.found.state is LookupState.PENDING:
            del self._lookups[full_name, uid]
        return lookup.found

    async def wait(self, sent: Pod, seconds: float) -> None:
        """Return when the watch shows another state of the pod without a node, at the latest after `seconds`.

        Mostly the watches of the scheduler and of Kindred show a new pod within the same millisecond. With a fixed
        sleep instead, at most 100 pods a second were scheduled while they were created.
        """
        known = self._mirror.pending.get(sent.uid)
        if known is not None and self._is_current(known, sent):  # shown after the first look, before this task ran
            return
        watched = asyncio.Event()
        with self._mirror.pending.expecting(sent.uid, watched.set), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await watched.wait()

    async def ask(self, sent: Pod) -> str:
        """Read the pod of a request, so that `of` knows it. Return the error in one line, or an empty text."""
        try:
            async with asyncio.timeout(_PATIENCE):
                live = await self.read(BindingArgs(sent.namespace, sent.name, sent.uid, ""))
        except TimeoutError:
            return f"the API server did not respond within {_PATIENCE:g} s"
        except (ApiError, CredentialsError, DecodeError) as error:
            return str(error)
        if live is not None and _is_pending(live, sent.uid):
            self._keep(sent.full_name, sent.uid, Found(LookupState.PENDING, self._mirror.counted(live)), _AT_ONCE)
            watched = self._mirror.pending.get(sent.uid)
            if watched is not None and watched.resource_version == live.resource_version:  # the request is old or wrong
                self._compared[sent.uid] = watched.resource_version, sent.resource_version
                _drop_oldest(self._compared)
        return ""

    async def read(self, args: BindingArgs) -> Pod | None:
        """Return the present pod of a name, with any uid. None if there is none. That it is not pending is kept.

        A bound pod counts on its node from then on. Raises ApiError, CredentialsError, DecodeError.
        """
        if self.pods is None:
            return None
        live = await self.pods.get(args)
        if live is None or not _is_pending(live, args.uid):
            self._keep(args.full_name, args.uid, _SETTLED, _LASTS)
            if live is not None and live.uid == args.uid:
                self.remember(live)
        return live

    def remember(self, live: Pod) -> None:
        """Assume a bound pod on its node, until the watch shows it there."""
        known = self._mirror.get_pod(live.uid)
        if not live.node_name or live.terminal or (known is not None and not self._mirror.is_assumed(live.uid)):
            return
        if live.uid in self._mirror.groups.key_of:  # a place that its gang has reserved for it is its own now
            self._mirror.groups.see(live, deleted=False)
        if known is not None:
            if known.node_name == live.node_name:
                return
            self._mirror.release(live.uid)
        self._mirror.assume(live, live.node_name, self._clock())
        self._mirror.finish_binding(live.uid, self._clock())

    def _keep(self, full_name: str, uid: str, found: Found, seconds: float) -> None:
        self._lookups.pop((full_name, uid), None)
        self._lookups[full_name, uid] = _Lookup(found, self._clock() + seconds)
        _drop_oldest(self._lookups)

    def _is_current(self, watched: Pod, sent: Pod) -> bool:
        """Return whether the watch agrees with the request, or the server has confirmed that the watch is not late.

        The usual case is an equal resourceVersion, which costs no comparison.
        """
        versions = watched.resource_version, sent.resource_version
        if versions[0] == versions[1] or decides_alike(watched, self._mirror.counted(sent)):
            return True
        return self._compared.get(watched.uid) == versions


def _is_pending(live: Pod, uid: str) -> bool:
    return live.uid == uid and not live.node_name and not live.terminal


def _drop_oldest(entries: OrderedDict[Any, Any]) -> None:
    if len(entries) > _MAX_PODS:
        entries.popitem(last=False)
