"""Replicas replaced one after the other under questions without a pause: no client notices."""

import http.client
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.app.server.balancer import Balancer, balancer
from tests.app.serving import ANY_PORT, PATIENCE, ROOT, Service, kindred, until

DRAIN_DELAY: Final = 1.0  # seconds: ten times the time between two probes
ROUNDS: Final = 3
CLIENTS: Final = 4
QUESTIONS: Final = {
    verb: (ROOT / "app/demo/requests" / name).read_bytes()
    for verb, name in (("filter", "required-affinity.json"), ("prioritize", "web.json"))
}


class Client:
    """Asks over a connection that it keeps for as long as the server does, or over a new one each time.

    It tries nothing twice.
    """

    def __init__(self, address: tuple[str, int], *, keeps: bool) -> None:
        self.requested = 0
        self.failures: list[str] = []
        self._address = address
        self._headers = {} if keeps else {"Connection": "close"}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(2 * PATIENCE)  # two requests, each with a time limit
        assert not self._thread.is_alive()

    def _ask(self) -> None:
        with closing(http.client.HTTPConnection(*self._address, timeout=PATIENCE)) as connection:
            while not self._stopping.is_set():
                for verb, body in QUESTIONS.items():
                    self._try(connection, verb, body)

    def _try(self, connection: http.client.HTTPConnection, verb: str, body: bytes) -> None:
        try:
            connection.request("POST", f"/{verb}", body, self._headers)
            with connection.getresponse() as response:
                content = json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{verb}: {error!r}")
            connection.close()
            return
        self.requested += 1
        if response.status != 200 or (isinstance(content, dict) and content["Error"]):
            self.failures.append(f"{verb}: {response.status} {content}")


@contextmanager
def clients(of: Balancer) -> Iterator[list[Client]]:
    asking = [Client(of.address, keeps=number % 2 == 0) for number in range(CLIENTS)]
    try:
        yield asking
    finally:
        for client in asking:
            client.stop()


def start(stack: ExitStack, folder: Path, service: Balancer) -> Service:
    """Start a replica, and wait until it is asked, too."""
    folder.mkdir()
    environment = {
        "POD_NAMESPACE": "kindred",
        "KINDRED_GRACE_PERIOD": str(4 * DRAIN_DELAY),
        "KINDRED_LISTEN": "127.0.0.1:0",
    }
    replica = stack.enter_context(kindred(folder, "serve", "--demo", *ANY_PORT, environment=environment))
    service.backends.append(replica.address)
    until(lambda: replica.address in service.ready)
    return replica


def replace(old: Service, service: Balancer) -> float:
    """End a replica; give the seconds that it took."""
    began = time.monotonic()
    assert old.end(signal.SIGTERM) == 0
    until(lambda: old.address not in service.ready)
    service.backends.remove(old.address)
    return time.monotonic() - began


def test_no_question_fails_while_replicas_are_replaced(tmp_path: Path) -> None:
    with ExitStack() as stack:
        service = stack.enter_context(balancer())
        replicas = [start(stack, tmp_path / "0", service)]
        asking = stack.enter_context(clients(service))
        for number in range(1, ROUNDS + 1):
            replicas.append(start(stack, tmp_path / str(number), service))
            assert replace(replicas.pop(0), service) >= DRAIN_DELAY
            before = [client.requested for client in asking]
            until(lambda: all(client.requested > so_far + 5 for client, so_far in zip(asking, before, strict=True)))  # noqa: B023  # awaited here
        for client in asking:
            client.stop()
        assert [failure for client in asking for failure in client.failures] == []
        assert service.most_ready == 2
        assert all("Traceback" not in replica.stderr for replica in replicas)


@pytest.mark.parametrize(("number", "delay"), [(signal.SIGINT, 20), (signal.SIGTERM, 2)])
def test_only_sigterm_has_a_delay(tmp_path: Path, number: signal.Signals, delay: int) -> None:
    environment = {
        "POD_NAMESPACE": "kindred",
        "KINDRED_GRACE_PERIOD": str(4 * delay),
        "KINDRED_LISTEN": "127.0.0.1:0",
    }
    with kindred(tmp_path, "serve", "--demo", environment=environment) as replica:
        began = time.monotonic()
        assert replica.end(number) == 0
        assert (time.monotonic() - began >= delay) == (number == signal.SIGTERM)
