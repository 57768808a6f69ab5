"""`kindred debug pod`, against an admin port."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from click.testing import CliRunner, Result
from fastapi import Depends, FastAPI, Header, HTTPException

from app.admin.debug_pods_routes import debug_pods_router
from app.commands.debug_command import debug_group, seconds_of
from app.commands.text_columns import WIDTH
from app.telemetry.debugged_pods import DebuggedPods
from tests.app.serving import until
from tests.app.telemetry.passing_time import Clock
from tests.openssl import Authority


class Running(uvicorn.Server):
    """A server in a thread."""

    @property
    def url(self) -> str:
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"{'https' if self.config.is_ssl else 'http'}://{host}:{port}"


@contextmanager
def running(app: FastAPI, tls: Authority | None = None) -> Iterator[Running]:
    """Serve, with a certificate where there is an authority."""
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off")
    if tls is not None:
        config.ssl_certfile, config.ssl_keyfile = tls.crt("server"), tls.key("server")
    server = Running(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        until(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def pods() -> DebuggedPods:
    clock = Clock()
    return DebuggedPods(clock)


@pytest.fixture
def admin(pods: DebuggedPods) -> Iterator[Running]:
    app = FastAPI()
    app.include_router(debug_pods_router(pods, lambda: 1_763_812_800.0))
    with running(app) as server:
        yield server


def kindred_debug(*arguments: object) -> Result:
    return CliRunner().invoke(debug_group, [str(argument) for argument in arguments])


def test_a_pod_is_debugged_until_a_time_and_taken_back(admin: Running, pods: DebuggedPods) -> None:
    result = kindred_debug("pod", "shop/web", "--for", "1h30m", "--server", admin.url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "shop/web is logged in full until 2025-11-22T13:30:00Z" in " ".join(result.stdout.split())
    assert max(map(len, result.stdout.splitlines())) <= WIDTH
    assert "kindred.debug_pod" in result.stdout
    assert pods.left() == {"shop/web": 5400}
    result = kindred_debug("pod", "shop/web", "--off", "--server", f"{admin.url}/")
    assert (result.exit_code, result.stderr) == (0, "")
    assert pods.left() == {}


def test_it_is_ten_minutes_unless_it_is_said(admin: Running, pods: DebuggedPods) -> None:
    assert kindred_debug("pod", "shop/web", "--server", admin.url).exit_code == 0
    assert pods.left() == {"shop/web": 600}


@pytest.mark.parametrize(
    ("duration", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1h1m1s", 3661), ("24h", 86400)]
)
def test_durations_are_as_go_writes_them(duration: str, seconds: float) -> None:
    assert seconds_of(duration) == seconds


@pytest.mark.parametrize("duration", ["", "0s", "10", "m", "-1m", "10 m", "1m1h", "24h1s", "1d", "٣m"])
def test_other_durations_are_refused(duration: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 90s, 10m or 1h30m, of 24h at most"):
        seconds_of(duration)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["shop/web", "--for", "soon"], "'soon': expected a duration", id="duration"),
        pytest.param(["web"], "'web': expected NAMESPACE/NAME", id="no-namespace"),
        pytest.param(["shop/web?for=1"], "expected NAMESPACE/NAME", id="no-name"),
        pytest.param(["shop/web", "--off"], "404 Not Found: pod shop/web: its requests are not logged", id="not-there"),
        pytest.param(["shop/" + "a" * 300], "422 Unprocessable", id="long-name"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_status_2(
    arguments: list[str], message: str, admin: Running, pods: DebuggedPods
) -> None:
    result = kindred_debug("pod", *arguments, "--server", admin.url)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert pods.left() == {}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("127.0.0.1:8890", "127.0.0.1:8890: Request URL is missing an 'http://'", id="no-scheme"),
        pytest.param("http://:8890:1", "http://:8890:1: Invalid port: '8890:1'", id="no-port"),
        pytest.param("http://[", "no service at [ (Name or service not known): start one", id="no-host"),
    ],
)
def test_a_url_that_is_none_is_named(url: str, message: str) -> None:
    result = kindred_debug("pod", "shop/web", "--server", url)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_where_there_is_no_service_the_next_step_is_said() -> None:
    result = kindred_debug("pod", "shop/web", "--server", "http://127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: no service at 127.0.0.1:1 (Connection refused): start one with `kindred serve --demo`"
        ", name one by --server URL, or forward its port: `kubectl -n kindred port-forward deploy/kindred 8890`\n"
    )


def test_another_service_is_told_from_the_admin_port() -> None:
    app = FastAPI()
    with running(app) as server:
        result = kindred_debug("pod", "shop/web", "--server", server.url)
        assert (result.exit_code, result.stderr) == (2, f"Error: {server.url}: 404 Not Found: Not Found\n")
        app.put("/debug/pods/{namespace}/{name}")(lambda: ["hello"])
        result = kindred_debug("pod", "shop/web", "--server", server.url)
        assert (result.exit_code, result.stderr) == (2, f"Error: {server.url}: is that the admin port?\n")


def test_the_token_is_sent_and_its_absence_told(pods: DebuggedPods, tmp_path: Path) -> None:
    def check(authorization: str = Header("")) -> None:
        if authorization != "Bearer secret":
            raise HTTPException(401)

    app = FastAPI()
    app.include_router(debug_pods_router(pods, lambda: 0.0), dependencies=[Depends(check)])
    (tmp_path / "token").write_text("secret\n")
    with running(app) as server:
        refused = kindred_debug("pod", "shop/web", "--server", server.url)
        assert (refused.exit_code, refused.stderr) == (
            2,
            f"Error: {server.url}: 401 Unauthorized: give --token-file\n",
        )
        taken = kindred_debug("pod", "shop/web", "--server", server.url, "--token-file", tmp_path / "token")
        assert (taken.exit_code, taken.stderr) == (0, "")
    assert pods.left() == {"shop/web": 600}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = kindred_debug("pod", "shop/web", "--token-file", tmp_path / "absent")
    assert result.exit_code == 2
    assert str(tmp_path / "absent") in result.stderr


def test_a_port_with_tls_is_asked_with_its_authorities(pods: DebuggedPods, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=IP:127.0.0.1")
    app = FastAPI()
    app.include_router(debug_pods_router(pods, lambda: 0.0))
    with running(app, authority) as server:
        refused = kindred_debug("pod", "shop/web", "--server", server.url)
        assert refused.exit_code == 2
        assert refused.stderr.startswith(f"Error: {server.url}: ")
        assert refused.stderr.endswith("; see --ca-file\n")
        assert "no service" not in refused.stderr
        assert pods.left() == {}
        trusted = kindred_debug("pod", "shop/web", "--server", server.url, "--ca-file", authority.crt())
        assert trusted.exit_code == 0
    assert pods.left() == {"shop/web": 600}
