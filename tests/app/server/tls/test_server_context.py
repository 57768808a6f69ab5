"""Who gets through the TLS of a port, over real connections on both event loops."""

import asyncio
import json
import ssl
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import uvloop

from app.api_server.tls import ConfigurationError
from app.server.connections import RejectReason
from app.server.ports import Port
from app.server.tls import server_tls
from app.settings.settings import Settings, port_rule, wants_certificates
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving
from tests.app.server.tls.secrets import Certificates, MountedSecret
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
OTHER_KEY: Final = b"another key"
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
ON_BOTH_LOOPS: Final = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def run(talked: Coroutine[Any, Any, None], loop: LoopFactory = asyncio.new_event_loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked)


def port(certificates: Certificates, **settings: object) -> Port:
    named = {"listen": "127.0.0.1:0", "tls_directory": certificates.directory()}
    return create_service(Settings.model_validate({**named, **settings}), shop(), None).ports[0]


def requested(served: Port, tls: ssl.SSLContext, loop: LoopFactory = asyncio.new_event_loop) -> tuple[int, bytes]:
    """Ask over a connection of its own; raises what a client is told of the connection."""
    responses = []

    async def talked() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            serving(served) as (_, number),
            connected(number, tls) as (reader, writer),
        ):
            writer.write(request("/filter", QUESTION))
            status, _, body = await read_response(reader)
            responses.append((status, body))

    run(talked(), loop)
    return responses[0]


@ON_BOTH_LOOPS
def test_questions_are_answered_over_tls(certificates: Certificates, loop: LoopFactory) -> None:
    status, body = requested(port(certificates), certificates.client_tls(), loop)
    assert (status, json.loads(body)["NodeNames"]) == (200, ["a1"])


def test_a_client_that_offers_http_2_speaks_http_1_1(certificates: Certificates) -> None:
    tls = certificates.client_tls()
    tls.set_alpn_protocols(["h2", "http/1.1"])

    async def talked() -> None:
        served = serving(port(certificates))
        async with asyncio.timeout(PATIENCE), served as (_, number), connected(number, tls) as (_, writer):
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"

    run(talked())


def test_lower_versions_are_refused(certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    tls = certificates.client_tls()
    tls.set_ciphers("ALL:@SECLEVEL=0")  # or OpenSSL would not even offer the old ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
    served = port(certificates)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        requested(served, tls)
    assert "rejected 127.0.0.1: tls handshake: unsupported protocol" in caplog.text
    assert served.connections.rejected[RejectReason.HANDSHAKE] == 1


def test_tls_1_2_is_spoken(certificates: Certificates) -> None:
    tls = certificates.client_tls()
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    assert requested(port(certificates), tls)[0] == 200


# Client certificates.


@ON_BOTH_LOOPS
def test_a_client_with_a_certificate_of_the_authorities_is_answered(
    certificates: Certificates, loop: LoopFactory
) -> None:
    served = port(certificates, tls_directory=certificates.directory(clients=True))
    assert requested(served, certificates.client_tls("scheduler"), loop)[0] == 200


@ON_BOTH_LOOPS
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("of", ["nobody", "another-authority"])
def test_a_client_without_one_is_not(
    loop: LoopFactory, version: ssl.TLSVersion, of: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates, other = Certificates(tmp_path / "ca"), Certificates(tmp_path / "other")
    served = port(certificates, tls_directory=certificates.directory(clients=True))
    tls = certificates.client_tls() if of == "nobody" else other.client_tls("scheduler", certificates)
    tls.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        requested(served, tls, loop)
    assert served.connections.rejected[RejectReason.HANDSHAKE] == 1
    assert "extender port: rejected 127.0.0.1: tls handshake: " in caplog.text
    assert ("peer did not return a certificate" if of == "nobody" else "certificate verify failed") in caplog.text


@ON_BOTH_LOOPS
@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("scheduler", "system:kube-scheduler"),
        ("stranger", "stranger"),
        ("stranger", "stranger.example"),
    ],
)
def test_a_client_of_a_certain_name_is_answered(
    certificates: Certificates, loop: LoopFactory, client: str, name: str
) -> None:
    served = port(certificates, tls_directory=certificates.directory(clients=True), tls_client_names=["somebody", name])
    assert requested(served, certificates.client_tls(client), loop)[0] == 200


@ON_BOTH_LOOPS
@pytest.mark.parametrize(
    ("client", "name"), [("stranger", "system:kube-scheduler"), ("scheduler", "kube-scheduler"), ("scheduler", "*")]
)
def test_a_client_of_another_name_is_told_that_it_may_not_ask(
    loop: LoopFactory, client: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(tmp_path / "ca")
    served = port(certificates, tls_directory=certificates.directory(clients=True), tls_client_names=[name])
    status, body = requested(served, certificates.client_tls(client), loop)
    assert (status, body) == (403, b"The client certificate is not allowed.")
    assert served.connections.rejected[RejectReason.CLIENT_NAME] == 1
    assert "not for one of KINDRED_TLS_CLIENT_NAMES" in caplog.text


# Files that cannot be used.


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"tls.crt": None}, "certificate {}: No such file or directory"),
        ({"tls.crt": b"just text\n"}, "certificate {}: no certificate in PEM"),
        ({"tls.key": OTHER_KEY}, "key {} does not fit certificate"),
        ({"ca.crt": b"just text\n"}, "authorities {}: no certificates in PEM"),
        ({"ca.crt": b""}, "authorities {}: empty"),
    ],
    ids=["missing", "no-pem", "other-key", "no-ca", "empty-ca"],
)
def test_an_error_names_setting_file_and_reason(
    certificates: Certificates, changed: dict[str, bytes | None], expected: str, tmp_path: Path
) -> None:
    files = certificates.secret()
    ((name, content),) = changed.items()
    files[name] = certificates.key("stranger").read_bytes() if content == OTHER_KEY else content or b""
    secret = MountedSecret(tmp_path / "mounted", files)
    if content is None:
        secret.file(name).unlink()
    with pytest.raises(ConfigurationError) as caught:
        port(certificates, tls_directory=secret.file(""))
    assert str(caught.value).startswith(f"KINDRED_TLS_DIRECTORY: {expected.format(secret.file(name))}")


# A directory without authorities.

EFFECT: Final = {"listen": "0.0.0.0:0", "bind": True}


@pytest.mark.parametrize(
    ("settings", "asks"),
    [
        pytest.param({}, False, id="nothing-to-protect"),
        pytest.param({"listen": "0.0.0.0:0"}, False, id="verbs-without-an-effect"),
        pytest.param({"bind": True}, False, id="the-loopback"),
        pytest.param({**EFFECT, "allow_unauthenticated_effects": True}, False, id="allowed"),
        pytest.param(EFFECT, True, id="an-effect"),
        pytest.param({"tls_client_names": ["kube-scheduler"]}, True, id="names"),
    ],
)
def test_only_a_port_whose_clients_can_have_no_effect_starts_without_them(
    certificates: Certificates, settings: dict[str, Any], *, asks: bool
) -> None:
    without = Settings.model_validate({"tls_directory": certificates.directory(), **settings})
    assert wants_certificates(without) == asks
    tls = server_tls(without, clients=True)
    assert tls is not None
    assert (tls.client_ca is not None) == asks
    if asks:
        with pytest.raises(ConfigurationError, match=r"authorities .*ca\.crt: No such file or directory"):
            tls.read()
    complete = Settings.model_validate({"tls_directory": certificates.directory(clients=True), **settings})
    assert wants_certificates(complete)
    assert not port_rule(complete, "extender").is_open


def test_without_a_certificate_there_is_no_tls() -> None:
    assert server_tls(Settings(), clients=True) is None
