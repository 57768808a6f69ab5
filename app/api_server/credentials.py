"""The address of the API server and the credentials for it, found in the usual places and kept fresh.

This module keeps the credentials valid. It reads token and certificate files again every minute, and runs plugins
again before their credentials expire, always in a thread.
"""

import asyncio
import ipaddress
import logging
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from app.api_server.cluster_access import ClusterAccess, checked_proxy, checked_url
from app.api_server.credential_errors import ConfigurationError, CredentialsError
from app.api_server.kubeconfig import read_kubeconfig
from app.api_server.login import FixedLogin, Login, TokenFile
from app.api_server.own_namespace import namespace_of
from app.api_server.pem import PemSource, TlsMaterial
from app.api_server.tls_context import TlsSettings

__all__ = ["ConfigurationError", "Credentials", "CredentialsError", "load_credentials"]

log = logging.getLogger(__name__)

_DEFAULT_FILE: Final = "~/.kube/config"
_REREAD_AFTER: Final = 60.0  # seconds between two reads of the certificate files


class _Fresh(msgspec.Struct, frozen=True):
    """Credentials that were read or issued at one time."""

    login: Login
    material: TlsMaterial | None
    context: ssl.SSLContext | None


class Credentials:
    """Address, TLS and login of one API server. For one event loop at a time."""

    def __init__(self, access: ClusterAccess, proxy: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the configured files. Raises ConfigurationError."""
        self.server = access.server
        """Base URL, without a slash at the end."""
        self.source = access.source
        """The source of the configuration, for people."""
        self.proxy = proxy
        """URL of the proxy to go through, or None."""
        self.namespace = access.namespace
        """The namespace of the context. Empty if it names none."""
        self.generation = 0
        """Changes whenever `tls()` returns another context. Read it after `headers()`."""
        self._access = access
        self._source = access.login
        self._tls = access.tls
        self._clock = clock
        self._renewal: asyncio.Task[None] | None = None
        self._renewal_is_forced = False
        self._login_at = self._files_at = clock()
        login = access.login.configured()
        self._fresh = self._with_tls(login, None)

    def without_login(self) -> "Credentials":
        """Return access to the same API server without a login: no token and no client certificate.

        Raises ConfigurationError.
        """
        tls = None if self._tls is None else msgspec.structs.replace(self._tls, certificate=None, key=None)
        access = msgspec.structs.replace(self._access, tls=tls, login=FixedLogin())
        return Credentials(access, self.proxy, self._clock)

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context for new connections. None for plain HTTP."""
        return self._fresh.context

    async def headers(self, *, refresh: bool = False) -> dict[str, str]:
        """Return the headers of a valid login. With `refresh` the login is renewed regardless of its age.

        Concurrent calls share one refresh. Raises CredentialsError.
        """
        while refresh and self._renewal is not None and not self._renewal_is_forced:
            await asyncio.wait([self._renewal])  # that renewal may not be a forced one
        if self._renewal is None and (refresh or self._is_due()):
            self._start_renewal(forced=refresh)
        if self._renewal is not None:
            await asyncio.shield(self._renewal)  # other calls wait for it, too
        login = self._fresh.login
        return {"Authorization": login.authorization} if login.authorization else {}

    def _is_due(self) -> bool:
        now = self._clock()
        files_are_due = self._tls is not None and self._tls.on_disk and now - self._files_at >= _REREAD_AFTER
        return files_are_due or self._source.is_due(self._fresh.login, now - self._login_at)

    def _start_renewal(self, *, forced: bool) -> None:
        self._renewal_is_forced = forced
        self._renewal = asyncio.create_task(self._renew(forced=forced), name="credentials")
        self._renewal.add_done_callback(self._renewal_over)

    def _renewal_over(self, renewal: asyncio.Task[None]) -> None:
        self._renewal = None
        if not renewal.cancelled():
            renewal.exception()  # waiting callers got the error; without any, the next call tries again

    async def _renew(self, *, forced: bool) -> None:
        now = self._clock()
        login_is_due = forced or self._source.is_due(self._fresh.login, now - self._login_at)
        fresh = await asyncio.to_thread(self._load, login_is_due=login_is_due, forced=forced)
        self._files_at = now
        if login_is_due:
            self._login_at = now
        if fresh.context is not self._fresh.context:
            self.generation += 1
        self._fresh = fresh

    # From here on in a thread, which reads `_fresh` and does not write it.

    def _load(self, *, login_is_due: bool, forced: bool) -> _Fresh:
        login = self._next_login(forced=forced) if login_is_due else self._fresh.login
        try:
            return self._with_tls(login, self._fresh)
        except ConfigurationError as error:
            if forced or login.certificate is not None:
                raise CredentialsError(str(error)) from None
            # For example a new certificate with the old key, between the two writes of a renewal.
            log.warning("%s; keeping the previous version", error)
            return msgspec.structs.replace(self._fresh, login=login)

    def _next_login(self, *, forced: bool) -> Login:
        try:
            return self._source.get()
        except CredentialsError as error:
            if forced or self._fresh.login.renew_at is not None:  # the server rejected it, or it expires soon
                raise
            log.warning("%s; keeping the previous version", error)
            return self._fresh.login

    def _with_tls(self, login: Login, before: _Fresh | None) -> _Fresh:
        if self._tls is None:
            return _Fresh(login, None, None)
        settings = self._tls
        if login.certificate is not None:
            settings = msgspec.structs.replace(settings, certificate=login.certificate, key=login.key)
        material = settings.read()
        if before is not None and material == before.material:
            return _Fresh(login, material, before.context)
        return _Fresh(login, material, settings.context(material))


def load_credentials(
    kubeconfig: str | None,
    context: str | None,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Credentials:
    """Return the credentials for the API server of the first configuration found.

    The order: the given kubeconfig file and context, the files in $KUBECONFIG, the service account of the pod,
    ~/.kube/config. A context without a file belongs to $KUBECONFIG or ~/.kube/config. `clock` measures the age of read
    files, `wall_clock` the expiry of a plugin's credentials. Raises ConfigurationError.
    """
    access = _access(kubeconfig, context, wall_clock)
    return Credentials(access, _proxy(access), clock)


def _access(kubeconfig: str | None, context: str | None, wall_clock: Callable[[], float]) -> ClusterAccess:
    if kubeconfig:
        return read_kubeconfig([_at_home(kubeconfig)], context, wall_clock)
    listed = os.environ.get("KUBECONFIG", "")
    if listed:
        files = [_at_home(file) for file in listed.split(os.pathsep) if file]
        there = [file for file in files if Path(file).exists()]  # kubectl skips missing files, too
        if not there:
            raise ConfigurationError(f"$KUBECONFIG: no such file: {', '.join(files) or listed}")
        return read_kubeconfig(there, context, wall_clock)
    pod = None if context else _service_account()
    if pod is not None:
        return pod
    default = _at_home(_DEFAULT_FILE)
    if Path(default).exists():
        return read_kubeconfig([default], context, wall_clock)
    raise ConfigurationError(_nothing_found(default, context))


def _at_home(file: str) -> str:
    return os.path.expanduser(file)  # noqa: PTH111  # Path.expanduser raises where nobody has a home, as in a container


def _service_account() -> ClusterAccess | None:
    from kubernetes.client import Configuration  # noqa: PLC0415  # big and slow: only where a live cluster is used
    from kubernetes.config import ConfigException, incluster_config  # noqa: PLC0415  # the same

    token, authority = incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME
    if not os.environ.get(incluster_config.SERVICE_HOST_ENV_NAME) or not Path(token).exists():
        return None
    configuration = Configuration()
    loader = incluster_config.InClusterConfigLoader(token, authority)  # type: ignore[no-untyped-call]  # has no annotations
    try:
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]  # has no annotations
    except (ConfigException, OSError, ValueError) as error:
        raise ConfigurationError(f"in-cluster, {Path(token).parent}: {str(error).rstrip('.')}") from None
    return ClusterAccess(
        source="in-cluster",
        server=checked_url("in-cluster: KUBERNETES_SERVICE_HOST and _PORT", configuration.host),
        tls=TlsSettings(authority=PemSource("in-cluster", "certificate authority", file=authority)),
        login=TokenFile(token, "in-cluster"),
        namespace=namespace_of(Path(token).parent / "namespace"),
    )


def _nothing_found(default: str, context: str | None) -> str:
    looked_for = ["no kubeconfig given", "$KUBECONFIG not set"]
    if not context:
        in_pod = os.environ.get("KUBERNETES_SERVICE_HOST")
        looked_for.append("no service account mounted" if in_pod else "not in a pod (KUBERNETES_SERVICE_HOST not set)")
    return f"no cluster is configured: {', '.join(looked_for)}, no file {default}"


def _proxy(access: ClusterAccess) -> str | None:
    """Return the proxy of the configuration, or else of the environment, unless NO_PROXY excludes the host."""
    from kubernetes.client import Configuration  # noqa: PLC0415  # big and slow: only where a live cluster is used
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415  # the same

    configuration = Configuration()  # reads the environment
    configuration.host = access.server
    if access.proxy:
        configuration.proxy = access.proxy
    elif _is_loopback(access.server):
        return None  # as in Go: HTTPS_PROXY does not apply to a cluster on this machine
    proxy = configuration.proxy
    if not proxy or should_bypass_proxies(access.server, configuration.no_proxy or ""):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"  # as in Go
    return checked_proxy(f"{access.source}: proxy of the environment", proxy)


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
