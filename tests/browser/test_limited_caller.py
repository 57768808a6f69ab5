"""The page for who may list the pods of one namespace: it asks who looks, and shows hidden names as text."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from app.server.ports import Port
from tests.app.admin.limited_callers import ReviewingServer, limited_service
from tests.app.server.conversations import PATIENCE, serving
from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.builders import labelled, make_node, make_pod, term
from tests.conformance.engine import load

HIDDEN = "hidden-7f3a"
ZONE = "topology.kubernetes.io/zone"


@contextmanager
def served(port: Port) -> Iterator[str]:
    """Serve a port in a thread; give its URL."""
    began: Future[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        async with serving(port) as (_, number):
            ended = asyncio.Event()
            began.set_result((number, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    number, loop, ended = began.result(PATIENCE)
    try:
        yield f"http://127.0.0.1:{number}/"
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)


def port() -> Port:
    everywhere = term(ZONE, labelled(app="web"), namespace_selector={})
    pods = [
        make_pod("blocked").in_namespace("ours").required_anti_affinity(everywhere),
        make_pod(f"{HIDDEN}-web").in_namespace("theirs").label("app", "web").on("n1"),
        make_pod(f"{HIDDEN}-waits").in_namespace("theirs"),
    ]
    node = make_node("n1").label(ZONE, "z").allocatable(cpu=4, memory="8Gi", pods=20)
    mirror = load([], [node.obj()], [pod.obj() for pod in pods])
    return limited_service(mirror, ReviewingServer({"ann": ("ours",)})).port


def test_the_page_asks_who_looks_and_shows_hidden_names_as_text(browser: Browser) -> None:
    with served(port()) as url:
        page = opened(browser, url)
        browser.until("document.querySelector('#caller').hidden === false")
        assert "2 pods of other namespaces left out: no caller is known" in page.text("#pending-causes")
        browser.type("#caller-token", "wrong")
        browser.press("Enter")
        browser.until("document.querySelector('#caller-error')?.textContent")
        assert page.complaint("#caller-token") == "The API server does not take this token."
        browser.type("#caller-token", "ann")
        browser.press("Enter")
        browser.until("document.querySelector('#pending-causes')?.textContent.includes('ours/blocked')")
        assert "1 pod of other namespaces left out" in page.text("#pending-causes")
        page.ask("ours/blocked")
        page.show_node("n1")
        assert page.value("document.body.textContent.includes('(a pod of another namespace)')")
        assert not page.value(f"document.documentElement.outerHTML.includes('{HIDDEN}')")
        assert page.value("document.querySelectorAll('.chip button').length") == 0
        browser.evaluate("sessionStorage.clear()")
        browser.open("about:blank")  # the server waits for the stream of events to end
