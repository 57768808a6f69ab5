"""The probe of the image finds the service whatever its settings are, and tells what lives from what does not."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import CERT_REQUIRED, SSLContext, TLSVersion
from threading import Thread

import pytest

from app.commands.probe import DEFAULTS, FLAGS, Address, ProbeError, address, probe
from app.commands.settings_commands import settings_options
from app.configuration_file import HEAD, key_of
from app.settings import Settings
from tests.demo_server import demo_server
from tests.openssl import Authority

LOCAL = Address("127.0.0.1", 8888, tls=False, names_clients=False)
SERVE = ("kindred", "serve", "--demo")


# Where it asks.


def test_its_defaults_are_those_of_the_settings() -> None:
    assert {name: Settings.model_fields[name].default for name in DEFAULTS} == DEFAULTS


def test_its_flags_are_those_of_kindred_serve() -> None:
    serve = {option: str(each.name) for each in settings_options() for option in each.opts}
    assert {flag: name for flag, name in serve.items() if name in DEFAULTS or name == "config"} == FLAGS


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        pytest.param((), {}, LOCAL, id="defaults"),
        pytest.param((), {"KINDRED_LISTEN_PORT": "9000"}, LOCAL._replace(port=9000), id="variable"),
        pytest.param(("--listen-port", "9000"), {}, LOCAL._replace(port=9000), id="flag"),
        pytest.param(("--port=9000",), {"KINDRED_LISTEN_PORT": "9001"}, LOCAL._replace(port=9000), id="flag-wins"),
        pytest.param((), {"KINDRED_LISTEN_HOST": "0.0.0.0"}, LOCAL, id="every-address"),  # noqa: S104  # asked about
        pytest.param((), {"KINDRED_LISTEN_HOST": "::"}, LOCAL._replace(host="::1"), id="every-ipv6-address"),
        pytest.param(("--host", "10.0.0.1"), {}, LOCAL._replace(host="10.0.0.1"), id="one-address"),
        pytest.param((), {"KINDRED_TLS_CERT_FILE": "/tls.crt"}, LOCAL._replace(tls=True), id="tls"),
        pytest.param((), {"KINDRED_TLS_CERT_FILE": ""}, LOCAL, id="tls-set-to-nothing"),
        pytest.param(
            ("--tls-client-ca-file", "/ca.crt"),
            {"KINDRED_TLS_CERT_FILE": "/tls.crt"},
            LOCAL._replace(tls=True, names_clients=True),
            id="mtls",
        ),
        pytest.param(
            ("--health-port", "8889"),
            {"KINDRED_TLS_CERT_FILE": "/tls.crt", "KINDRED_TLS_CLIENT_CA_FILE": "/ca.crt"},
            LOCAL._replace(port=8889),
            id="health-port-beside-mtls",
        ),
    ],
)
def test_the_address_is_that_of_the_service(
    flags: Sequence[str], environment: Mapping[str, str], expected: Address
) -> None:
    assert expected == address((*SERVE, *flags), environment)


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_the_file_of_settings_counts_where_nothing_else_says_so(by: str, tmp_path: Path) -> None:
    file = tmp_path / "kindred.yaml"
    head = "".join(f"{key}: {value}\n" for key, value in HEAD.items())
    file.write_text(f"{head}{key_of('listen_port')}: 9000\n{key_of('tls_cert_file')}: /tls.crt\nprofile: full\n")
    flags = ("--config", str(file)) if by == "flag" else ()
    environment = {} if by == "flag" else {"KINDRED_CONFIG": str(file)}
    assert LOCAL._replace(port=9000, tls=True) == address((*SERVE, *flags), environment)
    environment["KINDRED_LISTEN_PORT"] = "9001"
    assert LOCAL._replace(port=9001, tls=True) == address((*SERVE, *flags), environment)


def test_the_arguments_of_another_process_1_are_not_read() -> None:
    assert address(("/sbin/init", "--port", "9000"), {}) == LOCAL
    assert LOCAL._replace(port=9000) == address(("/sbin/init", "--", *SERVE, "--port", "9000"), {})


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        pytest.param({"KINDRED_LISTEN_PORT": "0"}, "listen_port=0: the port that was taken is not known", id="any"),
        pytest.param({"KINDRED_HEALTH_PORT": "x"}, "health_port='x': no number", id="no-number"),
        pytest.param({"KINDRED_CONFIG": "/nowhere.yaml"}, "/nowhere.yaml: .*No such file", id="no-file"),
    ],
)
def test_settings_without_an_address_are_said(environment: Mapping[str, str], message: str) -> None:
    with pytest.raises(ProbeError, match=message):
        address(SERVE, environment)


# What it asks.


class Answers(BaseHTTPRequestHandler):
    """Lives, and is not ready."""

    def do_GET(self) -> None:
        alive = self.path == "/livez"
        self.send_response(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE)
        self.end_headers()
        self.wfile.write(b"ok" if alive else b"pods: not synced")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # upstream's name
        pass


@contextmanager
def service(tls: SSLContext | None = None) -> Iterator[Address]:
    """Serve `Answers`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        required = tls is not None and tls.verify_mode == CERT_REQUIRED
        try:
            yield Address("127.0.0.1", server.server_port, tls is not None, required)
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path)
    made.make("server", "subjectAltName=DNS:kindred.kindred.svc")
    return made


def test_a_service_that_lives_need_not_be_ready() -> None:
    with service() as at:
        probe(at, "/livez")
        with pytest.raises(ProbeError, match=r"^/readyz: 503: pods: not synced$"):
            probe(at, "/readyz")


def test_a_certificate_need_not_name_the_loopback(authority: Authority) -> None:
    with service(authority.server_tls()) as at:
        probe(at, "/livez")


def test_who_answers_nobody_without_a_certificate_lives_if_it_shakes_hands(authority: Authority) -> None:
    tls = authority.server_tls()
    tls.load_verify_locations(authority.crt())
    tls.verify_mode = CERT_REQUIRED
    tls.minimum_version = TLSVersion.TLSv1_2
    with service(tls) as at:
        probe(at, "/livez")
        with pytest.raises(ProbeError, match="KINDRED_HEALTH_PORT opens a port that needs none"):
            probe(at, "/readyz")


def test_a_port_where_nobody_is_does_not_live() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ProbeError, match=f"127.0.0.1 port {port}: .*refused"):
        probe(LOCAL._replace(port=port), "/livez")


@pytest.mark.parametrize("tls", ["http", "mtls"])
def test_who_takes_the_connection_and_then_says_nothing_does_not_live(tls: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = Address("127.0.0.1", silent.getsockname()[1], tls=tls == "mtls", names_clients=tls == "mtls")
        with pytest.raises(ProbeError, match="timed out"):
            probe(at, "/livez", 0.2)


@pytest.mark.parametrize("options", [(), ("--ready",)], ids=["alive", "ready"])
def test_the_program_ends_with_what_it_found(options: Sequence[str]) -> None:
    def program(port: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603  # our own program
            [sys.executable, "-m", "app.commands.probe", *options],
            env={"KINDRED_LISTEN_PORT": str(port)},
            capture_output=True,
            text=True,
            check=False,
        )

    with demo_server() as server:
        port = int(server.url.rpartition(":")[2])
        found = program(port)
        assert (found.returncode, found.stderr) == (0, "")
    found = program(port)
    assert found.returncode == 1
    assert found.stderr.startswith(f"127.0.0.1 port {port}: ")


def test_it_imports_nothing_that_is_slow() -> None:
    """A container runs it every few seconds."""
    loaded = "import sys, app.commands.probe; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout  # noqa: S603  # our own program
    assert [name for name in ("numpy", "pydantic", "fastapi", "yaml", "click") if f"'{name}'" in modules] == []
