"""The fake API server and Kindred as separate processes, with clients for the live benchmarks."""

import http.client
import json
import os
import platform
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from tests.bench.report import Latencies, Span

Json: TypeAlias = dict[str, Any]

_ROOT: Final = Path(__file__).parents[2]
_TICKS: Final = os.sysconf("SC_CLK_TCK")  # ticks a second, in /proc/PID/stat
_ATTEMPTS: Final = 8
_BETWEEN_ATTEMPTS: Final = 1.0  # seconds, from the second attempt on: faults may block connections for some seconds
_TIMEOUT: Final = 120.0  # seconds
_ANNOUNCEMENT: Final = re.compile(r"^(Kindred|Debugging) .*?(https?://[0-9.:]+)", re.MULTILINE)
_SAMPLE: Final = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_KUBECONFIG: Final = """\
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
users: [{{name: bench, user: {{}}}}]
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
"""


class BenchError(Exception):
    """A process ended, or returned a wrong response. There is nothing to measure."""


class HttpClient:
    """One kept connection. `base` is a URL without a path. https needs a context."""

    def __init__(self, base: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(base)
        self._connection = (
            http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT)
            if parts.scheme == "http"
            else http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT, context=tls)
        )

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return the status and the body of a response."""
        for attempt in range(_ATTEMPTS - 1):
            try:
                return self._ask(method, path, body)
            except ConnectionError:  # closed after some idle seconds, or by a fault
                self._connection.close()
                time.sleep(_BETWEEN_ATTEMPTS if attempt else 0.0)
        return self._ask(method, path, body)

    def expect(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return the body of a response with 200. Raises BenchError for any other status."""
        status, response = self.ask(method, path, body)
        if status != HTTPStatus.OK:
            raise BenchError(f"{method} {path}: {status} {response[:500].decode(errors='replace')}")
        return response

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        self._connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        response = self._connection.getresponse()
        return response.status, response.read()


class FakeApi:
    """The fake API server. `tests.fake_apiserver.control` describes its verbs."""

    def __init__(self, url: str, pid: int = 0) -> None:
        self.url = url
        self.pid = pid
        self._client = HttpClient(url)

    def stats(self) -> Json:
        """Return CPU seconds, sent events, and so on."""
        stats: Json = json.loads(self._client.expect("GET", "/_control/stats"))
        return stats

    def get(self, path: str) -> Json:
        """Return an object."""
        found: Json = json.loads(self._client.expect("GET", path))
        return found

    def quiet(self) -> Json:
        """Wait until everything has been sent. Return the stats of that moment."""
        stats: Json = json.loads(self._client.expect("GET", "/_control/quiet"))
        return stats

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def change(self, verb: str, given: object) -> None:
        """Call a verb that changes the server."""
        self._client.expect("POST", f"/_control/{verb}", json.dumps(given).encode())


class Process:
    """The kernel's figures of a process."""

    def __init__(self, pid: int) -> None:
        self.pid: Final = pid
        self._proc = Path(f"/proc/{pid}")

    def cpu_seconds(self) -> float:
        """Return the CPU time so far, user and system, of all threads, in steps of 10 ms."""
        fields = (self._proc / "stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def main_thread_cpu_seconds(self) -> float:
        """Return the CPU time so far of the first thread, in fine steps if the system has them."""
        return self._schedstat(0, self.cpu_seconds())

    def waited_for_cpu(self) -> float:
        """Return the seconds so far in which it waited for a free CPU. 0 if the system has no such figure."""
        return self._schedstat(1, 0.0)

    def memory(self, name: str) -> float:
        """Return VmRSS (now) or VmHWM (the most so far) in MB of 1,000,000 bytes."""
        found = re.search(rf"^{name}:\s+(\d+) kB$", (self._proc / "status").read_text(), re.MULTILINE)
        if found is None:
            raise BenchError(f"{self._proc}/status: no {name}")
        return int(found[1]) * 1024 / 1e6

    def _schedstat(self, field: int, unknown: float) -> float:
        statistics = self._proc / "schedstat"
        return int(statistics.read_text().split()[field]) / 1e9 if statistics.exists() else unknown


def busy_seconds() -> float:
    """Return the CPU time that all programs of the machine have had since its start."""
    user, nice, system, _idle, _iowait, *interrupts = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:8])
    return (user + nice + system + sum(interrupts)) / _TICKS


class Kindred(Process):
    """A `kindred serve` that follows the fake API server. `started` and `listening` are of `time.perf_counter`."""

    def __init__(self, pid: int, started: float, url: str, admin_url: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(pid)
        self.started = started
        self.listening = time.perf_counter()
        self.url = url
        self.admin_url = admin_url
        self._tls = tls
        self._client = HttpClient(self.url, tls)

    def wait_until_ready(self) -> Json:
        """Wait until the mirror is complete. Return the response of /readyz."""
        while time.perf_counter() - self.started < _TIMEOUT:
            status, response = self._client.ask("GET", "/readyz")
            if status == HTTPStatus.OK:
                readiness: Json = json.loads(response)
                return readiness
            time.sleep(0.1)  # beside a sync a request costs Kindred 1 ms: every 20 ms that was a twentieth of the sync
        raise BenchError(f"not ready within {_TIMEOUT:g} s: {response.decode(errors='replace')}")

    def metrics(self) -> "Metrics":
        """Scrape the metrics."""
        return Metrics(self._client.expect("GET", "/metrics").decode())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def differences(self) -> list[str]:
        """Compare the mirror with a fresh list of everything. Return the differences by resource."""
        found: Json = json.loads(HttpClient(self.admin_url, self._tls).expect("GET", "/debug/mirror/diff"))
        return [
            f"{resource}: {len(differences[kind])} {kind}, such as {differences[kind][0]}"
            for resource, differences in found.items()
            for kind in ("missed", "redundant", "differing")
            if differences[kind]
        ]


class Metrics:
    """A scrape, as (name, labels) -> value."""

    def __init__(self, text: str) -> None:
        self._samples = [
            (name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in _SAMPLE.findall(text)
        ]

    def by(self, label: str, name: str) -> dict[str, float]:
        """Return the sums of a metric's samples by the value of a label."""
        sums: dict[str, float] = {}
        for found, labels, value in self._samples:
            if found == name:
                sums[labels[label]] = sums.get(labels[label], 0.0) + value
        return sums


@contextmanager
def fake_api(nodes: int, pods: int) -> Iterator[FakeApi]:
    """Run the fake API server with the bench cluster."""
    command = ["tests.fake_apiserver", "--nodes", str(nodes), "--pods", str(pods), "--port", "0"]
    with _running(command, {}) as (pid, line), closing(FakeApi(json.loads(line())["url"], pid)) as api:
        yield api


@contextmanager
def kindred(
    api: FakeApi, settings: Mapping[str, str] = MappingProxyType({}), tls: ssl.SSLContext | None = None
) -> Iterator[Kindred]:
    """Run Kindred. The block begins when it listens. `tls` is the client's context, if Kindred has a certificate."""
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(url=api.url))
        module = "tests.quick" if "KINDRED_TEST_LIMITS" in settings else "app.commands.cli"
        command = [module, "serve", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0"]
        started = time.perf_counter()
        environment = {"KINDRED_ADMIN": "127.0.0.1:0", "KINDRED_LOG_LEVEL": "warning", **settings}
        with _running(command, environment) as (pid, line):
            urls: dict[str, str] = {}
            while not urls.keys() >= {"Kindred", "Debugging"}:  # the two ports may begin to listen in any order
                urls |= dict(_ANNOUNCEMENT.findall(line()))
            with closing(Kindred(pid, started, urls["Kindred"], urls["Debugging"], tls)) as service:
                yield service


@contextmanager
def floor_app() -> Iterator[tuple[Process, str]]:
    """Run the floor app; give its process and its URL."""
    with _running(["tests.bench.floor_app"], {}) as (pid, line):
        yield Process(pid), line().strip()


@contextmanager
def probing(url: str, every: float) -> Iterator[Latencies]:
    """Request /livez every `every` seconds, from a separate thread, during the block."""
    requested = Latencies()
    client = HttpClient(url)

    def probe() -> None:
        began = time.perf_counter()
        client.expect("GET", "/livez")
        requested.spans.append(Span(began, time.perf_counter()))

    with repeating(probe, every):
        yield requested


@contextmanager
def repeating(act: Callable[[], None], every: float) -> Iterator[None]:
    """Call `act` every `every` seconds, from a separate thread, during the block. Raises its error."""
    ended = threading.Event()
    raised: list[Exception] = []

    def run() -> None:
        due = time.perf_counter()
        while not ended.wait(max(0.0, due - time.perf_counter())):
            try:
                act()
            except Exception as error:  # noqa: BLE001 - raised again below, in the thread that can do something about it
                raised.append(error)
                return
            due = max(due + every, time.perf_counter())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if raised:
        raise raised[0]


def say(text: str) -> None:
    """Print a line of the report."""
    print(text, flush=True)  # noqa: T201 - a program whose output is its purpose


def machine() -> str:
    """Return the machine and the software of the figures."""
    return f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.machine()}"


@contextmanager
def _running(command: Sequence[str], settings: Mapping[str, str]) -> Iterator[tuple[int, Callable[[], str]]]:
    """Run a module. Yield its process id, and a function that returns its next line, or raises BenchError."""
    # With the bytecode of its modules, which the image has, too.
    unset = {name for name in os.environ if name.startswith("KINDRED_") or name == "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    with subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", *command],
        cwd=_ROOT,
        env={**environment, "PYTHONUNBUFFERED": "1", **settings},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None  # because of PIPE
        printed = process.stdout

        def line() -> str:
            text = printed.readline()
            if not text:
                raise BenchError(f"{command[0]} ended with status {process.wait()}")
            return text

        try:
            yield process.pid, line
        finally:
            process.terminate()


_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class WireError(Exception):
    """A response that is not 200, has no Content-Length, or never ended."""


def request(method: str, path: str, body: bytes, *headers: tuple[str, str]) -> bytes:
    """Make the bytes of a request."""
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + _END_OF_HEAD + body


class Wire:
    """One kept connection. `largest` is the limit of a response in bytes, with its head.

    It is for requests in a row, because servers close it after some idle seconds.
    """

    def __init__(self, connection: socket.socket, largest: int) -> None:
        self._socket = connection
        self._buffer = memoryview(bytearray(largest))

    def ask(self, sent: bytes) -> tuple[float, memoryview]:
        """Send a request and wait for its response. Return the seconds and the body. The next response overwrites it.

        Raises WireError, OSError.
        """
        began = time.perf_counter()
        self._socket.sendall(sent)
        filled = self._more(0)
        body, end = self._span(filled)
        while filled < end:
            filled = self._more(filled)
        return time.perf_counter() - began, self._buffer[body:end]

    def _span(self, filled: int) -> tuple[int, int]:
        """Return the begin and the end of the body. The measured servers send a head in one piece."""
        head, separator, _ = bytes(self._buffer[: min(filled, 4096)]).partition(_END_OF_HEAD)
        length = _LENGTH.search(head)
        if not separator or length is None or not head.startswith(b"HTTP/1.1 200 "):
            raise WireError(f"unexpected answer: {head[:500].decode(errors='replace')}")
        begins = len(head) + len(separator)
        ends = begins + int(length[1])
        if ends > len(self._buffer):
            raise WireError(f"an answer of {ends} bytes; at most {len(self._buffer)} were expected")
        return begins, ends

    def _more(self, filled: int) -> int:
        """Receive available bytes. Return the number of filled bytes of the buffer."""
        received = self._socket.recv_into(self._buffer[filled:])
        if received == 0:
            raise WireError("the server closed the connection")
        return filled + received


@contextmanager
def connected(url: str, largest: int) -> Iterator[Wire]:
    """Connect to a server. `url` has no path."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 80), _TIMEOUT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Wire(connection, largest)
