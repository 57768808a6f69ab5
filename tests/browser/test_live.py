"""The page follows the service: one that has stopped is shown, and found again."""

import signal
from pathlib import Path

import httpx

from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.served import demo, listed, serving
from tests.builders import make_node, make_pod


def test_a_service_that_has_stopped_is_said_and_found_again(browser: Browser, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with demo(tmp_path / "first") as service:
        page = opened(browser, f"{service.admin_url}/")
        port = httpx.URL(service.admin_url).port
        page.ask("data/queue-0")
        headline = page.text("#answer")
        assert page.text("#lost") == ""
        assert service.end(signal.SIGTERM) == 0
        browser.until("document.querySelector('#lost').textContent !== ''")
        assert "the service does not answer. What is shown is as it was then." in page.text("#lost")
        assert page.text("#mirror") == "■ not live"
    assert headline == page.text("#answer")
    with demo(tmp_path / "second", KINDRED_ADMIN=f"127.0.0.1:{port}"):
        browser.until("document.querySelector('#lost').textContent === ''")
        page.until_text("#mirror", "fresh")
        browser.open("about:blank")


def test_an_answer_of_a_service_that_has_just_started_anew_is_not_said_to_be_old(
    browser: Browser, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with demo(tmp_path / "first") as service:
        page = opened(browser, f"{service.admin_url}/")
        port = httpx.URL(service.admin_url).port
        assert service.end(signal.SIGTERM) == 0
        browser.until("document.querySelector('#lost').textContent !== ''")
    page.delay("events")
    dump = tmp_path / "small.json"
    pod = make_pod("web-0").in_namespace("shop").on("n1").obj()
    dump.write_text(listed((("Node", [make_node("n1").obj()]), ("Pod", [pod]))))
    with serving(tmp_path / "second", "--snapshot", str(dump), KINDRED_ADMIN=f"127.0.0.1:{port}"):
        page.ask("shop/web-0")
        assert page.value("document.querySelector('#changed').hidden")
        browser.open("about:blank")


def test_a_service_with_a_page_that_follows_it_ends_at_once(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path, KINDRED_GRACE_PERIOD="5") as service:
        page = opened(browser, f"{service.admin_url}/")
        page.until_text("#mirror", "fresh")
        assert page.text("#lost") == ""
        assert service.end(signal.SIGTERM) == 0
        assert "grace period" not in service.stderr
    browser.open("about:blank")


def test_a_click_is_not_lost_if_the_service_stops_while_the_button_is_down(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path) as service:
        page = opened(browser, f"{service.admin_url}/")
        at = browser.centre("document.querySelector('.tree tbody tr')")
        browser.mouse("mousePressed", *at)
        assert service.end(signal.SIGTERM) == 0
    page.value("new Promise(done => setTimeout(done, 1000))")
    browser.mouse("mouseReleased", *at)
    browser.until("!document.querySelector('#details').hidden && document.querySelector('#lost').textContent !== ''")
    browser.open("about:blank")


PACED = """import('/page/live.js').then(async ({ paced }) => {
  const [now, later] = [performance.now, window.setTimeout];
  let [time, rest] = [0, 0];
  performance.now = () => time;
  window.setTimeout = (begin, pause) => { rest = pause; };
  await paced(async () => { time += TAKES; })();
  [performance.now, window.setTimeout] = [now, later];
  return rest;
})"""


def test_a_look_that_waits_for_a_token_or_a_release_does_not_end_the_looking(browser: Browser, demo_url: str) -> None:
    page = opened(browser, demo_url)
    rests = [page.value(PACED.replace("TAKES", str(takes))) for takes in (10, 2_000, 300_000)]
    assert rests == [3_000, 20_000, 60_000]
    browser.open("about:blank")
