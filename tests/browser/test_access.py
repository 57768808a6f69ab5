"""Who may look: who has the token, who may list the pods of one namespace, and no page of others."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.app.admin.limited_callers import ReviewingServer, limited_service
from tests.app.server.conversations import serving as serving_port
from tests.app.serving import Service, until
from tests.browser.chromium import REBOUND, Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import demo, in_thread
from tests.builders import labelled, make_node, make_pod, term
from tests.conformance.engine import load
from tests.http_server import Handler, http_server

TOKEN = "right-token"  # noqa: S105  # of this test alone


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with demo(tmp_path, KINDRED_ADMIN_TOKEN_FILE=str(tmp_path / "token")) as service:
        page = opened(browser, f"{service.admin_url}/")
        browser.until("document.querySelector('#access').hidden === false")  # the state of the service is refused
        assert page.value("sessionStorage.length") == 0
        browser.window(360, 740)
        assert page.too_wide() == []
        browser.type("#pod-name", "data/queue-0")
        browser.click("#ask")
        assert page.text("#token-error") == ""
        page.enter("#token", "wrong-token")
        browser.until("document.querySelector('#token-error').textContent !== ''")
        assert page.complaint("#token") == "The service does not take this token."
        assert page.value("sessionStorage.length") == 0
        page.enter("#token", TOKEN)
        page.responded("data/queue-0", begins=True)
        assert page.value("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
        page.show_node("node5")
        browser.evaluate("sessionStorage.clear()")


def test_what_can_be_no_token_is_not_kept(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with demo(tmp_path, KINDRED_ADMIN_TOKEN_FILE=str(tmp_path / "token")) as service:
        page = opened(browser, f"{service.admin_url}/")
        browser.until("document.querySelector('#access').hidden === false")
        page.enter("#token", "right…token")
        assert page.value("[document.querySelector('#access').hidden, sessionStorage.length]") == [False, 0]
        page.enter("#token", f" {TOKEN} ")
        page.responded("60 nodes in")
        browser.evaluate("sessionStorage.clear()")


HIDDEN = "hidden-7f3a"
ZONE = "topology.kubernetes.io/zone"


@asynccontextmanager
async def limited() -> AsyncIterator[str]:
    """Serve the page for who may list the pods of one namespace; give its URL."""
    everywhere = term(ZONE, labelled(app="web"), namespace_selector={})
    pods = [
        make_pod("blocked").in_namespace("ours").required_anti_affinity(everywhere),
        make_pod(f"{HIDDEN}-web").in_namespace("theirs").label("app", "web").on("n1"),
        make_pod(f"{HIDDEN}-waits").in_namespace("theirs").requests(cpu=9),
    ]
    nodes = [make_node(name).label(ZONE, "z").allocatable(cpu=4, memory="8Gi", pods=20) for name in ("n1", "n2")]
    mirror = load([], [node.obj() for node in nodes], [pod.obj() for pod in pods])
    async with serving_port(limited_service(mirror, ReviewingServer({"ann": ("ours",)})).port) as (_, number):
        yield f"http://127.0.0.1:{number}/"


def test_the_page_asks_who_looks_and_shows_hidden_names_as_text(browser: Browser) -> None:
    with in_thread(limited()) as url:
        page = opened(browser, url)
        browser.until("document.querySelector('#caller').hidden === false")
        assert "2 pods of other namespaces left out: no caller is known" in page.text("#pending-causes")
        page.enter("#caller-token", "two words")
        assert page.value("[document.querySelector('#caller').hidden, sessionStorage.length]") == [False, 0]
        page.enter("#caller-token", "wrong")
        browser.until("document.querySelector('#caller-error')?.textContent")
        assert page.complaint("#caller-token") == "The API server does not take this token."
        page.enter("#caller-token", "ann")
        page.until_text("#pending-causes", "ours/blocked")
        page.settled()
        assert "1 pod of other namespaces left out" in page.text("#pending-causes")
        page.ask("ours/blocked")
        page.show_node("n1")
        assert page.value("document.body.textContent.includes('(a pod of another namespace)')")
        assert not page.value(f"document.documentElement.outerHTML.includes('{HIDDEN}')")
        assert page.value("document.querySelectorAll('.chip button').length") == 0
        page.browser.click("#what-if summary")
        page.browser.click("#loss button")
        page.until_text("#loss-by-error", "so that none is left")
        page.browser.type("#drain-nodes", "n1")
        page.browser.click("#removal")
        page.responded("0 of 1 node could go")
        page.until_text("#outcome", "(a pod of another namespace)")
        assert "of other namespaces left out: " in page.text("#notes")
        page.browser.click("#drain button:not([type])")
        page.responded("The drain of n1, of whose pods you see some; ")
        assert "kubectl refuses: cannot delete Pods that declare no controller (use --force to override)." in page.text(
            "#notes"
        )
        page.browser.click("#capacity button")
        page.responded("0 more fit: Pod ours/blocked.")
        assert "Before them, 0 of 2 pending pods find a place." in page.text("#notes")
        assert not page.value(f"document.documentElement.outerHTML.includes('{HIDDEN}')")
        browser.evaluate("sessionStorage.clear()")
        browser.open("about:blank")  # the server waits for the stream of events to end


TRIES = (
    ("pending", {"mode": "no-cors"}),
    ("pending", {"mode": "cors"}),
    ("events", {"mode": "cors"}),
    ("cluster", {"mode": "no-cors"}),
    ("explain", {"method": "POST", "mode": "no-cors", "body": '{"pod": "data/queue-0"}'}),
    ("explain", {"method": "PUT", "body": "{}"}),  # which is request for with OPTIONS first
)


class _Empty(Handler):
    def respond(self) -> None:
        self.reply(200, media_type="text/html")


@contextmanager
def other_site() -> Iterator[str]:
    """Serve an empty page with a policy that allows all; to browsers localhost and 127.0.0.1 are two sites."""
    with http_server(_Empty) as port:
        yield f"http://localhost:{port}/"


def rejected(service: Service, reason: str) -> int:
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
        before = rejected(service, "cross site")
        request = f"fetch({json.dumps(admin + path)}, {json.dumps(options)})"
        reported = browser.evaluate(f"{request}.then(answer => [answer.type, answer.status], () => ['refused'])")
        assert reported in (["opaque", 0], ["refused"])
        until(lambda: rejected(service, "cross site") == before + 1)
        browser.evaluate(f"(() => {{ location.href = {json.dumps(admin)}; }})()")
        Page(browser).until_text("#mirror", "60 nodes")


def test_a_name_that_others_let_resolve_to_this_machine_reads_nothing(
    browser: Browser, demo_service: tuple[Service, str]
) -> None:
    service, admin = demo_service
    before = rejected(service, "foreign host")
    browser.open(admin.replace("127.0.0.1", REBOUND))
    assert "expected localhost or an IP address" in browser.evaluate("document.body.innerText")
    reported = browser.evaluate("fetch('pending').then(answer => answer.status)")
    assert reported == 421
    until(lambda: rejected(service, "foreign host") > before)
    browser.open(admin.replace("127.0.0.1", "localhost"))
    Page(browser).until_text("#mirror", "60 nodes")
