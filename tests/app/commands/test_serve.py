"""`kindred serve` as a process of its own: what it prints, what it answers, and how it ends."""

import asyncio
import os
import re
import shlex
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app import __version__
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.feeds.dumps import as_json, kinded, listed
from tests.app.questions import NEAR_WEB, ZONE, by_name
from tests.app.serving import ANY_PORT, PATIENCE, ROOT, Service, connected, kindred, request_head, until
from tests.builders import make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.faults import Stall
from tests.fake_apiserver.resources import NODES, PODS

WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
DUMP = as_json(
    listed(
        *kinded(
            make_node("a1").label(ZONE, "a"),
            make_node("b1").label(ZONE, "b"),
            make_pod("w").label("app", "web").on("a1"),
        )
    )
)


def speaks_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


# What is printed, and what can be pasted.


@pytest.mark.parametrize("inside", [True, False], ids=["inside-the-project", "elsewhere"])
def test_the_demo_prints_its_page_first_then_its_address_and_curl_lines_that_can_be_pasted(
    tmp_path: Path, *, inside: bool
) -> None:
    directory, rendered = (ROOT, Path()) if inside else (tmp_path, ROOT)
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT, directory=directory) as service:
        until(lambda: "prioritize" in service.stdout)
        lines = service.stdout.splitlines()
        page = lines[0].removeprefix("Cluster, pending pods and explanations in a browser: ")
        assert httpx.get(page).headers["content-type"] == "text/html; charset=utf-8"
        assert lines[1:4] == [
            f"Debugging at {page}debug/mirror",
            f"Kindred {__version__} answers at {service.url}",
            "Send requests from another terminal:",
        ]
        assert [line for line in lines[4:] if not line.startswith("  curl -s http://127.0.0.1:")] == []
        assert len(lines) == 7
        for line in lines[4:]:
            _, _, url, _, data = shlex.split(line)
            path = Path(data.removeprefix("@"))
            assert rendered / "app/demo/requests" == path.parent
            # curl takes the line breaks of the file out and calls the body a form.
            body = (directory / path).read_bytes().replace(b"\n", b"")
            form = {"content-type": "application/x-www-form-urlencoded"}
            response = httpx.post(url, content=body, headers=form).json()
            assert response["NodeNames"] if url.endswith("/filter") else len(response) > 1
        loaded = " ".join(service.stderr.split())
        assert loaded.startswith(
            "Loaded 60 nodes, 309 pods, 7 namespaces, 1 deviceclasses, 2 resourceslices, 3 resourceclaims ("
        )
        assert service.stderr.count("\n") == 2


@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_dump_is_served_and_questions_are_answered(from_stdin: bool, tmp_path: Path) -> None:  # noqa: FBT001 - one of two cases
    (tmp_path / "dump.json").write_bytes(DUMP)
    snapshot = "-" if from_stdin else str(tmp_path / "dump.json")
    with kindred(tmp_path, "serve", "--snapshot", snapshot, *ANY_PORT, stdin=DUMP) as service:
        assert service.stdout == f"Kindred {__version__} answers at {service.url}\n"
        readiness = httpx.get(f"{service.url}/readyz").json()
        assert (readiness["ready"], readiness["nodes"], readiness["pods"]) == (True, 2, 1)
        response = httpx.post(f"{service.url}/filter", content=by_name(WANTS_WEB, "a1", "b1"))
        assert response.json()["NodeNames"] == ["a1"]
        chunked = httpx.post(f"{service.url}/filter", content=iter([by_name(WANTS_WEB, "a1", "b1"), b" "]))
        assert chunked.status_code == 411


@pytest.mark.skipif(not speaks_ipv6(), reason="there is no IPv6 here")
def test_an_ipv6_address_is_printed_so_that_it_can_be_pasted(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", "--listen", "[::1]:0") as service:
        assert re.fullmatch(r"http://\[::1\]:\d+", service.url)
        assert httpx.get(f"{service.url}/livez").status_code == 200


# The end.


def test_an_interrupt_ends_it_with_status_0_and_nothing_is_left(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service, httpx.Client() as client:
        assert client.get(f"{service.url}/livez").status_code == 200  # and the connection is kept open
        assert service.end(signal.SIGINT) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(service.process.pid, 0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(service.address)
        assert re.fullmatch(r"Loaded [^.]*: not counted\)\n", service.stderr)
        assert service.stderr.count("\n") == 2


def test_a_port_in_use_ends_it_with_a_message(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with kindred(tmp_path, "serve", "--demo", "--listen", f"127.0.0.1:{port}") as service:
            assert service.process.returncode not in {None, 0}
            assert "address already in use" in service.stderr
            assert port in service.stderr
            assert "Traceback" not in service.stderr
            assert service.stdout == ""


def test_a_deeply_nested_dump_is_refused_and_does_not_crash(tmp_path: Path) -> None:
    (tmp_path / "deep").write_bytes(b"a: " + b"[" * 300_000)
    with kindred(tmp_path, "serve", "--snapshot", str(tmp_path / "deep"), *ANY_PORT) as service:
        assert service.process.returncode == 2
        assert service.stderr.startswith("Error: ")
        assert service.stderr.count("\n") == 1


QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "b1")
# Which of the two ports listens first is open, so there may be a line behind this one.
DEBUGGING: Final = re.compile(r"Debugging at (\S+)\n")
AT_ONCE: Final = 5.0  # seconds, also on a busy machine; the grace period is 20 s by default


def kubeconfig(folder: Path, server: str) -> str:
    """Write a kubeconfig, and give its path."""
    return write_kubeconfig(folder / "kubeconfig", server)


def fill(server: FakeApiServer) -> None:
    """Make a cluster of two zones, with one web pod."""
    server.create(NODES.path, make_node("a1").label(ZONE, "a").obj())
    server.create(NODES.path, make_node("b1").label(ZONE, "b").obj())
    server.create(PODS.path, make_pod("w").label("app", "web").on("a1").obj())


async def until_async(condition: Callable[[], Awaitable[bool]]) -> float:
    """Wait for a condition, with patience, while the server of this process serves; return the seconds that it took."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110  # what happens in another process sets no event here
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def readiness(service: Service) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{service.url}/readyz")
    return response.status_code, response.json()


async def until_ready(service: Service) -> None:
    async def ready() -> bool:
        return (await readiness(service))[0] == 200

    await until_async(ready)


async def fitting(service: Service) -> list[str]:
    """Ask where a pod fits that wants to be near a web pod."""
    async with httpx.AsyncClient() as client:
        response = (await client.post(f"{service.url}/filter", content=QUESTION)).json()
    assert response["Error"] == ""
    names: list[str] = response["NodeNames"]
    return names


async def ended(service: Service) -> int:
    return await asyncio.to_thread(service.process.wait, PATIENCE)


def test_it_follows_the_cluster(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            with kindred(tmp_path, "serve", "--kubeconfig", kubeconfig(tmp_path, server.url), *ANY_PORT) as service:
                await until_ready(service)
                assert await fitting(service) == ["a1"]
                server.delete(PODS.path, "w", "default")
                server.create(PODS.path, make_pod("w").label("app", "web").on("b1").obj())

                async def has_moved() -> bool:
                    return await fitting(service) == ["b1"]

                await until_async(has_moved)
                _, state = await readiness(service)
                assert (state["nodes"], state["pods"]) == (2, 1)
                assert state["resources"].keys() == {"nodes", "pods", "namespaces"}
                assert f"Following {server.url} (kubeconfig {tmp_path}/kubeconfig, context here)\n" in service.stderr
                async with httpx.AsyncClient() as client:
                    assert (await client.get(f"{service.url}/debug/mirror")).status_code == 404
                    metrics = (await client.get(f"{service.url}/metrics")).text
                assert 'kindred_watch_known_objects{resource="pods"} 1.0' in metrics
                service.process.send_signal(signal.SIGTERM)
                assert await ended(service) == 0
                assert "Traceback" not in service.stderr

    asyncio.run(scenario())


def test_a_server_that_is_not_there_yet_is_tried_until_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            async with server.refusing_connections(drop=True):
                config = kubeconfig(tmp_path, server.url)
                with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT) as service:

                    async def has_failed() -> bool:
                        return "Connection refused" in service.stderr

                    await until_async(has_failed)
                    code, state = await readiness(service)
                    problem = f"GET /api/v1/pods at {server.url}: Connection refused"
                    assert (code, state["ready"], state["pods"]) == (503, False, 0)
                    assert f"pods: not synced ({problem})" in state["problems"]
                    async with httpx.AsyncClient() as client:
                        response = (await client.post(f"{service.url}/filter", content=QUESTION)).json()
                    assert response["Error"].startswith("the mirror is not synced: ")
                    assert response["NodeNames"] is None
                    await server.listen()
                    await until_ready(service)
                    assert await fitting(service) == ["a1"]
                    assert "Traceback" not in service.stderr

    asyncio.run(scenario())


def test_sigterm_ends_it_while_the_server_keeps_it_waiting(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            server.faults.add(Stall(), times=None)
            config = kubeconfig(tmp_path, server.url)
            with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT) as service:
                await server.until(lambda: len(server.requests) >= 3)
                began = time.monotonic()
                service.process.send_signal(signal.SIGTERM)
                assert await ended(service) == 0
                assert time.monotonic() - began < 4 * AT_ONCE

    asyncio.run(scenario())


def test_the_admin_port_is_there_when_it_is_enabled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApiServer() as server:
            fill(server)
            config = kubeconfig(tmp_path, server.url)
            environment = {"KINDRED_ADMIN": "127.0.0.1:0"}
            with kindred(tmp_path, "serve", "--kubeconfig", config, *ANY_PORT, environment=environment) as service:
                await until_ready(service)

                async def announced() -> bool:
                    return DEBUGGING.search(service.stdout) is not None

                await until_async(announced)
                url = DEBUGGING.findall(service.stdout)[0]
                async with httpx.AsyncClient() as client:
                    dump = (await client.get(url)).json()
                    diff = (await client.get(f"{url}/diff", params={"settle": 0})).json()
                    assert (await client.get(url.replace("/debug/mirror", "/metrics"))).status_code == 404
                assert [node["name"] for node in dump["nodes"]] == ["a1", "b1"]
                parts = {plural: (part["listed"], part["missed"]) for plural, part in diff.items()}
                assert [parts.pop(plural) for plural in ("nodes", "pods", "namespaces")] == [(2, []), (1, []), (0, [])]
                assert "persistentvolumeclaims" in parts  # which explanations alone read
                assert {*map(str, parts.values())} == {"(0, [])"}

    asyncio.run(scenario())


# How it ends.


BEGUN: Final = request_head(len(QUESTION)) + QUESTION[:10]


def finish(request: socket.socket) -> bytes:
    """Send the rest of a request, and give the answer."""
    request.sendall(QUESTION[10:])
    response = b""
    while chunk := request.recv(65536):
        response += chunk
    return response


def test_sigterm_lets_a_request_under_way_finish(tmp_path: Path) -> None:
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service,
        connected(service, BEGUN) as request,
    ):
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # what must not happen meanwhile is the end
        assert service.process.poll() is None
        assert b"HTTP/1.1 200 OK" in finish(request)
        assert service.process.wait(PATIENCE) == 0


def test_a_request_that_never_ends_does_not_outlast_the_grace_period(tmp_path: Path) -> None:
    environment = {"KINDRED_GRACE_PERIOD": "3"}
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT, environment=environment) as service,
        connected(service, BEGUN),
    ):
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(PATIENCE)
        assert 1 <= time.monotonic() - began < 3 + AT_ONCE


def test_an_interrupt_after_the_first_signal_ends_it_at_once(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service, connected(service, BEGUN):
        service.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert service.process.poll() is None
        began = time.monotonic()
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(PATIENCE) == 128 + signal.SIGINT
        assert time.monotonic() - began < AT_ONCE


def test_a_second_sigterm_still_drains(tmp_path: Path) -> None:
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service,
        connected(service, BEGUN) as request,
    ):
        for _ in range(2):
            service.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert b"HTTP/1.1 200 OK" in finish(request)
        assert service.process.wait(PATIENCE) == 0
