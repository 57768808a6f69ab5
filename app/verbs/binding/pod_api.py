"""Single pods at the API server: read, and bound.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/defaultbinder/default_binder.go for the request, and
pkg/registry/core/pod/storage/storage.go (BindingREST) for the response: 201, or 409. It is 409 for a pod that already
has a node, even the same one, that is being deleted, or that has another uid. So to post it twice does no harm.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError
from app.api_server.credentials import CredentialsError
from app.verbs.binding.binding_args import BindingArgs
from app.verbs.incoming_pod import decode_incoming_pod
from core.objects.pod import Pod

GET_RULE: Final = 'apiGroups: [""], resources: ["pods"], verbs: ["get"]'
"""The rule of a ClusterRole that allows `PodApi.get`, as a line of YAML."""
RBAC_RULES: Final = ('apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]', GET_RULE)
"""The rules of a ClusterRole that allow to bind, each as one line of YAML: for `PodApi.bind`, and for `PodApi.get`."""

_PAUSES: Final = (0.1, 0.4)  # seconds before the second and the third attempt, unless the server asks for longer ones

_Failure: TypeAlias = ApiError | CredentialsError


class BindError(Exception):
    """A binding that the API server has not acknowledged; one line.

    `refused`: the server has said no, other than that it cannot now. `may_be_done`: it can have bound the pod all the
    same, or has bound it before.
    """

    def __init__(self, text: str, *, refused: bool, may_be_done: bool) -> None:
        super().__init__(text)
        self.refused = refused
        self.may_be_done = may_be_done


class PodApi:
    """Reads and binds pods of one cluster."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def get(self, args: BindingArgs) -> Pod | None:
        """Return the pod of that name as it is now, whatever its uid; None if there is none.

        Raises ApiError, CredentialsError, DecodeError.
        """
        try:
            # Without a resourceVersion: a quorum read, which no cache of the server answers with the past.
            body = await self._client.get(_path(args), {})
        except StatusError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                return None
            raise
        return decode_incoming_pod(msgspec.Raw(body))

    async def bind(self, args: BindingArgs, until: float, may_post: Callable[[], bool]) -> None:
        """Bind the pod, if it still has that uid; retry after temporary errors. Raises BindError.

        `until` is on the clock of the event loop: no attempt begins later. To stop it then is up to the caller.
        `may_post` is called right before each attempt is written.
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
            # A 5xx can hide a write that etcd has taken, and a 409 means a pod that has a node.
            return error.code == HTTPStatus.CONFLICT or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        case ConnectionFailedError():
            return not error.unsent
    return isinstance(error, ApiError)


def _wait(error: _Failure, pause: float | None) -> float | None:
    """Return the seconds to wait for another attempt; None: there is none."""
    if pause is None or not isinstance(error, StatusError) or not error.is_temporary:
        return None
    return max(pause, error.retry_after or 0.0)


def _told(error: _Failure) -> str:
    if isinstance(error, StatusError) and error.code == HTTPStatus.FORBIDDEN:
        return f"{error}; the RBAC rule that is missing: {RBAC_RULES[0]}"
    return str(error)
