"""Requests to a port of a pod through `kubectl port-forward`, which also reaches the loopback of the pod.

While the command runs, every process of this machine can reach the forwarded port, on a random port of the loopback.
"""

import asyncio
import os
import re
import signal
import ssl
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import httpx

from app.commands.admin_client import CannotAskError
from app.commands.why.rights import MissingRightsError, Right, user_in
from app.logs import one_line

_FORWARDING: Final = re.compile(rb"Forwarding from 127\.0\.0\.1:([0-9]+) -> ")
_SECONDS: Final = 30.0  # for the connection, and for the response
_NO_HTTP: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class NoHttpError(CannotAskError):
    """The port was reached, but its response is not HTTP. Mostly the port expects TLS."""


class PodPort(NamedTuple):
    """A port of a pod."""

    namespace: str
    pod: str
    port: int


async def post_to_pod(  # noqa: PLR0913, PLR0917  # a port, a request and its TLS
    to: PodPort,
    kubectl_options: Sequence[str],
    target: str,
    body: bytes,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    host: str,
) -> httpx.Response:
    """Send JSON to the port and return its response, with any status. Raises CannotAskError, MissingRightsError.

    With `tls`, the request uses TLS, and the certificate must be for `host`. NoHttpError: the response is not HTTP.
    """
    # localhost is the only Host that the admin port accepts without a token.
    sent = {"Host": f"localhost:{to.port}", "Content-Type": "application/json", **headers}
    async with (
        _forwarding(to, kubectl_options) as (kubectl, port),
        httpx.AsyncClient(verify=tls or False, timeout=_SECONDS, trust_env=False) as client,  # False: for plain HTTP
    ):
        try:
            url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}{target}"
            return await client.post(url, content=body, headers=sent, extensions={"sni_hostname": host})
        except httpx.TimeoutException:
            raise CannotAskError(f"{_where(to)}: no response within {_SECONDS:g} s") from None
        except httpx.TransportError as error:
            complaint = await _complaint(kubectl)
            if not complaint and isinstance(error, _NO_HTTP):
                raise NoHttpError(f"{_where(to)}: {str(error) or type(error).__name__}") from None
            raise CannotAskError(f"{_where(to)}: {complaint or error}") from None


@asynccontextmanager
async def _forwarding(to: PodPort, options: Sequence[str]) -> AsyncIterator[tuple[Process, int]]:
    """Run kubectl, and yield its process and the port of this machine that it forwards."""
    target = (f"--namespace={to.namespace}", f"pod/{to.pod}", f":{to.port}", "--address=127.0.0.1")
    try:
        kubectl = await asyncio.create_subprocess_exec(
            *("kubectl", "port-forward", *options, *target),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,  # kubectl may be a script that runs another one, which has to end, too
        )
    except OSError as error:
        what = "kubectl is not in the PATH" if isinstance(error, FileNotFoundError) else f"kubectl: {error.strerror}"
        raise CannotAskError(f"{_where(to)}: {what}, and needed to reach a service without a port admin") from None
    try:
        yield kubectl, await _forwarded_port(to, kubectl)
    finally:
        await _end(kubectl)


async def _forwarded_port(to: PodPort, kubectl: Process) -> int:
    line = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS):
            if kubectl.stdout is not None:
                line = await kubectl.stdout.readline()
    found = _FORWARDING.match(line)
    if found is not None:
        return int(found[1])
    complaint = await _complaint(kubectl)
    if "forbidden" in complaint.lower():
        # Since 1.35 the API server requires the verb `create`, too (AuthorizePodWebsocketUpgradeCreatePermission).
        of_port = Right("get,create", "pods/portforward", namespace=to.namespace)
        of_pod = Right("get", "pods", namespace=to.namespace)  # kubectl looks at the pod first
        missing = of_port if of_port.resource in complaint else of_pod
        raise MissingRightsError([missing], user_in(complaint))
    raise CannotAskError(f"{_where(to)}: {complaint or f'kubectl did not connect within {_SECONDS:g} s'}")


async def _complaint(kubectl: Process) -> str:
    """End kubectl, and return what it printed to standard error, in one line."""
    return one_line(" ".join((await _end(kubectl)).decode(errors="replace").split()))


async def _end(kubectl: Process) -> bytes:
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(kubectl.pid, signal.SIGTERM)
    _, printed = await kubectl.communicate()
    return printed


def _where(to: PodPort) -> str:
    return f"port-forward to port {to.port} of pod {to.namespace}/{to.pod}"
