"""Reads and binds single pods at the API server.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultbinder/default_binder.go for the request, and
pkg/registry/core/pod/storage/storage.go (BindingREST) for the response: 201, or 409. The response is 409 for a pod that
already has a node, even the same one, that is being deleted, or that has another uid. So a second post is harmless.
"""

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError
from app.api_server.credentials import CredentialsError
from app.verbs.binding.binding_args import BindingArgs
from app.verbs.binding.read_rate import ReadRate
from app.verbs.incoming_pod import decode_incoming_pod
from core.objects.pod import Pod

GET_RULE: Final = 'apiGroups: [""], resources: ["pods"], verbs: ["get"]'
"""The rule of a ClusterRole that allows `PodApi.get`, as a line of YAML."""
RBAC_RULES: Final = ('apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]', GET_RULE)
"""The rules of a ClusterRole for `PodApi.bind` and `PodApi.get`, each as one line of YAML."""

_PAUSES: Final = (0.1, 0.4)  # seconds before the second and the third attempt, unless the server asks for more

_Failure: TypeAlias = ApiError | CredentialsError


class BindError(Exception):
    """A binding that the API server has not acknowledged. The message is one line.

    `refused`: the server rejected the binding, and not for a temporary reason. `may_be_done`: the server may have bound
    the pod nevertheless, or had bound it before.
    """

    def __init__(self, text: str, *, refused: bool, may_be_done: bool) -> None:
        super().__init__(text)
        self.refused = refused
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
                    raise BindError(_told(error), refused=_is_refusal(error), may_be_done=may_be_done) from None
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


def _is_refusal(error: _Failure) -> bool:
    return isinstance(error, StatusError) and not error.is_temporary


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


def _told(error: _Failure) -> str:
    if isinstance(error, StatusError) and error.code == HTTPStatus.FORBIDDEN:
        return f"{error}; the RBAC rule that is missing: {RBAC_RULES[0]}"
    return str(error)
