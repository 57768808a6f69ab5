"""What a page of others can make a browser do with an admin port that asks for no token."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.app.serving import Service, until
from tests.browser.chromium import REBOUND, Browser

TRIES = (
    ("pending", {"mode": "no-cors"}),
    ("pending", {"mode": "cors"}),
    ("events", {"mode": "cors"}),
    ("cluster", {"mode": "no-cors"}),
    ("explain", {"method": "POST", "mode": "no-cors", "body": '{"pod": "data/queue-0"}'}),
    ("debug/partition", {"method": "PUT", "body": "{}"}),  # which is asked for with OPTIONS first
)


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def other_site() -> Iterator[str]:
    """Serve an empty page with a policy that allows all; to browsers localhost and 127.0.0.1 are two sites."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def refused(service: Service, reason: str) -> int:
    """Return how many lines of the log have it. There is one a second, so wait for the next second before a try."""
    return service.stderr.count(f"admin port: rejected 127.0.0.1: {reason}")


@pytest.mark.parametrize(("path", "options"), TRIES, ids=["simple", "cors", "events", "cluster", "post", "preflight"])
def test_another_site_is_refused_but_may_link_to_the_page(
    browser: Browser, demo_service: tuple[Service, str], path: str, options: dict[str, str]
) -> None:
    service, admin = demo_service
    with other_site() as site:
        browser.open(site)
        time.sleep(1.1)
        before = refused(service, "cross site")
        asked = f"fetch({json.dumps(admin + path)}, {json.dumps(options)})"
        told = browser.evaluate(f"{asked}.then(answer => [answer.type, answer.status], () => ['refused'])")
        assert told in (["opaque", 0], ["refused"])
        until(lambda: refused(service, "cross site") == before + 1)
        browser.evaluate(f"(() => {{ location.href = {json.dumps(admin)}; }})()")
        browser.until("document.querySelector('#mirror')?.textContent.includes('60 nodes')")


def test_a_name_that_others_let_resolve_to_this_machine_reads_nothing(
    browser: Browser, demo_service: tuple[Service, str]
) -> None:
    service, admin = demo_service
    before = refused(service, "foreign host")
    browser.open(admin.replace("127.0.0.1", REBOUND))
    assert "expected localhost or an IP address" in browser.evaluate("document.body.innerText")
    told = browser.evaluate("fetch('pending').then(answer => answer.status)")
    assert told == 421
    until(lambda: refused(service, "foreign host") > before)
    browser.open(admin.replace("127.0.0.1", "localhost"))
    browser.until("document.querySelector('#mirror')?.textContent.includes('60 nodes')")
