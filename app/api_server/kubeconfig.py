"""The values of one context of kubeconfig files: the API server, its authorities, and the login.

The meaning follows kubectl (client-go tools/clientcmd). The Kubernetes client for Python differs: it continues without
a user or plugin that fails, takes the context of the last file, and sends credentials over plain HTTP.
"""

import base64
import binascii
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from app.api_server.cluster_access import ClusterAccess, checked_proxy, checked_url
from app.api_server.credential_errors import ConfigurationError
from app.api_server.exec_plugin import ExecPlugin
from app.api_server.kubeconfig_files import Entry, KubeconfigFiles
from app.api_server.login import FixedLogin, LoginSource, TokenFile, basic, bearer
from app.api_server.pem import PemSource
from app.api_server.tls_context import TlsSettings

_PLUGIN_CONFIG: Final = "client.authentication.k8s.io/exec"  # name of the cluster extension for plugins


class _Context(msgspec.Struct, rename="kebab"):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _Extension(msgspec.Struct):
    name: str | None = None
    extension: object = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[_Extension] | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str | None = None


class _Exec(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class _User(msgspec.Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    exec: _Exec | None = None
    auth_provider: object = None
    impersonate: str | None = msgspec.field(default=None, name="as")

    @property
    def has_certificate(self) -> bool:
        return bool(self.client_certificate or self.client_certificate_data)


def read_kubeconfig(
    files: Sequence[str], context: str | None, wall_clock: Callable[[], float] = time.time
) -> ClusterAccess:
    """Return the values of a context, the current one by default. For each name, the first file that has it counts.

    Token and certificate files are not read yet, and plugins do not run yet. Raises ConfigurationError.
    """
    known = KubeconfigFiles(files)
    name = context or known.current_context()
    chosen = known.entry(known.where, "context", name, _Context).value
    where = f"{known.where}, context {name}"
    if not chosen.cluster:
        raise ConfigurationError(f"{where}: no cluster")
    cluster = known.entry(where, "cluster", chosen.cluster, _Cluster)
    user = known.entry(where, "user", chosen.user, _User) if chosen.user else Entry(_User(), Path())
    access = _Reader(where, cluster, user, wall_clock).access()
    return msgspec.structs.replace(access, namespace=chosen.namespace or "")


class _Reader:
    """Reads the cluster and the user of one context."""

    def __init__(
        self, where: str, cluster: Entry[_Cluster], user: Entry[_User], wall_clock: Callable[[], float]
    ) -> None:
        self._where = where
        self._cluster, self._cluster_folder = cluster
        self._user, self._user_folder = user
        self._wall_clock = wall_clock

    def access(self) -> ClusterAccess:
        cluster = self._cluster
        server = checked_url(f"{self._where}: server", cluster.server or "")
        if cluster.proxy_url:
            checked_proxy(f"{self._where}: proxy-url", cluster.proxy_url)
        if server.startswith("http://"):
            return ClusterAccess(self._where, server, None, proxy=cluster.proxy_url or "")
        tls = self._tls()
        return ClusterAccess(self._where, server, tls, self._login(server, tls), cluster.proxy_url or "")

    def _tls(self) -> TlsSettings:
        cluster, user, folder = self._cluster, self._user, self._user_folder
        authority = self._pem(
            "certificate-authority",
            cluster.certificate_authority,
            cluster.certificate_authority_data,
            self._cluster_folder,
        )
        insecure = bool(cluster.insecure_skip_tls_verify)
        if insecure and authority:
            problem = "certificate-authority and insecure-skip-tls-verify exclude each other"
            raise ConfigurationError(f"{self._where}: {problem}")
        certificate = self._pem("client-certificate", user.client_certificate, user.client_certificate_data, folder)
        key = self._pem("client-key", user.client_key, user.client_key_data, folder)
        if certificate and not key:
            raise ConfigurationError(f"{self._where}: a client-certificate without client-key")
        return TlsSettings(
            authority=authority,
            certificate=certificate,
            key=key if certificate else None,
            server_name=cluster.tls_server_name or "",
            insecure=insecure,
        )

    def _pem(self, name: str, file: str | None, data: str | None, folder: Path) -> PemSource | None:
        if data:
            try:
                return PemSource(
                    self._where, f"{name}-data", data=base64.b64decode("".join(data.split()), validate=True)
                )
            except binascii.Error:
                raise ConfigurationError(f"{self._where}: {name}-data: not base64") from None
        return PemSource(self._where, name, file=str(folder / file)) if file else None

    def _login(self, server: str, tls: TlsSettings) -> LoginSource:
        """Return the source of the login. A plugin counts only if the user has nothing else (client-go exec.go)."""
        user = self._user
        if user.impersonate:
            raise ConfigurationError(f"{self._where}: impersonation (as: {user.impersonate}) is not supported")
        if user.auth_provider:
            raise ConfigurationError(f"{self._where}: auth-provider is not supported; use an exec plugin")
        if (user.token or user.token_file) and user.username:
            raise ConfigurationError(f"{self._where}: token and username exclude each other")
        if user.token_file:
            return TokenFile(str(self._user_folder / user.token_file), self._where)
        if user.token:
            try:
                return FixedLogin(bearer(user.token))
            except ValueError as error:
                raise ConfigurationError(f"{self._where}: token: {error}") from None
        if user.username:
            return FixedLogin(basic(user.username, user.password or ""))
        if user.exec and not user.has_certificate:
            return self._plugin(user.exec, server, tls)
        return FixedLogin()

    def _plugin(self, plugin: _Exec, server: str, tls: TlsSettings) -> ExecPlugin:
        command = plugin.command
        if "/" in command:
            command = str(self._user_folder / command)
        if plugin.interactive_mode == "Always":
            raise ConfigurationError(f"{self._where}: exec plugin {command} needs a terminal (interactiveMode: Always)")
        try:
            return ExecPlugin(
                self._where,
                [command, *(plugin.args or ())],
                {variable.name: variable.value or "" for variable in plugin.env or ()},
                plugin.api_version,
                self._told_to_plugins(server, tls) if plugin.provide_cluster_info else None,
                wall_clock=self._wall_clock,
            )
        except ConfigurationError as error:
            hint = " ".join((plugin.install_hint or "").split())
            raise ConfigurationError(f"{error}{'; ' if hint else ''}{hint}") from None

    def _told_to_plugins(self, server: str, tls: TlsSettings) -> dict[str, object]:
        """Return the Cluster of client.authentication.k8s.io (client-go rest/exec.go)."""
        cluster = self._cluster
        told: dict[str, object] = {"server": server}
        if tls.server_name:
            told["tls-server-name"] = tls.server_name
        if tls.insecure:
            told["insecure-skip-tls-verify"] = True
        if tls.authority:
            told["certificate-authority-data"] = base64.b64encode(tls.authority.read()).decode()
        if cluster.proxy_url:
            told["proxy-url"] = cluster.proxy_url
        for extension in cluster.extensions or ():
            if extension.name == _PLUGIN_CONFIG:
                told["config"] = extension.extension
        return told
