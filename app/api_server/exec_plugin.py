"""A credential plugin: a command in a kubeconfig that prints a login.

The protocol is client.authentication.k8s.io (client-go plugin/pkg/client/auth/exec). The Kubernetes client for Python
implements it, too, but differs: it waits for a plugin without a limit, logs a failure and continues without
credentials, and ignores a certificate beside a token.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec

from app.api_server.bounded_command import CommandError, run_bounded
from app.api_server.credential_errors import ConfigurationError, CredentialsError
from app.api_server.login import Login, bearer
from app.api_server.pem import PemSource
from app.json_text import encode
from app.logs import one_line
from app.objects.decode import DecodeError, decoding

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_TIME_LIMIT: Final = 60.0  # seconds; a plugin that opens a browser takes long
_MAX_PRINTED: Final = 1024 * 1024  # bytes of each output: a token and a certificate with its chain are some KB
_EARLY: Final = 60.0  # seconds before its expiry at which a login is renewed,
_EARLY_SHARE: Final = 0.1  # or this share of its validity, if that is shorter


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_ExecCredential)


class ExecPlugin:
    """Runs a plugin to get a login.

    The plugin must not be interactive, because a service has no terminal. As with kubectl, it runs in the present
    working directory.
    """

    def __init__(  # noqa: PLR0913  # the fields of a plugin in a kubeconfig
        self,
        where: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        api_version: str,
        cluster: Mapping[str, object] | None,
        *,
        time_limit: float = _TIME_LIMIT,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`command` has its arguments. `environment` is added to the environment of this process.

        `cluster` is passed to a plugin that requests it. `time_limit` is in seconds. Raises ConfigurationError.
        """
        self._name = f"{where}: exec plugin {command[0]}"
        self._command = list(command)
        self._api_version = api_version
        self._time_limit = time_limit
        self._wall_clock = wall_clock
        if api_version not in API_VERSIONS:
            raise ConfigurationError(
                f"{self._name}: apiVersion: {api_version!r} is not known: {' or '.join(API_VERSIONS)}"
            )
        spec = {"interactive": False} | ({} if cluster is None else {"cluster": cluster})
        asked = {"apiVersion": api_version, "kind": "ExecCredential", "spec": spec}
        self._environment = {**os.environ, **environment, "KUBERNETES_EXEC_INFO": encode(asked).decode()}
        if shutil.which(command[0], path=self._environment.get("PATH")) is None:
            raise ConfigurationError(f"{self._name}: command not found")

    def configured(self) -> Login:
        """Return an expired login, so that the plugin runs when the first login is needed."""
        return Login(renew_at=0.0)

    def get(self) -> Login:
        """Run the plugin. Raises CredentialsError."""
        printed = self._run()
        try:
            status = self._status(printed)
            login = bearer(status.token) if status.token else Login()
        except ValueError as error:
            raise CredentialsError(f"{self._name}: no credentials in its output: {one_line(str(error))}") from None
        return msgspec.structs.replace(
            login,
            certificate=self._pem("clientCertificateData", status.client_certificate_data),
            key=self._pem("clientKeyData", status.client_key_data),
            renew_at=self._renew_at(status.expiration_timestamp),
        )

    def is_due(self, login: Login, age: float) -> bool:  # noqa: ARG002  # the protocol's
        """Return whether a login is about to expire."""
        return login.renew_at is not None and self._wall_clock() >= login.renew_at

    def _run(self) -> bytes:
        try:
            output = run_bounded(self._command, self._environment, self._time_limit, _MAX_PRINTED)
        except CommandError as error:
            raise CredentialsError(f"{self._name}: {error}") from None
        except OSError as error:
            raise CredentialsError(f"{self._name}: {error.strerror}") from None
        if output.status:
            said = one_line(" ".join(output.complaint.decode(errors="replace").split()))
            ended = f"exit status {output.status}" if output.status > 0 else f"signal {-output.status}"
            raise CredentialsError(f"{self._name}: {ended}{': ' if said else ''}{said}")
        return output.printed

    def _status(self, printed: bytes) -> _Status:
        credential = decoding(_decoder.decode, printed)
        if credential.kind != "ExecCredential":
            raise DecodeError("kind", f"expected ExecCredential, got {credential.kind}")
        if credential.api_version != self._api_version:
            raise DecodeError("apiVersion", f"expected {self._api_version}, got {credential.api_version}")
        status = credential.status or _Status()
        if not status.token and not status.client_certificate_data and not status.client_key_data:
            raise DecodeError("status", "neither a token nor a client certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise DecodeError("status", "only one of client certificate and key")
        return status

    def _pem(self, name: str, text: str | None) -> PemSource | None:
        return PemSource(self._name, name, data=text.encode()) if text else None

    def _renew_at(self, expires: datetime | None) -> float | None:
        if expires is None:
            return None
        life = max(0.0, expires.timestamp() - self._wall_clock())
        return expires.timestamp() - min(_EARLY, life * _EARLY_SHARE)
