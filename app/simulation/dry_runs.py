"""The pods that owners would make now, as the API server makes them: created with `dryRun=All`, which stores nothing.

What mutating webhooks and policies, LimitRanges, priority classes and defaults add is then the API server's own. Of a
webhook that may have side effects, the API server rejects the request instead.

Source: k8s.io/apiserver v1.36 pkg/endpoints/handlers/responsewriters/errors.go (forbiddenMessage),
pkg/admission/plugin/resourcequota/controller.go (checkRequest), pkg/admission/plugin/webhook/errors/statuserror.go
(NewDryRunUnsupportedErr).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from app.api_server.client import ApiClient, StatusError
from app.explain.stored_pod import Json, member
from app.simulation.comes_again import Created

MOST: Final = 1_000
"""Requests of one question."""
_AT_ONCE: Final = 16
_NO_RIGHT: Final = 'cannot create resource "pods"'
_EXCEEDED: Final = "exceeded quota"
_NOT_JUDGED: Final = ("does not support dry run", "status unknown for quota")
_NOT_OF_THE_POD: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND)
"""A login that has ended, and a namespace that is gone."""


class DryRuns:
    """Sends the pods of one question to an API server, some at once, from code without an event loop."""

    def __init__(self, connect: Callable[[], Awaitable[ApiClient]]) -> None:
        """`connect` is called before the first request."""
        self._connect = connect
        self._runner = asyncio.Runner()
        self._client: ApiClient | None = None
        self._left = MOST
        self._forbidden: set[str] = set()  # namespaces

    def create_all(self, pods: Sequence[Json]) -> Sequence[Created]:
        """Return what the API server says of each pod. Raises ApiError, CredentialsError, ConfigurationError."""
        return self._runner.run(self._create_all(pods))

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._runner.run(self._client.close())
        self._runner.close()

    async def _create_all(self, pods: Sequence[Json]) -> Sequence[Created]:
        if self._client is None:
            self._client = await self._connect()
        client, turn = self._client, asyncio.Semaphore(_AT_ONCE)

        async def in_turn(pod: Json) -> Created:
            async with turn:
                return await self._created(client, pod)

        found: list[Created] = []
        for at in range(0, len(pods), MOST):
            found += await asyncio.gather(*map(in_turn, pods[at : at + MOST]))
        return found

    async def _created(self, client: ApiClient, pod: Json) -> Created:
        namespace = str(member(pod, "metadata").get("namespace"))
        no_right = Created(unknown=f"pods may not be created in namespace {namespace}")
        if namespace in self._forbidden:
            return no_right
        if not self._left:
            return Created(unknown=f"the API server is asked for {MOST:,} pods at most")
        self._left -= 1
        path = f"/api/v1/namespaces/{namespace}/pods"
        try:
            return Created(await client.post_dry_run(path, _without_name(pod)))
        except StatusError as error:
            if error.code == HTTPStatus.FORBIDDEN and _NO_RIGHT in error.message:
                self._forbidden.add(namespace)
                return no_right
            return _created(error)


def _created(error: StatusError) -> Created:
    if error.code == HTTPStatus.FORBIDDEN and _EXCEEDED in error.message:
        return Created(unknown="for a quota, the present pod counts beside the new one")
    not_judged = error.code in _NOT_OF_THE_POD or any(each in error.message for each in _NOT_JUDGED)
    if error.is_temporary or not_judged:
        return Created(unknown=error.message or str(error))
    return Created(denied=error.message or str(error))


def _without_name(pod: Json) -> bytes:
    """Return the request. A replica of a StatefulSet has the name of a pod that is still there, so it has none here."""
    metadata = {name: value for name, value in member(pod, "metadata").items() if name != "name"}
    named = {**metadata, "generateName": f"{member(pod, 'metadata').get('name')}-"}
    return msgspec.json.encode({"apiVersion": "v1", **pod, "metadata": named})
