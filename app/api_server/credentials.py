"""The address of the API server and the credentials for it, found in the usual places and kept fresh.

This module keeps the credentials valid. It reads the configuration and its files again every minute, and runs plugins
again before their credentials expire, always in a thread.
"""

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from app.api_server.login import current_context, in_cluster, read_kubeconfig
from app.api_server.tls import ClusterAccess, ConfigurationError, CredentialsError, TlsMaterial

__all__ = ["ConfigurationError", "Credentials", "CredentialsError", "load_credentials"]

log = logging.getLogger(__name__)

_DEFAULT_FILE: Final = "~/.kube/config"
_REREAD_AFTER: Final = 60.0
"""Seconds; client-go NewCachedFileTokenSource: well below the validity of a token after its rotation."""


class _Fresh(msgspec.Struct, frozen=True):
    """Credentials that were read or issued at one time."""

    access: ClusterAccess
    material: TlsMaterial | None
    context: ssl.SSLContext | None


class Credentials:
    """Address, TLS and login of one API server, see ClusterAccess. For one event loop at a time."""

    def __init__(
        self,
        access: ClusterAccess,
        read: Callable[[], ClusterAccess] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the configured certificates. Raises ConfigurationError.

        `read` reads the configuration again, in a thread. None: the login never changes. `clock` measures the age of
        what was read, `wall_clock` the expiry of a login.
        """
        self.server = access.server
        self.source = access.source
        self.proxy = access.proxy
        self.namespace = access.namespace
        self.server_name = "" if access.tls is None else access.tls.server_name
        self.generation = 0
        """Changes whenever `tls()` returns another context. Read it after `headers()`."""
        self._read = read
        self._clock = clock
        self._wall_clock = wall_clock
        self._renewal: asyncio.Task[None] | None = None
        self._renewal_is_forced = False
        self._read_at = clock()
        self._fresh = _with_tls(access, None)

    def without_login(self) -> "Credentials":
        """Return access to the same API server without a login: no token and no client certificate.

        Raises ConfigurationError.
        """
        access = self._fresh.access
        tls = None if access.tls is None else msgspec.structs.replace(access.tls, certificate=None, key=None)
        nobody = msgspec.structs.replace(access, tls=tls, authorization="", renew_at=None)
        return Credentials(nobody, None, self._clock, self._wall_clock)

    def again(self) -> "Credentials":
        """Return the same credentials for another event loop, such as one of a forked child.

        Raises ConfigurationError.
        """
        return Credentials(self._fresh.access, self._read, self._clock, self._wall_clock)

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
        authorization = self._fresh.access.authorization
        return {"Authorization": authorization} if authorization else {}

    def _is_due(self) -> bool:
        tls = self._fresh.access.tls
        may_change = self._read is not None or (tls is not None and tls.on_disk)
        return self._login_is_due() or (may_change and self._clock() - self._read_at >= _REREAD_AFTER)

    def _login_is_due(self) -> bool:
        renew_at = self._fresh.access.renew_at
        return renew_at is not None and self._wall_clock() >= renew_at

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
        fresh = await asyncio.to_thread(self._load, forced=forced)
        self._read_at = now
        if fresh.context is not self._fresh.context:
            self.generation += 1
        self._fresh = fresh

    def _load(self, *, forced: bool) -> _Fresh:
        """Return what is valid now. It runs in a thread, which reads `_fresh` and does not write it."""
        before = self._fresh
        must_change = forced or self._login_is_due()  # the server rejected the login, or it expires soon
        try:
            return _with_tls(self._access(before.access, login_is_due=must_change), before)
        except (ConfigurationError, CredentialsError) as error:
            if must_change:
                raise CredentialsError(str(error)) from None
            # For example a new certificate with the old key, between the two writes of a renewal.
            log.warning("%s; keeping the previous version", error)
            return before

    def _access(self, before: ClusterAccess, *, login_is_due: bool) -> ClusterAccess:
        """Read the configuration again, unless that runs a plugin whose login is still valid."""
        if self._read is None or (before.renew_at is not None and not login_is_due):
            return before
        access = self._read()
        if access.server != self.server:  # a login must not reach another server than it is for
            raise ConfigurationError(f"{self.source}: the server is another one by now: needs a restart")
        return access


def _with_tls(access: ClusterAccess, before: _Fresh | None) -> _Fresh:
    if access.tls is None:
        return _Fresh(access, None, None)
    material = access.tls.read()
    if before is not None and (access.tls, material) == (before.access.tls, before.material):
        return _Fresh(access, material, before.context)
    return _Fresh(access, material, access.tls.context(material))


def load_credentials(
    kubeconfig: str | None,
    context: str | None,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Credentials:
    """Return the credentials for the API server of the first configuration found.

    The order: the given kubeconfig file and context, the files in $KUBECONFIG, the service account of the pod,
    ~/.kube/config. A context without a file belongs to $KUBECONFIG or ~/.kube/config. Raises ConfigurationError.
    """
    files = _listed_files(kubeconfig)
    if not files:
        pod = None if context else in_cluster()
        if pod is not None:
            return Credentials(pod, lambda: in_cluster() or pod, clock, wall_clock)
        files = [_default_file(context)]
    name = context or current_context(files)
    read = partial(read_kubeconfig, files, name, wall_clock=wall_clock)
    return Credentials(read(run_plugin=False), read, clock, wall_clock)


def _listed_files(kubeconfig: str | None) -> list[str]:
    if kubeconfig:
        return [_at_home(kubeconfig)]
    listed = os.environ.get("KUBECONFIG", "")
    files = [_at_home(file) for file in listed.split(os.pathsep) if file]
    there = [file for file in files if Path(file).exists()]  # kubectl skips missing files, too
    if listed and not there:
        raise ConfigurationError(f"$KUBECONFIG: no such file: {', '.join(files) or listed}")
    return there


def _default_file(context: str | None) -> str:
    default = _at_home(_DEFAULT_FILE)
    if Path(default).exists():
        return default
    looked_for = ["no kubeconfig given", "$KUBECONFIG not set"]
    if not context:
        in_pod = os.environ.get("KUBERNETES_SERVICE_HOST")
        looked_for.append("no service account mounted" if in_pod else "not in a pod (KUBERNETES_SERVICE_HOST not set)")
    raise ConfigurationError(f"no cluster is configured: {', '.join(looked_for)}, no file {default}")


def _at_home(file: str) -> str:
    return os.path.expanduser(file)  # noqa: PTH111  # Path.expanduser raises where nobody has a home, as in a container
