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

from app.api_server.credential_errors import ConfigurationError
from app.main import create_service
from app.server.connections import Refusal
from app.server.ports import Port
from app.server.tls.server_context import admin_tls, scheduler_tls
from app.settings import Settings
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, answer, connected, request, serving
from tests.app.server.tls.secrets import Certificates
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
ON_BOTH_LOOPS: Final = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls") / "ca")


def run(talked: Coroutine[Any, Any, None], loop: LoopFactory = asyncio.new_event_loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked)


def port(certificates: Certificates, **settings: object) -> Port:
    named = {"tls_cert_file": certificates.crt("server"), "tls_key_file": certificates.key("server")}
    return create_service(Settings.model_validate({"listen_port": 0, **named, **settings}), shop(), None).ports[0]


def asked(served: Port, tls: ssl.SSLContext, loop: LoopFactory = asyncio.new_event_loop) -> tuple[int, bytes]:
    """Ask over a connection of its own; raises what a client is told of the connection."""
    answers = []

    async def talked() -> None:
        async with (
            asyncio.timeout(PATIENCE),
            serving(served) as (_, number),
            connected(number, tls) as (reader, writer),
        ):
            writer.write(request("/filter", QUESTION))
            status, _, body = await answer(reader)
            answers.append((status, body))

    run(talked(), loop)
    return answers[0]


@ON_BOTH_LOOPS
def test_questions_are_answered_over_tls(certificates: Certificates, loop: LoopFactory) -> None:
    status, body = asked(port(certificates), certificates.client_tls(), loop)
    assert (status, json.loads(body)["NodeNames"]) == (200, ["a1"])


def test_a_client_that_offers_http_2_speaks_http_1_1(certificates: Certificates) -> None:
    tls = certificates.client_tls()
    tls.set_alpn_protocols(["h2", "http/1.1"])

    async def talked() -> None:
        served = serving(port(certificates))
        async with asyncio.timeout(PATIENCE), served as (_, number), connected(number, tls) as (_, writer):
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"

    run(talked())


@pytest.mark.parametrize(
    ("lowest", "spoken"),
    [("1.2", ssl.TLSVersion.TLSv1_1), ("1.3", ssl.TLSVersion.TLSv1_2)],
    ids=["1.1-below-1.2", "1.2-below-1.3"],
)
def test_lower_versions_are_refused(
    certificates: Certificates, lowest: str, spoken: ssl.TLSVersion, caplog: pytest.LogCaptureFixture
) -> None:
    tls = certificates.client_tls()
    tls.set_ciphers("ALL:@SECLEVEL=0")  # or OpenSSL would not even offer the old ones
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1_1, spoken
    served = port(certificates, tls_min_version=lowest)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        asked(served, tls)
    assert "rejected 127.0.0.1: tls handshake: unsupported protocol" in caplog.text
    assert served.connections.refused[Refusal.HANDSHAKE] == 1


def test_tls_1_2_is_spoken(certificates: Certificates) -> None:
    tls = certificates.client_tls()
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    assert asked(port(certificates), tls)[0] == 200


# Client certificates.


@ON_BOTH_LOOPS
def test_a_client_with_a_certificate_of_the_authorities_is_answered(
    certificates: Certificates, loop: LoopFactory
) -> None:
    served = port(certificates, tls_client_ca_file=certificates.crt())
    assert asked(served, certificates.client_tls("scheduler"), loop)[0] == 200


@ON_BOTH_LOOPS
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("of", ["nobody", "another-authority"])
def test_a_client_without_one_is_not(
    loop: LoopFactory, version: ssl.TLSVersion, of: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates, other = Certificates(tmp_path / "ca"), Certificates(tmp_path / "other")
    served = port(certificates, tls_client_ca_file=certificates.crt())
    tls = certificates.client_tls() if of == "nobody" else other.client_tls("scheduler", certificates)
    tls.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        asked(served, tls, loop)
    assert served.connections.refused[Refusal.HANDSHAKE] == 1
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
    served = port(certificates, tls_client_ca_file=certificates.crt(), tls_client_names=["somebody", name])
    assert asked(served, certificates.client_tls(client), loop)[0] == 200


@ON_BOTH_LOOPS
@pytest.mark.parametrize(
    ("client", "name"), [("stranger", "system:kube-scheduler"), ("scheduler", "kube-scheduler"), ("scheduler", "*")]
)
def test_a_client_of_another_name_is_told_that_it_may_not_ask(
    loop: LoopFactory, client: str, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(tmp_path / "ca")
    served = port(certificates, tls_client_ca_file=certificates.crt(), tls_client_names=[name])
    status, body = asked(served, certificates.client_tls(client), loop)
    assert (status, body) == (403, b"The client certificate is not allowed.")
    assert served.connections.refused[Refusal.CLIENT_NAME] == 1
    assert "not for one of KINDRED_TLS_CLIENT_NAMES" in caplog.text


# Files that cannot be used.


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"tls_cert_file": None}, "KINDRED_TLS_CERT_FILE: certificate {}: No such file or directory"),
        ({"tls_cert_file": "text"}, "KINDRED_TLS_CERT_FILE: certificate {}: no certificate in PEM"),
        ({"tls_key_file": "other.key"}, "KINDRED_TLS_KEY_FILE: key {} does not fit certificate"),
        ({"tls_client_ca_file": "text"}, "KINDRED_TLS_CLIENT_CA_FILE: authorities {}: no certificates in PEM"),
        ({"tls_client_ca_file": "empty"}, "KINDRED_TLS_CLIENT_CA_FILE: authorities {}: empty"),
    ],
    ids=["missing", "no-pem", "other-key", "no-ca", "empty-ca"],
)
def test_an_error_names_setting_file_and_reason(
    certificates: Certificates, changed: dict[str, str | None], expected: str, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("just text\n")
    (tmp_path / "empty").touch()
    (tmp_path / "other.key").write_bytes(certificates.key("stranger").read_bytes())
    ((name, file),) = changed.items()
    path = tmp_path / (file or "missing")
    with pytest.raises(ConfigurationError) as caught:
        port(certificates, **{name: path})
    assert str(caught.value).startswith(expected.format(path))


def test_without_a_certificate_there_is_no_tls() -> None:
    assert scheduler_tls(Settings()) is None
    assert admin_tls(Settings(admin_token_file=Path("token"))) is None
