"""A crowd sends requests during the block, and a crowd that cannot begin is an error."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context

import pytest

from tests.bench.crowd import Crowd, crowding


class _Ok(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Keep silent."""


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ok) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def answers_of(url: str) -> int:
    """Run a crowd for a moment."""
    with crowding(Crowd("two", 2, url, "GET", "/")) as answers:
        threading.Event().wait(0.5)
    return answers[0]


def test_a_crowd_asks_as_long_as_the_block_lasts(url: str) -> None:
    assert answers_of(url) > 2


def test_a_crowd_can_be_started_by_a_worker_of_a_pool(url: str) -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(answers_of, (url,)) > 2
        pool.close()
        pool.join()
