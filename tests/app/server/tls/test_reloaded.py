"""Certificates and authorities that are replaced while the port is open, and what stands meanwhile."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import uvloop

from app.api_server.tls import PemSource, TlsMaterial
from app.server.connections import Connections
from app.server.ports import Port
from app.server.tls import ReloadedTls, server_tls
from app.settings.limits import DEFAULTS
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, Connection, connected, read_response, request, serving, until
from tests.app.server.tls.secrets import Certificates, MountedSecret
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
OFTEN: Final = 0.02  # seconds
YEAR: Final = 365 * 86400.0
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]
ON_BOTH_LOOPS: Final = pytest.mark.parametrize(
    "loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificates, Certificates]:
    folder = tmp_path_factory.mktemp("authorities")
    return Certificates(folder / "old"), Certificates(folder / "new")


@pytest.fixture
def old(authorities: tuple[Certificates, Certificates]) -> Certificates:
    return authorities[0]


@pytest.fixture
def new(authorities: tuple[Certificates, Certificates]) -> Certificates:
    return authorities[1]


@pytest.fixture
def secret(old: Certificates, tmp_path: Path) -> MountedSecret:
    return MountedSecret(tmp_path / "mounted", old.secret())


def settings_of(secret: MountedSecret) -> Settings:
    return Settings(
        listen="127.0.0.1:0",
        tls_directory=secret.file(""),
    )


def followed(secret: MountedSecret, wall_clock: Callable[[], float] = time.time) -> ReloadedTls:
    tls = server_tls(settings_of(secret), clients=True)
    assert tls is not None
    return ReloadedTls("extender", tls, wall_clock, OFTEN)


def port(tls: ReloadedTls) -> Port:
    app = create_service(Settings(), shop(), None).app
    connections = Connections("extender", DEFAULTS)
    return Port(app, "127.0.0.1", 0, connections, tls, (tls.run,))


def run(talked: Coroutine[Any, Any, None], loop: LoopFactory = asyncio.new_event_loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked)


def reloaded(tls: ReloadedTls) -> None:
    """Follow the files until they were read anew."""

    async def following() -> None:
        async with asyncio.timeout(PATIENCE):
            running = asyncio.create_task(tls.run())
            await until(lambda: tls.reloads["success"] == 1)
            running.cancel()

    run(following())


async def requested(connection: Connection) -> int:
    reader, writer = connection
    writer.write(request("/filter", QUESTION))
    return (await read_response(reader))[0]


async def is_responded(number: int, tls: ssl.SSLContext) -> bool:
    """Return whether a new connection is; the client may be told that it is not at once, or when it asks."""
    try:
        async with connected(number, tls) as connection:
            return await requested(connection) == 200
    except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
        return False


@ON_BOTH_LOOPS
def test_new_connections_get_what_the_files_hold_now_and_standing_ones_go_on(
    secret: MountedSecret, old: Certificates, new: Certificates, loop: LoopFactory
) -> None:
    tls = followed(secret)

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port(tls)) as (_, number):
            before, after = old.client_tls("scheduler"), new.client_tls("scheduler")
            async with connected(number, before) as standing:
                assert await requested(standing) == 200
                secret.replace(new.secret())
                await until(lambda: tls.reloads["success"] == 1)
                assert await requested(standing) == 200
                assert await is_responded(number, after)
                assert not await is_responded(number, before)
                # The authority that was taken away is trusted no more, whatever the client thinks of the server.
                assert not await is_responded(number, old.client_tls("scheduler", trusted=new))
                assert await requested(standing) == 200

    run(talked(), loop)
    assert tls.reloads == {"success": 1, "failure": 0}


def test_a_session_of_before_is_not_resumed(secret: MountedSecret, old: Certificates, new: Certificates) -> None:
    """A resumed session would have been let in by a certificate that is trusted no more."""
    tls = followed(secret)
    client = old.client_tls("scheduler")
    client.maximum_version = ssl.TLSVersion.TLSv1_2  # of which the session is known at the end of the handshake
    session = _handshaken(client, tls.context, None).session
    assert _handshaken(client, tls.context, session).session_reused
    secret.replace({**new.secret(), "tls.crt": old.secret()["tls.crt"], "tls.key": old.secret()["tls.key"]})
    reloaded(tls)
    with pytest.raises(ssl.SSLError):
        _handshaken(client, tls.context, session)


def _handshaken(client: ssl.SSLContext, server: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLObject:
    """Shake hands over buffers, and give the client's side."""
    upward, downward = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(downward, upward, server_hostname="kindred", session=session)
    theirs = server.wrap_bio(upward, downward, server_side=True)
    done = 0
    while done < 2:
        done = 0
        for side in (ours, theirs):
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass
    return ours


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"tls.crt": b"-----BEGIN CERTIFICATE-----\nMIIB"}, "KINDRED_TLS_DIRECTORY: certificate"),
        ({"tls.crt": b""}, "empty"),
        ({"tls.key": b"half of a key"}, "no private key in PEM"),
        ({"tls.key": "stranger"}, "does not fit"),
        ({"ca.crt": b"no authority"}, "no certificates in PEM"),
        ({"ca.crt": None}, "No such file or directory"),
    ],
    ids=["half-written", "empty", "no-key", "other-key", "no-authority", "authorities-gone"],
)
def test_files_that_cannot_be_used_change_nothing_until_they_can(
    secret: MountedSecret,
    authorities: tuple[Certificates, Certificates],
    changed: dict[str, bytes | str | None],
    problem: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    old, new = authorities
    tls = followed(secret)
    broken = {name: old.key(to).read_bytes() if isinstance(to, str) else to for name, to in changed.items()}

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port(tls)) as (_, number):
            secret.replace({name: each for name, each in {**old.secret(), **broken}.items() if each is not None})
            await until(lambda: tls.reloads["failure"] >= 3)
            assert not await is_responded(number, old.client_tls())
            assert await is_responded(number, old.client_tls("scheduler"))
            secret.replace(new.secret())
            await until(lambda: tls.reloads["success"] == 1)
            assert await is_responded(number, new.client_tls("scheduler"))

    run(talked())
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert problem in error
    assert error.endswith("; keeping the previous version")


def test_a_certificate_that_has_expired_does_not_replace_another(
    secret: MountedSecret, old: Certificates, new: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    now = [time.time()]
    tls = followed(secret, lambda: now[0])
    assert tls.not_after > now[0]
    now[0] += YEAR

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port(tls)) as (_, number):
            secret.replace(new.secret())
            await until(lambda: tls.reloads["failure"] >= 1)
            assert await is_responded(number, old.client_tls("scheduler"))

    run(talked())
    assert "has expired; keeping the previous version" in caplog.text


def test_a_certificate_that_has_expired_at_the_start_is_told_of(
    secret: MountedSecret, caplog: pytest.LogCaptureFixture
) -> None:
    followed(secret, lambda: time.time() + YEAR)
    assert f"certificate {secret.file('tls.crt')}: has expired; clients that verify it will reject it" in caplog.text


def test_the_end_of_the_certificate_is_known(secret: MountedSecret) -> None:
    assert followed(secret).not_after == pytest.approx(time.time() + 2 * 86400, abs=3600)


def test_the_end_of_a_certificate_that_was_read_anew_is_known(secret: MountedSecret, new: Certificates) -> None:
    new.make("later", "subjectAltName=DNS:kindred,IP:127.0.0.1", days=9)
    tls = followed(secret)
    secret.replace(new.secret("later"))
    reloaded(tls)
    assert tls.not_after == pytest.approx(time.time() + 9 * 86400, abs=3600)


def test_other_authorities_are_taken_beside_a_certificate_that_has_expired(
    secret: MountedSecret, old: Certificates, new: Certificates
) -> None:
    tls = followed(secret, lambda: time.time() + YEAR)
    secret.replace({**old.secret(), "ca.crt": new.secret()["ca.crt"]})
    reloaded(tls)
    assert tls.reloads == {"success": 1, "failure": 0}


def test_a_secret_that_is_replaced_between_two_files_is_read_again(
    secret: MountedSecret, new: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, plain = server_tls(settings_of(secret), clients=True), PemSource.read
    replacements = iter([new.secret()])

    def read(source: PemSource) -> bytes:
        found = plain(source)
        if source.name == "certificate":
            for replacement in replacements:
                secret.replace(replacement)
        return found

    monkeypatch.setattr(PemSource, "read", read)
    written = new.secret()
    assert tls is not None
    assert tls.read() == TlsMaterial(written["ca.crt"], written["tls.crt"], written["tls.key"])
