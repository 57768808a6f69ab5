"""`kindred serve` as a process of its own: what it prints, what it answers, and how it ends."""

import json
import os
import re
import shlex
import signal
import socket
from pathlib import Path

import httpx
import pytest

from app import __version__
from tests.app.dump.dumps import as_json, kinded, listed
from tests.app.questions import NEAR_WEB, ZONE, by_name
from tests.app.serving import ANY_PORT, ROOT, connected, kindred, request_head, until
from tests.builders import make_node, make_pod

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
    directory, shown = (ROOT, Path()) if inside else (tmp_path, ROOT)
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
            assert shown / "app/demo/requests" == path.parent
            # curl takes the line breaks of the file out and calls the body a form.
            body = (directory / path).read_bytes().replace(b"\n", b"")
            form = {"content-type": "application/x-www-form-urlencoded"}
            answer = httpx.post(url, content=body, headers=form).json()
            assert answer["NodeNames"] if url.endswith("/filter") else len(answer) > 1
        assert service.stderr.startswith("Loaded 60 nodes, 306 pods, 7 namespaces (")
        assert service.stderr.count("\n") == 1


@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_dump_is_served_and_questions_are_answered(from_stdin: bool, tmp_path: Path) -> None:  # noqa: FBT001 - one of two cases
    (tmp_path / "dump.json").write_bytes(DUMP)
    snapshot = "-" if from_stdin else str(tmp_path / "dump.json")
    with kindred(tmp_path, "serve", "--snapshot", snapshot, *ANY_PORT, stdin=DUMP) as service:
        assert service.stdout == f"Kindred {__version__} answers at {service.url}\n"
        readiness = httpx.get(f"{service.url}/readyz").json()
        assert (readiness["ready"], readiness["nodes"], readiness["pods"]) == (True, 2, 1)
        answer = httpx.post(f"{service.url}/filter", content=by_name(WANTS_WEB, "a1", "b1"))
        assert answer.json()["NodeNames"] == ["a1"]
        chunked = httpx.post(f"{service.url}/filter", content=iter([by_name(WANTS_WEB, "a1", "b1"), b" "]))
        assert chunked.status_code == 411


@pytest.mark.skipif(not speaks_ipv6(), reason="there is no IPv6 here")
def test_an_ipv6_address_is_printed_so_that_it_can_be_pasted(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", "--listen", "[::1]:0") as service:
        assert re.fullmatch(r"http://\[::1\]:\d+", service.url)
        assert httpx.get(f"{service.url}/livez").status_code == 200


def test_host_and_port_come_from_the_environment(tmp_path: Path) -> None:
    environment = {"KINDRED_LISTEN": "localhost:0"}
    with kindred(tmp_path, "serve", "--demo", environment=environment) as service:
        assert re.fullmatch(r"http://localhost:\d+", service.url)
        assert httpx.get(f"{service.url}/livez").status_code == 200


# The end.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["sigint", "sigterm"])
def test_a_signal_ends_it_with_status_0_and_nothing_is_left(number: signal.Signals, tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service, httpx.Client() as client:
        assert client.get(f"{service.url}/livez").status_code == 200  # and the connection is kept open
        assert service.end(number) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(service.process.pid, 0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(service.address)
        assert service.stderr.startswith("Loaded ")
        assert service.stderr.count("\n") == 1


def test_a_port_in_use_ends_it_with_a_message(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with kindred(tmp_path, "serve", "--demo", "--listen", f"127.0.0.1:{port}") as service:
            assert service.process.returncode not in {None, 0}
            assert "address already in use" in service.stderr
            assert port in service.stderr
            assert "Traceback" not in service.stderr
            assert service.stdout == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"a: " + b"[" * 300_000, id="flow"),
        pytest.param(b"- " * 300_000 + b"x", id="block"),
        pytest.param(b"[" * 300_000, id="json"),
    ],
)
def test_a_deeply_nested_dump_is_refused_and_does_not_crash(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "deep").write_bytes(text)
    with kindred(tmp_path, "serve", "--snapshot", str(tmp_path / "deep"), *ANY_PORT) as service:
        assert service.process.returncode == 2
        assert service.stderr.startswith("Error: ")
        assert service.stderr.count("\n") == 1


# Clients that misbehave, on real connections.


def test_clients_that_go_away_midway_leave_the_service_as_it_was(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT) as service:
        for text in (b"", b"POST /fil", request_head(1000), request_head(1000) + b'{"Pod":'):
            connected(service, text).close()
        bad = httpx.post(f"{service.url}/filter", content=b"{}")
        assert bad.json()["Error"].startswith("NodeNames: required")
        assert service.end(signal.SIGTERM) == 0
        # One line for the bad request, and none for those that never came to be.
        (line,) = (json.loads(line) for line in service.stderr.splitlines()[1:])
        assert (line["level"], line["message"], line["outcome"]) == ("warning", "request", "bad_request")
        assert "NodeNames" not in str(line), "what a request says is in no line above level debug"


def test_less_severe_messages_than_the_log_level_are_not_logged(tmp_path: Path) -> None:
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT, environment={"KINDRED_LOG_LEVEL": "error"}) as service:
        assert httpx.post(f"{service.url}/filter", content=b"{}").json()["Error"]
        assert service.end(signal.SIGTERM) == 0
        assert service.stderr.count("\n") == 1


def test_a_client_that_writes_before_it_reads_gets_its_answer(tmp_path: Path) -> None:
    environment = {"KINDRED_TEST_LIMITS": '{"max_body_bytes": 262144}'}
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT, environment=environment, module="tests.quick") as service:
        answer = httpx.post(f"{service.url}/filter", content=b" " * 900 * 1024)
        assert answer.json()["Error"].startswith("body: larger than 262144 bytes")


def test_the_connection_of_a_client_that_does_not_stop_writing_is_closed(tmp_path: Path) -> None:
    environment = {"KINDRED_TEST_LIMITS": '{"max_body_bytes": 1024}'}
    with (
        kindred(tmp_path, "serve", "--demo", *ANY_PORT, environment=environment, module="tests.quick") as service,
        connected(service, request_head(1 << 30)) as connection,
        pytest.raises(ConnectionError),
    ):
        connection.sendall(bytes(32 * 1024 * 1024))  # more than sockets buffer
