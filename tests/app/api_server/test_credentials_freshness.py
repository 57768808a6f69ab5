"""How credentials are kept fresh: token files, plugins, and certificates that change."""

import asyncio
import logging
from pathlib import Path

import pytest
import yaml

from app.api_server.credentials import Credentials, CredentialsError, load_credentials
from tests.app.api_server.certificates import Certificates
from tests.app.api_server.kubeconfigs import (
    Clock,
    authorization,
    certificate_status,
    exec_user,
    printing,
    runs,
    write_kubeconfig,
    write_plugin,
)

KEPT = "keeping the previous version"


def test_nobody_has_no_header(tmp_path: Path) -> None:
    assert authorization(load_credentials(write_kubeconfig(tmp_path / "config"), None)) is None


def test_plain_http_has_no_tls(tmp_path: Path) -> None:
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", "http://h", user={"token": "t"}), None)
    assert credentials.tls() is None
    assert authorization(credentials, refresh=True) is None


def with_token_file(folder: Path, clock: Clock) -> tuple[Credentials, Path]:
    token = folder / "token"
    token.write_text("one")
    config = write_kubeconfig(folder / "config", user={"tokenFile": "token"})
    return load_credentials(config, None, clock=clock), token


def test_a_token_file_is_read_again_once_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    credentials, token = with_token_file(tmp_path, clock)
    token.write_text("two")
    clock.now += 59
    assert authorization(credentials) == "Bearer one"
    clock.now += 1
    assert authorization(credentials) == "Bearer two"
    token.write_text("three")
    clock.now += 59
    assert authorization(credentials) == "Bearer two"


def test_a_token_file_is_read_at_once_on_request(tmp_path: Path) -> None:
    credentials, token = with_token_file(tmp_path, Clock())
    token.write_text("two")
    assert authorization(credentials) == "Bearer one"
    assert authorization(credentials, refresh=True) == "Bearer two"


def test_a_token_file_that_is_gone_leaves_the_token_that_was_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    credentials, token = with_token_file(tmp_path, clock)
    token.unlink()
    clock.now += 60
    assert authorization(credentials) == authorization(credentials) == "Bearer one"
    assert caplog.messages == [
        f"kubeconfig {tmp_path}/config, context here: {token}: No such file or directory; {KEPT}"
    ]


def test_a_token_that_was_refused_is_not_kept(tmp_path: Path) -> None:
    credentials, token = with_token_file(tmp_path, Clock())
    token.write_text("")
    with pytest.raises(CredentialsError, match=r"context here: the user's tokenFile is no login"):
        authorization(credentials, refresh=True)


def with_plugin(folder: Path, status: str, wall_clock: Clock) -> Credentials:
    config = write_kubeconfig(folder / "config", user=exec_user(write_plugin(folder, printing(status))))
    return load_credentials(config, None, wall_clock=wall_clock)


def test_a_plugin_runs_once_for_a_login_without_end(tmp_path: Path) -> None:
    wall_clock = Clock(0.0)
    credentials = with_plugin(tmp_path, '{"token": "abc"}', wall_clock)
    assert runs(tmp_path) == 0
    assert authorization(credentials) == "Bearer abc"
    wall_clock.now += 1e9
    assert authorization(credentials) == "Bearer abc"
    assert runs(tmp_path) == 1


def test_a_plugin_runs_again_before_its_login_ends(tmp_path: Path) -> None:
    wall_clock = Clock(0.0)
    credentials = with_plugin(tmp_path, '{"token": "abc", "expirationTimestamp": "1970-01-01T01:00:00Z"}', wall_clock)
    authorization(credentials)
    wall_clock.now = 3539.0
    authorization(credentials)
    assert runs(tmp_path) == 1
    wall_clock.now = 3540.0
    authorization(credentials)
    assert runs(tmp_path) == 2


def test_a_plugin_runs_at_once_on_request(tmp_path: Path) -> None:
    credentials = with_plugin(tmp_path, '{"token": "abc"}', Clock(0.0))
    authorization(credentials)
    authorization(credentials, refresh=True)
    assert runs(tmp_path) == 2


def test_a_plugin_that_fails_is_an_error_each_time_and_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "kubernetes")
    script = write_plugin(tmp_path, "echo no >&2; exit 1")
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", user=exec_user(script)), None)
    for count in (1, 2):
        with pytest.raises(CredentialsError) as caught:
            authorization(credentials)
        expected = f"kubeconfig {tmp_path}/config, context here: exec plugin {script}: exec: process returned 1. no"
        assert (str(caught.value), runs(tmp_path)) == (expected, count)
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


def test_a_login_that_cannot_be_renewed_before_its_end_is_an_error(tmp_path: Path) -> None:
    wall_clock = Clock(0.0)
    credentials = with_plugin(tmp_path, '{"token": "abc", "expirationTimestamp": "1970-01-01T01:00:00Z"}', wall_clock)
    authorization(credentials)
    write_plugin(tmp_path, "exit 1")
    wall_clock.now = 3540.0
    with pytest.raises(CredentialsError, match=r"exec: process returned 1$"):
        authorization(credentials)


def test_calls_at_the_same_time_share_one_run_and_the_loop_goes_on(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, "sleep 0.3\n" + printing('{"token": "abc"}'))
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", user=exec_user(script)), None)

    async def main() -> int:
        calls = asyncio.gather(*(credentials.headers() for _ in range(20)))
        turns = 0
        while not calls.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert await calls == [{"Authorization": "Bearer abc"}] * 20
        await asyncio.gather(*(credentials.headers(refresh=True) for _ in range(20)))
        return turns

    assert asyncio.run(main()) > 10
    assert runs(tmp_path) == 2


def test_calls_at_the_same_time_share_one_failure(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, "sleep 0.2; exit 1")
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", user=exec_user(script)), None)

    async def main() -> list[object]:
        return list(await asyncio.gather(*(credentials.headers() for _ in range(20)), return_exceptions=True))

    assert {type(result) for result in asyncio.run(main())} == {CredentialsError}
    assert runs(tmp_path) == 1


def test_a_forced_refresh_does_not_make_do_with_one_that_is_not(tmp_path: Path, certificates: Certificates) -> None:
    # The minute of the authority's file is over, so a first call looks at that, and leaves the login alone.
    clock = Clock()
    script = write_plugin(tmp_path, printing('{"token": "abc"}'))
    config = write_kubeconfig(
        tmp_path / "config",
        cluster={"certificate-authority": str(certificates.crt("authority"))},
        user=exec_user(script),
    )
    credentials = load_credentials(config, None, clock=clock)

    async def main() -> None:
        await credentials.headers()
        clock.now += 60
        await asyncio.gather(credentials.headers(), *(credentials.headers(refresh=True) for _ in range(5)))

    asyncio.run(main())
    assert runs(tmp_path) == 2


def test_a_caller_that_gives_up_does_not_end_the_refresh_of_others(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, "sleep 0.3\n" + printing('{"token": "abc"}'))
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", user=exec_user(script)), None)

    async def main() -> dict[str, str]:
        first, second = (asyncio.create_task(credentials.headers()) for _ in range(2))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(main()) == {"Authorization": "Bearer abc"}
    assert runs(tmp_path) == 1


def test_a_failure_that_nobody_waits_for_is_not_reported_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = write_plugin(tmp_path, "sleep 0.1; exit 1")
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", user=exec_user(script)), None)

    async def main() -> None:
        call = asyncio.create_task(credentials.headers())
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.sleep(0.4)

    asyncio.run(main())
    assert caplog.messages == []


def test_a_login_is_not_sent_to_another_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    config = write_kubeconfig(tmp_path / "config", user={"token": "one"})
    credentials = load_credentials(config, None, clock=clock)
    write_kubeconfig(tmp_path / "config", "https://other", user={"token": "of-the-other"})
    clock.now += 60
    assert authorization(credentials) == "Bearer one"
    expected = f"kubeconfig {config}, context here: the server is another one by now: needs a restart"
    assert caplog.messages == [f"{expected}; {KEPT}"]
    with pytest.raises(CredentialsError, match=expected):
        authorization(credentials, refresh=True)


def test_the_context_stays_the_one_of_the_start(tmp_path: Path) -> None:
    clock = Clock()
    config = write_kubeconfig(tmp_path / "config", user={"token": "one"})
    credentials = load_credentials(config, None, clock=clock)
    document = yaml.safe_load((tmp_path / "config").read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "c", "user": "v"}})
    document["users"] = [
        {"name": "u", "user": {"token": "two"}},
        {"name": "v", "user": {"token": "of-another"}},
    ]
    (tmp_path / "config").write_text(yaml.safe_dump({**document, "current-context": "there"}))
    clock.now += 60
    assert authorization(credentials) == "Bearer two"


# Certificates that change.


def with_certificate_files(folder: Path, certificates: Certificates, clock: Clock) -> Credentials:
    replace_client(folder, certificates, "alice")
    (folder / "ca.crt").write_bytes(certificates.crt("authority").read_bytes())
    config = write_kubeconfig(
        folder / "config",
        cluster={"certificate-authority": "ca.crt"},
        user={"client-certificate": "client.crt", "client-key": "client.key"},
    )
    return load_credentials(config, None, clock=clock)


def replace_client(folder: Path, certificates: Certificates, name: str) -> None:
    (folder / "client.crt").write_bytes(certificates.crt(name).read_bytes())
    (folder / "client.key").write_bytes(certificates.key(name).read_bytes())


def test_certificate_files_that_changed_are_a_new_context_a_minute_later(
    tmp_path: Path, certificates: Certificates
) -> None:
    clock = Clock()
    credentials = with_certificate_files(tmp_path, certificates, clock)
    first = credentials.tls()
    clock.now += 60
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    replace_client(tmp_path, certificates, "bob")
    clock.now += 59
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    clock.now += 1
    authorization(credentials)
    assert credentials.tls() not in (first, None)
    assert credentials.generation == 1


def test_an_authority_that_changed_is_a_new_context_at_once_on_request(
    tmp_path: Path, certificates: Certificates
) -> None:
    credentials = with_certificate_files(tmp_path, certificates, Clock())
    (tmp_path / "ca.crt").write_bytes(certificates.crt("stranger").read_bytes())
    authorization(credentials, refresh=True)
    assert credentials.generation == 1


def test_half_changed_certificates_leave_the_context_that_was(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    credentials = with_certificate_files(tmp_path, certificates, clock)
    first = credentials.tls()
    (tmp_path / "client.crt").write_bytes(certificates.crt("bob").read_bytes())
    clock.now += 60
    authorization(credentials)
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    where = f"kubeconfig {tmp_path}/config, context here"
    assert caplog.messages == [
        f"{where}: client-key {tmp_path}/client.key does not fit client-certificate {tmp_path}/client.crt; {KEPT}"
    ]
    replace_client(tmp_path, certificates, "bob")
    clock.now += 60
    authorization(credentials)
    assert credentials.generation == 1


def test_certificates_that_were_refused_are_not_kept(tmp_path: Path, certificates: Certificates) -> None:
    credentials = with_certificate_files(tmp_path, certificates, Clock())
    (tmp_path / "client.key").unlink()
    with pytest.raises(CredentialsError, match=rf"File does not exist: {tmp_path}/client.key$"):
        authorization(credentials, refresh=True)


def test_a_certificate_of_a_plugin_is_a_new_context(tmp_path: Path, certificates: Certificates) -> None:
    credentials = with_plugin(tmp_path, certificate_status(certificates, "alice"), Clock(0.0))
    seen: list[tuple[object, int]] = [(credentials.tls(), credentials.generation)]
    for name in ("alice", "alice", "bob"):
        write_plugin(tmp_path, printing(certificate_status(certificates, name)))
        assert authorization(credentials, refresh=True) is None
        seen.append((credentials.tls(), credentials.generation))
    assert [generation for _, generation in seen] == [0, 1, 1, 2]
    assert seen[1] == seen[2]
    assert len({id(context) for context, _ in seen}) == 3


def test_a_certificate_of_a_plugin_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    credentials = with_plugin(tmp_path, '{"clientCertificateData": "C", "clientKeyData": "K"}', Clock(0.0))
    expected = rf"context here: exec plugin {tmp_path}/plugin: clientCertificateData: no certificate in PEM$"
    with pytest.raises(CredentialsError, match=expected):
        authorization(credentials)
