"""The API server and the login that a kubeconfig or a pod has, read by the official client (`kubernetes.config`).

Kindred takes the values of the client's Configuration, and checks itself what would be unsafe. It sends no credentials
over plain HTTP. It reports a user or plugin without a login, where the client continues as nobody. It shows no value in
an error, because any may be a secret.
"""

import math
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml

from app.api_server.tls import (
    IN_MEMORY,
    ClusterAccess,
    ConfigurationError,
    CredentialsError,
    PemSource,
    TlsSettings,
    checked_proxy,
    checked_url,
)
from app.process.files import MAX_CONFIGURATION_BYTES, MAX_TOKEN_BYTES, read_file
from app.process.logs import one_line
from app.process.yaml_traps import refuse_traps
from app.settings.settings import is_loopback

if TYPE_CHECKING:
    from kubernetes.client import Configuration


VARIABLE: Final = "POD_NAMESPACE"
"""The usual name of the variable that a manifest sets by the downward API. It is no setting."""
_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace() -> str:
    """Return the namespace of this replica. Empty if unknown, as outside of a cluster."""
    return os.environ.get(VARIABLE) or namespace_of(_SERVICE_ACCOUNT_NAMESPACE)


def own_pod() -> str:
    """Return the name of the pod of this replica: by default the host name, which kubelet sets to it."""
    return os.environ.get("POD_NAME") or socket.gethostname()


def namespace_of(file: Path) -> str:
    """Return the namespace in a file that kubelet mounts. Empty if it cannot be read."""
    try:
        return read_file(file, MAX_TOKEN_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""


_EARLY: Final = 60.0  # seconds before its expiry at which a login is renewed,
_EARLY_SHARE: Final = 0.1  # or this share of its validity, if that is shorter
_LOGINS: Final = ("token", "tokenFile", "username", "client-certificate", "client-certificate-data")
_FORM: Final = "empty or not a kubeconfig: clusters, contexts and users are lists of entries with a name"


def bearer(token: str) -> str:
    """Return the Authorization header of a token. Raises ValueError for a token that is not valid in a header."""
    if not token:
        raise ValueError("empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("not a token")  # without the value, which may be a secret
    return f"Bearer {token}"


def bearer_of_file(path: Path, where: str) -> str:
    """Return the Authorization header of the token in a file. Raises CredentialsError."""
    try:
        return bearer(read_file(path, MAX_TOKEN_BYTES).decode("ascii", "replace").strip())
    except OSError as error:
        problem = error.strerror
    except ValueError as error:
        problem = str(error)
    raise CredentialsError(f"{where}: token file {path}: {problem}")


def in_cluster() -> ClusterAccess | None:
    """Return the values of the pod's service account. None if this process has none. Raises ConfigurationError."""
    from kubernetes.client import Configuration  # noqa: PLC0415  # big and slow: only where a live cluster is used
    from kubernetes.config import ConfigException, incluster_config  # noqa: PLC0415  # the same

    token, authority = incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME
    if not os.environ.get(incluster_config.SERVICE_HOST_ENV_NAME) or not Path(token).exists():
        return None
    configuration = Configuration()
    loader = incluster_config.InClusterConfigLoader(token, authority)  # type: ignore[no-untyped-call]  # has no annotations
    try:
        read_file(Path(token), MAX_TOKEN_BYTES)  # the loader reads it without a bound
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]  # has no annotations
    except (ConfigException, OSError, ValueError) as error:
        raise ConfigurationError(f"in-cluster, {Path(token).parent}: {_text(error)}") from None
    return ClusterAccess(
        source="in-cluster",
        server=checked_url("in-cluster: KUBERNETES_SERVICE_HOST and _PORT", configuration.host),
        tls=_tls("in-cluster", configuration),
        authorization=_authorization("in-cluster", configuration),
        proxy=_proxy("in-cluster", configuration, ""),
        namespace=namespace_of(Path(token).parent / "namespace"),
    )


def current_context(files: Sequence[str]) -> str:
    """Return the current context of the first file that has one, as kubectl does. Raises ConfigurationError."""
    with _readable(_where(files)):
        for file in files:
            found = _merged([file]).safe_get("current-context")
            if isinstance(found, str) and found:
                return found
        names = ", ".join(entry.value["name"] for entry in _merged(files).value["contexts"])
    there_are = f"there are: {names}" if names else "there is no context"
    raise ConfigurationError(f"{_where(files)}: no context given and no current-context; {there_are}")


def read_kubeconfig(
    files: Sequence[str], context: str, *, run_plugin: bool = True, wall_clock: Callable[[], float] = time.time
) -> ClusterAccess:
    """Return the values of a context of merged kubeconfig files. Raises ConfigurationError, CredentialsError.

    It blocks while a plugin runs. Without `run_plugin`, a login by a plugin is one that has expired.
    """
    where = f"{_where(files)}, context {context}"
    with _readable(where):
        reader = _Reader(where, files, context)
        access, plugin = reader.access(), reader.plugin
        if plugin is None or access.tls is None:
            return access
        if not run_plugin:
            return msgspec.structs.replace(access, renew_at=0.0)
        return reader.logged_in(access, plugin, wall_clock)


class _Reader:
    """Reads one context. Its methods raise whatever the official client raises."""

    def __init__(self, where: str, files: Sequence[str], context: str) -> None:
        self._where = where
        self._context = context
        self._merged = _merged(files)
        chosen = self._merged["contexts"].get_with_name(context)["context"]
        user = chosen.safe_get("user")
        self._cluster = self._merged["clusters"].get_with_name(chosen["cluster"])["cluster"]
        self._user = self._merged["users"].get_with_name(user)["user"] if user else None
        self._namespace = chosen.safe_get("namespace") or ""
        self.plugin = self._taken_plugin()

    def access(self) -> ClusterAccess:
        """Return the values without a login by the plugin."""
        from kubernetes.client import Configuration  # noqa: PLC0415  # as in `in_cluster`
        from kubernetes.config.kube_config import KubeConfigLoader  # noqa: PLC0415  # the same

        server = checked_url(f"{self._where}: server", self._cluster.safe_get("server") or "")
        proxy_url = self._cluster.safe_get("proxy-url") or ""
        configuration = Configuration()
        if server.startswith("http://"):
            configuration.host = server
            configuration.proxy = proxy_url or configuration.proxy
            proxy = _proxy(self._where, configuration, proxy_url)
            return ClusterAccess(self._where, server, proxy=proxy, namespace=self._namespace)
        self._check_supported()
        self._read_token()
        self._cluster.value["server"] = server  # in small letters, because the loader reads certificates only for those
        folder = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
        loader: Any = KubeConfigLoader(self._merged, self._context, config_base_path=None, temp_file_path=folder)  # type: ignore[no-untyped-call]  # has no annotations
        loader.load_and_set(configuration)
        access = ClusterAccess(
            source=self._where,
            server=server,
            tls=_tls(self._where, configuration),
            authorization=_authorization(self._where, configuration),
            proxy=_proxy(self._where, configuration, proxy_url),
            namespace=self._namespace,
        )
        self._check_whole(access)
        return access

    def _taken_plugin(self) -> Any:  # noqa: ANN401  # a node of the official client, or None
        """Take the plugin from the user, because the loader would log its failure and continue as nobody."""
        if self._user is None or "exec" not in self._user:
            return None
        plugin = self._user["exec"]
        del self._user.value["exec"]
        is_used = not any(self._user.safe_get(each) for each in _LOGINS)  # as client-go (exec.go)
        return plugin if is_used else None

    def _read_token(self) -> None:
        """Put the contents of the user's `tokenFile` in its place, because the loader reads it without a bound."""
        user = self._user
        if user is not None and user.safe_get("tokenFile") and not user.safe_get("token"):
            file = Path(user.path or "").absolute().parent / user["tokenFile"]
            user.value["token"] = read_file(file, MAX_TOKEN_BYTES).decode("ascii", "replace")

    def _check_supported(self) -> None:
        """Raise ConfigurationError for a login that the loader ignores, or makes by itself."""
        user: Mapping[str, Any] = {} if self._user is None else self._user.value
        if user.get("as"):
            raise ConfigurationError(f"{self._where}: impersonation (as: {user['as']}) is not supported")
        if user.get("auth-provider"):
            raise ConfigurationError(f"{self._where}: auth-provider is not supported; use an exec plugin")

    def _check_whole(self, access: ClusterAccess) -> None:
        """Raise ConfigurationError for values of which the loader ignores a part."""
        user: Mapping[str, Any] = {} if self._user is None else self._user.value
        tls = access.tls or TlsSettings()
        named = next((each for each in ("token", "tokenFile", "username") if user.get(each)), None)
        if named and not access.authorization:
            raise ConfigurationError(f"{self._where}: the user's {named} is no login: a file is empty, or no password")
        if tls.certificate and not tls.key:
            raise ConfigurationError(f"{self._where}: a client-certificate without client-key")
        if tls.insecure and tls.authority:
            problem = "certificate-authority and insecure-skip-tls-verify exclude each other"
            raise ConfigurationError(f"{self._where}: {problem}")

    def logged_in(self, access: ClusterAccess, plugin: Any, wall_clock: Callable[[], float]) -> ClusterAccess:  # noqa: ANN401  # a node of the official client
        """Run the plugin, and return the access with its login. Raises CredentialsError."""
        from kubernetes.config import ConfigException  # noqa: PLC0415  # as in `in_cluster`
        from kubernetes.config.exec_provider import ExecProvider  # noqa: PLC0415  # the same

        name = f"{self._where}: exec plugin {plugin.safe_get('command')}"
        try:
            folder = str(Path(self._cluster.path or "").absolute().parent)
            status = ExecProvider(plugin, folder, self._cluster).run()  # type: ignore[no-untyped-call]  # has no annotations
            token, certificate, key = map(status.get, ("token", "clientCertificateData", "clientKeyData"))
            expires = status.get("expirationTimestamp")
            end = datetime.fromisoformat(expires).timestamp() if expires else math.inf
            authorization = bearer(token) if token else ""
        except (ConfigException, OSError, ValueError, AttributeError, TypeError) as error:
            hint = " ".join(str(plugin.safe_get("installHint") or "").split())
            raise CredentialsError(f"{name}: {_text(error)}{'; ' if hint else ''}{hint}") from None
        if not token and not certificate:
            raise CredentialsError(f"{name}: no credentials in its output: neither a token nor a client certificate")
        if bool(certificate) != bool(key):
            raise CredentialsError(f"{name}: no credentials in its output: only one of client certificate and key")
        tls = access.tls
        if certificate and tls is not None:
            of_plugin = PemSource(name, "clientCertificateData", data=certificate.encode())
            tls = msgspec.structs.replace(
                tls, certificate=of_plugin, key=PemSource(name, "clientKeyData", data=key.encode())
            )
        now = wall_clock()
        renew_at = end - min(_EARLY, max(0.0, end - now) * _EARLY_SHARE)
        return msgspec.structs.replace(access, tls=tls, authorization=authorization, renew_at=renew_at)


def _where(files: Sequence[str]) -> str:
    return f"kubeconfig {os.pathsep.join(files)}"


@contextmanager
def _readable(where: str) -> Iterator[None]:
    """Turn the errors of the official client into a ConfigurationError."""
    from kubernetes.config import ConfigException  # noqa: PLC0415  # as in `in_cluster`

    try:
        yield
    except ConfigurationError:
        raise
    except OSError as error:
        named = f": {error.filename}" if error.filename and str(error.filename) not in where else ""
        raise ConfigurationError(f"{where}{named}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{where}: not YAML: {_text(error)}") from None
    except (ConfigException, ValueError) as error:
        # The text for an entry without a name has the whole entry, with its secrets.
        raise ConfigurationError(f"{where}: {_text(error).partition('{')[0]}") from None
    except (AttributeError, LookupError, TypeError):
        raise ConfigurationError(f"{where}: {_FORM}") from None


def _merged(files: Sequence[str]) -> Any:  # noqa: ANN401  # a node of the official client
    from kubernetes.config.kube_config import KubeConfigMerger  # noqa: PLC0415  # as in `in_cluster`

    for file in files:
        # The merger skips missing files, and reads without a bound.
        refuse_traps(read_file(Path(file), MAX_CONFIGURATION_BYTES))
    merged: Any = KubeConfigMerger(os.pathsep.join(files)).config  # type: ignore[no-untyped-call]  # has no annotations
    for kind in ("contexts", "clusters", "users"):
        for entry in merged.value[kind]:
            entry.name = f"{kind}[name={entry.value['name']}]"  # else messages have the whole entry, with its secrets
    return merged


def _tls(where: str, configuration: "Configuration") -> TlsSettings:
    def source(name: str, file: str | None) -> PemSource | None:
        return PemSource(where, name, file=file) if file else None

    return TlsSettings(
        authority=source("certificate-authority", configuration.ssl_ca_cert),
        certificate=source("client-certificate", configuration.cert_file),
        key=source("client-key", configuration.key_file),
        server_name=configuration.tls_server_name or "",
        insecure=not configuration.verify_ssl,
    )


def _authorization(where: str, configuration: "Configuration") -> str:
    """Return the Authorization header. The official client leaves the line feed of a token's file in it."""
    scheme, _, value = configuration.api_key.get("BearerToken", "").partition(" ")
    if scheme in {"", "Basic"}:
        return f"{scheme} {value}".strip()
    try:
        return bearer(value.strip())
    except ValueError as error:
        raise ConfigurationError(f"{where}: token: {error}") from None


def _proxy(where: str, configuration: "Configuration", own: str) -> str | None:
    """Return the proxy of the configuration, or else of the environment, unless NO_PROXY excludes the host."""
    from kubernetes.client.rest import should_bypass_proxies  # noqa: PLC0415  # as in `in_cluster`

    proxy = configuration.proxy
    if not own and is_loopback(urlsplit(configuration.host).hostname or ""):
        return None  # as in Go: HTTPS_PROXY does not apply to a cluster on this machine
    if not proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return None
    # Without a scheme it is http, as in Go.
    return checked_proxy(
        f"{where}: {'proxy-url' if own else 'proxy of the environment'}",
        proxy if "://" in proxy else f"http://{proxy}",
    )


def _text(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return one_line(" ".join(text.split())).rstrip(".")
