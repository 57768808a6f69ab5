"""A Kindred service in the cluster, reached through the API server with the caller's rights.

A Service with a port `admin` is called through the API server's service proxy. For any other Service, a pod is called
by a port-forward, which also reaches an admin port on the loopback of the pod.
"""

import asyncio
import os
import re
import signal
import ssl
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import httpx

from app.admin.access import CALLER_HEADER
from app.api_server.client import ApiClient, StatusError
from app.commands.admin_client import CannotAskError, trusting
from app.commands.why.cluster import MissingRightsError, Right, needing, user_in
from app.explain.stored_pod import Json, elements, member, read_json
from app.process.logs import one_line
from app.server.auth import TOKEN_HEADER

# While the command runs, every process of this machine can reach the forwarded port, on a random port of the
# loopback.

_FORWARDING: Final = re.compile(rb"Forwarding from 127\.0\.0\.1:([0-9]+) -> ")
_SECONDS: Final = 30.0  # for the connection, and for the response
_NO_HTTP: Final = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)


class NoHttpError(CannotAskError):
    """The port was reached, but its response is not HTTP. Mostly the port expects TLS."""


@asynccontextmanager
async def _forwarding(to: "PodForward", options: Sequence[str]) -> AsyncIterator[tuple[Process, int]]:
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
        raise CannotAskError(f"{to}: {what}, and needed to reach a service without a port admin") from None
    try:
        yield kubectl, await _forwarded_port(to, kubectl)
    finally:
        await _end(kubectl)


async def _forwarded_port(to: "PodForward", kubectl: Process) -> int:
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
    raise CannotAskError(f"{to}: {complaint or f'kubectl did not connect within {_SECONDS:g} s'}")


async def _complaint(kubectl: Process) -> str:
    """End kubectl, and return what it printed to standard error, in one line."""
    return one_line(" ".join((await _end(kubectl)).decode(errors="replace").split()))


async def _end(kubectl: Process) -> bytes:
    with suppress(ProcessLookupError):  # it has ended
        os.killpg(kubectl.pid, signal.SIGTERM)
    _, printed = await kubectl.communicate()
    return printed


NAMESPACE: Final = "kindred"
"""Namespace of the manifests. No other one is searched: a Service of another namespace may belong to a tenant."""
LABEL: Final = "app.kubernetes.io/name=kindred"
ADMIN_PORT: Final = 8890
"""Admin port of the manifests."""
_PORT_NAME: Final = "admin"
_NAME: Final = re.compile(r"(?:(?P<namespace>[^/]+)/)?(?P<name>[^/]+)")

Query = Mapping[str, Sequence[str]]


class NoServiceError(Exception):
    """There is no service to call. The message says why."""


class Caller(NamedTuple):
    """The caller and its credentials."""

    client: ApiClient
    token: str
    """Bearer token of the admin port; empty for none."""
    ca_file: Path | None
    """Authorities of the service's certificate; None: a port-forward does not check it."""
    own_token: str = ""
    """The caller's own token of the API server; empty: the service gets no identity."""
    kubectl_options: tuple[str, ...] = ()
    """The options of kubectl for the same API server and user."""

    @property
    def headers(self) -> dict[str, str]:
        """The contents of a request to the service."""
        of_port = {TOKEN_HEADER: self.token} if self.token else {}
        return {**of_port, CALLER_HEADER: self.own_token} if self.own_token else of_port


class ServiceProxy(NamedTuple):
    """The port `admin` of a Service, through the API server's proxy."""

    namespace: str
    name: str
    tls: bool

    def __str__(self) -> str:
        """Return it for people."""
        return f"service {self.namespace}/{self.name} through the API server's proxy"

    async def post(self, caller: Caller, path: str, query: Query, body: bytes) -> httpx.Response:
        """Return the service's response, with any status.

        Raises MissingRightsError, ApiError and CredentialsError.
        """
        target = f"{'https:' if self.tls else ''}{self.name}:{_PORT_NAME}"
        root = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/services/{target}/proxy"
        async with needing(Right("create", "services/proxy", namespace=self.namespace)):
            try:
                response = await caller.client.post_to_proxy(root + path, query, body, caller.headers)
            except StatusError as error:
                if error.reason:  # the API server's own, such as that no endpoint is ready
                    raise
                return httpx.Response(error.code, content=error.body)
        return httpx.Response(HTTPStatus.OK, content=response)


class PodForward(NamedTuple):
    """The admin port of a pod of a Service, through a port-forward."""

    namespace: str
    pod: str
    port: int
    host: str
    """The name that the certificate of the service is for."""

    def __str__(self) -> str:
        """Return it for people."""
        return f"pod {self.namespace}/{self.pod} by a port-forward to port {self.port}"

    async def post(self, caller: Caller, path: str, query: Query, body: bytes) -> httpx.Response:
        """Return the service's response, by plain HTTP, or by TLS if the port does not speak plain HTTP.

        Raises MissingRightsError, CannotAskError, ApiError and CredentialsError.
        """
        target = f"{path}?{urlencode(query, doseq=True)}"
        tls = None if caller.ca_file is None else _trust(caller.ca_file)
        try:
            return await self._posted(caller, target, body, tls)
        except NoHttpError:
            if tls is not None:
                raise
            return await self._posted(caller, target, body, _trust(None))

    async def _posted(self, caller: Caller, target: str, body: bytes, tls: ssl.SSLContext | None) -> httpx.Response:
        # localhost is the only Host that the admin port accepts without a token.
        sent = {"Host": f"localhost:{self.port}", "Content-Type": "application/json", **caller.headers}
        async with (
            _forwarding(self, caller.kubectl_options) as (kubectl, port),
            httpx.AsyncClient(verify=tls or False, timeout=_SECONDS, trust_env=False) as client,  # False: plain HTTP
        ):
            try:
                url = f"{'http' if tls is None else 'https'}://127.0.0.1:{port}{target}"
                return await client.post(url, content=body, headers=sent, extensions={"sni_hostname": self.host})
            except httpx.TimeoutException:
                raise CannotAskError(f"{self}: no response within {_SECONDS:g} s") from None
            except httpx.TransportError as error:
                complaint = await _complaint(kubectl)
                kind = NoHttpError if not complaint and isinstance(error, _NO_HTTP) else CannotAskError
                raise kind(f"{self}: {complaint or str(error) or type(error).__name__}") from None


Transport = ServiceProxy | PodForward


async def find_service(client: ApiClient, service: str, port: int) -> Transport:
    """Return the way to the service `[NAMESPACE/]NAME`, or to the installed one if `service` is empty.

    `port` is the admin port of its pods. Raises NoServiceError if none is installed, CannotAskError, ApiError,
    MissingRightsError and CredentialsError.
    """
    found = await (_named(client, service) if service else _installed(client))
    namespace, name = str(member(found, "metadata").get("namespace")), _name(found)
    for each in elements(member(found, "spec"), "ports"):
        if each.get("name") == _PORT_NAME:
            return ServiceProxy(namespace, name, each.get("appProtocol") == "https")
    selector = member(found, "spec", "selector")
    if not selector:
        raise CannotAskError(f"service {namespace}/{name}: has neither a port {_PORT_NAME!r} nor a selector")
    return await _forward(client, namespace, name, selector, port)


async def _named(client: ApiClient, service: str) -> Json:
    parts = _NAME.fullmatch(service)
    if parts is None:
        raise CannotAskError(f"--service {service}: expected [NAMESPACE/]NAME")
    namespace, name = parts["namespace"] or NAMESPACE, parts["name"]
    async with needing(Right("get", "services", namespace=namespace)):
        try:
            response = await client.get(f"{_services(namespace)}/{quote(name, safe='')}", {})
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            raise CannotAskError(f"no service {namespace}/{name}; without --service the cluster is listed") from None
    return read_json(response)


async def _installed(client: ApiClient) -> Json:
    try:
        async with needing(Right("list", "services", namespace=NAMESPACE)):
            response = await client.get(_services(NAMESPACE), {"labelSelector": LABEL})
    except MissingRightsError:
        raise NoServiceError(f"this user may not list services in namespace {NAMESPACE}") from None
    found = elements(read_json(response), "items")
    candidates = [each for each in found if _has_admin_port(each) or member(each, "spec", "selector")]
    if not candidates:
        raise NoServiceError(f"no service with the label {LABEL} in namespace {NAMESPACE}")
    return min(candidates, key=lambda each: (not _has_admin_port(each), _name(each)))


def _has_admin_port(service: Json) -> bool:
    return any(port.get("name") == _PORT_NAME for port in elements(member(service, "spec"), "ports"))


def _is_ready(pod: Json) -> bool:
    conditions = elements(member(pod, "status"), "conditions")
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def _name(of: Json) -> str:
    return str(member(of, "metadata").get("name"))


def _services(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/services"


async def _forward(client: ApiClient, namespace: str, name: str, selector: Json, port: int) -> PodForward:
    """Return the way to a pod that the Service selects, ready ones first."""
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    async with needing(Right("list", "pods", namespace=namespace)):
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        response = await client.get(path, {"labelSelector": labels})
    pods = elements(read_json(response), "items")
    running = [pod for pod in pods if member(pod, "status").get("phase") == "Running"]
    if not running:
        raise CannotAskError(f"service {namespace}/{name}: it has no running pod")
    chosen = min(running, key=lambda each: (not _is_ready(each), _name(each)))
    return PodForward(namespace, _name(chosen), port, f"{name}.{namespace}.svc")


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """Return the TLS context for a pod's port. The API server identifies the pod; a CA file verifies it, too."""
    context = trusting(ca_file)
    if ca_file is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
