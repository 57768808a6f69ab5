"""`python -m app.commands.probe`: checks that the service of this container is alive, for the image's HEALTHCHECK.

The probe reads the address from the sources of the service: the flags of process 1, the environment and the file of
settings. It reads them with its own code, because importing app.configuration takes ten times as long. The service has
validated them by then.
"""

import ssl
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from os import environ
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from app.files import MAX_CONFIGURATION_BYTES, read_file
from app.shown_text import shown

DEFAULTS: Final[Mapping[str, Any]] = {
    "listen_host": "127.0.0.1",
    "listen_port": 8888,
    "health_port": None,
    "tls_cert_file": None,
    "tls_client_ca_file": None,
}
"""Field -> default, as app.settings has it. The address depends on these fields alone."""
FLAGS: Final[Mapping[str, str]] = {
    **{"--" + name.replace("_", "-"): name for name in DEFAULTS},
    "--host": "listen_host",
    "--port": "listen_port",
    "--config": "config",
}
"""Flag of `kindred serve` -> field, or the file of settings."""
TIMEOUT: Final = 3.0
"""Seconds. Less than the HEALTHCHECK waits, so that the probe reports the reason."""
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # looked up here, not bound
_SERVICE: Final = Path("/proc/1/cmdline")


class ProbeError(Exception):
    """The service does not respond as it should, or cannot be reached. The message is one line."""


class Address(NamedTuple):
    """The address of the health check. `names_clients`: every client needs a certificate."""

    host: str
    port: int
    tls: bool
    names_clients: bool


def address(command: Sequence[str], environment: Mapping[str, str]) -> Address:
    """Return the address of a service with this command line and environment. Raises ProbeError."""
    flags = _flags(command)
    file = flags.pop("config", None) or environment.get("KINDRED_CONFIG")
    of_environment = {name: value for name in DEFAULTS if (value := environment.get(f"KINDRED_{name.upper()}"))}
    values = {**DEFAULTS, **(_of_file(Path(file)) if file else {}), **of_environment, **flags}
    is_shared = values["health_port"] is None  # the port of the verbs, with its TLS
    field = "listen_port" if is_shared else "health_port"
    try:
        port = int(values[field])
    except ValueError:
        raise ProbeError(f"{field}={values[field]!r}: no number") from None
    if not port:
        raise ProbeError(f"{field}=0: the port that was taken is not known; set one")
    return Address(
        _LOOPBACK.get(values["listen_host"], values["listen_host"]),
        port,
        tls=is_shared and bool(values["tls_cert_file"]),
        names_clients=is_shared and bool(values["tls_client_ca_file"]),
    )


def probe(at: Address, path: str, timeout: float = TIMEOUT) -> None:
    """Return the address for 200, or for a TLS handshake, if the service requires client certificates.

    Raises ProbeError.
    """
    if at.names_clients and path != "/livez":
        raise ProbeError(f"{path} needs a client certificate; KINDRED_HEALTH_PORT opens a port that needs none")
    connection = HTTPConnection(at.host, at.port, timeout=timeout)
    if at.tls:
        connection = HTTPSConnection(at.host, at.port, timeout=timeout, context=_tls_context())
    try:
        connection.connect()
        if at.names_clients:
            return
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise ProbeError(f"{path}: {answer.status}: {answer.read(500).decode('utf-8', 'replace')}")
    except (OSError, HTTPException) as error:
        raise ProbeError(f"{at.host} port {at.port}: {str(error) or type(error).__name__}") from None
    finally:
        connection.close()


def main() -> None:
    """Run the probe. Ends with status 0 or 1, the only ones that a HEALTHCHECK has."""
    parser = _Parser(prog="python -m app.commands.probe", description="Check that the service of process 1 is alive.")
    parser.add_argument("--ready", action="store_true", help="check that it is ready instead")
    path = "/readyz" if parser.parse_args().ready else "/livez"
    try:
        command = _SERVICE.read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        command = []
    try:
        probe(address(command, environ), path)
    except ProbeError as error:
        sys.exit(shown(str(error)))


class _Parser(ArgumentParser):
    """A parser whose errors, which quote the command line, have no control characters."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and end."""
        super().error(shown(message))


def _flags(command: Sequence[str]) -> dict[str, str]:
    """Return the fields that are given as --flag VALUE or --flag=VALUE. The last one counts."""
    given: dict[str, str] = {}
    words = iter(command)
    if "serve" not in words:  # `in` consumes the words up to it. Process 1 can be an init
        return given
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in FLAGS:
            given[FLAGS[flag]] = value if equals else next(words, "")
    return given


def _of_file(file: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  # only where there is a file

    try:
        document = yaml.safe_load(read_file(file, MAX_CONFIGURATION_BYTES)) or {}
        # listen_port -> listenPort
        found = {name: document.get(name[0] + name.title().replace("_", "")[1:]) for name in DEFAULTS}
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        raise ProbeError(f"{file}: {error}") from None
    return {name: value for name, value in found.items() if value is not None}


def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate names the Service, not the loopback, and the response is no secret.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    # Kindred always speaks 1.3. With 1.2 the handshake fails if the server requires a client certificate.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


if __name__ == "__main__":
    main()
