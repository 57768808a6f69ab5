"""Clients that repeat one request to one port, in a separate process: `python -m tests.bench.crowd`.

The program reads the crowd as a line of JSON from standard input. It writes a line when it has begun, sends requests
until standard input ends, and writes the number of responses. It is a program of its own, because the section that
starts it runs in a worker of a pool, which may not have children of `multiprocessing`.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tests.bench.live import BenchError, HttpClient


class Crowd(msgspec.Struct, frozen=True):
    """A number of clients that repeat one request to one port."""

    name: str
    clients: int
    url: str
    method: str
    path: str
    body: bytes | None = None


@contextmanager
def crowding(crowd: Crowd) -> Iterator[list[int]]:
    """Run a crowd during the block. Afterwards the list has the number of responses."""
    responses: list[int] = []
    command = [sys.executable, "-m", "tests.bench.crowd"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own
        assert process.stdin is not None  # both are pipes
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(crowd) + b"\n")
            process.stdin.flush()
            if not process.stdout.readline():
                raise BenchError(f"{crowd.name}: did not begin")
            yield responses
            process.stdin.close()
            responses.append(int(process.stdout.readline() or -1))
        finally:
            process.kill()
    if responses and responses[0] < 0:
        raise BenchError(f"{crowd.name}: a client has failed")


def _main() -> None:
    crowd = msgspec.json.decode(sys.stdin.buffer.readline(), type=Crowd)
    responses = [0] * crowd.clients
    ended = threading.Event()

    def ask(number: int) -> None:
        client = HttpClient(crowd.url)
        while not ended.is_set():
            client.expect(crowd.method, crowd.path, crowd.body)
            responses[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(crowd.clients)]
    for each in threads:
        each.start()
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    ended.set()
    for each in threads:
        each.join()
    sys.stdout.write(f"{sum(responses)}\n")


if __name__ == "__main__":
    _main()
