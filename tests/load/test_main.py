"""The load as a separate process, at a small size, because locust patches the process that imports it."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from app.verbs.extender_results import filter_error

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.load", "--nodes", "30", "--pods", "300"]


def load(*arguments: str) -> tuple[int, str]:
    """Run the load as a user does. Return the status and the output."""
    done = subprocess.run(  # noqa: S603 - our own program
        [*COMMAND, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def processes_of_session(session: int) -> list[str]:
    """Return the status lines of all processes of a session: locust has a process group of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended meanwhile
            text = stat.read_text()
            if text.rpartition(") ")[2].split()[3] == str(session):
                found.append(text)
    return found


class Garbage(BaseHTTPRequestHandler):
    """Returns the same wrong response to every request."""

    headers_sent: ClassVar[dict[str, str]] = {}
    answer: ClassVar[bytes] = b'{"NodeNames":["node-00001"]}'

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        for name, value in self.headers_sent.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Shedding(Garbage):
    """Sheds every request."""

    headers_sent: ClassVar[dict[str, str]] = {"Kindred-Shed": "queue_full"}
    answer: ClassVar[bytes] = filter_error("shed: 100 questions wait already")


@contextmanager
def garbage_server(kind: type[Garbage] = Garbage) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_kindred_answers_all_schedulers_rightly_while_pods_change(tmp_path: Path) -> None:
    report = tmp_path / "load.html"
    status, printed = load("--seconds", "2", "--html", str(report), "--check-every", "1", "--churn-rate", "100")
    assert status == 0, printed
    for asked in ("NodeNamesUser filter", "NodeNamesUser prioritize", "WholeNodesUser filter", "ChurnUser"):
        assert asked in printed
    assert "The mirror and a fresh list of the cluster are the same." in printed
    assert "NodeNamesUser filter" in report.read_text()
    assert str(ROOT) not in report.read_text()


def test_kindred_answers_rightly_while_the_api_server_fails_and_certificates_are_replaced(tmp_path: Path) -> None:
    report, memory = tmp_path / "soak.json", tmp_path / "memory.csv"
    options = ("--faults", "--fault-gap", "0.5", "--tls", "--churn-rate", "100", "--sheds-allowed")
    files = ("--html", str(tmp_path / "load.html"), "--report", str(report), "--memory", str(memory))
    status, printed = load("--seconds", "6", *options, *files)
    assert status == 0, printed
    found = json.loads(report.read_text())
    assert found["requests"] > 0
    assert (found["failures"], found["problems"]) == (0, [])
    assert found["faults"]["all"] > 0
    assert found["pod_events"] > 0
    assert "Certificates: " in printed
    assert found["rss_mb"]["max"] >= found["rss_mb"]["start"] > 0
    assert len(memory.read_text().splitlines()) > 3


def test_shed_questions_are_failures_unless_they_are_allowed() -> None:
    with garbage_server(Shedding) as url:
        status, printed = load("--host", url, "--seconds", "1")
        assert status == 1, printed
        assert "shed: queue_full" in printed
        status, printed = load("--host", url, "--seconds", "1", "--sheds-allowed")
        assert status == 0, printed
        assert "Shed, which is no failure: {'filter: queue_full': " in printed


def test_wrong_answers_make_it_fail_and_are_told() -> None:
    with garbage_server() as url:
        status, printed = load("--host", url, "--seconds", "1")
    assert status == 1, printed
    assert "100.00 % of the requests failed." in printed
    assert "no ExtenderFilterResult: Object missing required field" in printed
    assert "ChurnUser does nothing: no --fake-api" in printed


def test_wrong_answers_are_let_pass_up_to_a_share() -> None:
    with garbage_server() as url:
        status, printed = load("--host", url, "--seconds", "1", "--max-failures", "1")
    assert status == 0, printed


def test_it_fails_where_nobody_asks() -> None:
    status, printed = load("--host", "http://127.0.0.1:9", "--seconds", "1", "ChurnUser")
    assert status == 1, printed
    assert "There is no class of users left that asks anything." in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["sigint", "sigterm"])
def test_a_signal_leaves_no_process_behind(number: int, tmp_path: Path) -> None:
    command = [*COMMAND, "--seconds", "600", "--html", str(tmp_path / "load.html")]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert any("All users spawned" in line for line in process.stdout)
        process.send_signal(number)
        process.stdout.read()
    assert 128 + number == process.returncode
    assert processes_of_session(process.pid) == []
