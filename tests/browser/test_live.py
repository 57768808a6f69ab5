"""The page follows the service: what changes is shown, and so is a service that has stopped."""

import re
import signal
from pathlib import Path

import httpx
import pytest

from tests.app.serving import Service
from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import admin_url, demo


def change(admin: str, *nodes: str) -> None:
    """Keep some nodes out of the partition, which is a change of the mirror."""
    httpx.put(f"{admin}debug/partition", json={"out": [*nodes]}).raise_for_status()


def generation(page: Page) -> int:
    found = re.search(r"generation ([\d,]+)", page.text("#mirror"))
    assert found
    return int(found[1].replace(",", ""))


def until_generation(page: Page, beyond: int) -> None:
    page.browser.until(
        "Number(document.querySelector('#mirror').textContent.match(/generation ([0-9,]+)/)?.[1].replace(',', ''))"
        f" > {beyond}"
    )


@pytest.fixture
def admin(demo_service: tuple[Service, str]) -> str:
    return demo_service[1]


def test_a_change_of_the_cluster_is_shown_without_being_asked_for(page: Page, admin: str) -> None:
    before = generation(page)
    change(admin, "node1")
    try:
        until_generation(page, before)
    finally:
        change(admin)


def test_an_answer_of_before_a_change_says_so_and_is_asked_again_at_a_click(page: Page, admin: str) -> None:
    page.ask("data/queue-0")
    assert page.value("document.querySelector('#changed').hidden")
    change(admin, "node1")
    try:
        page.browser.until("!document.querySelector('#changed').hidden")
        page.browser.click("#changed-again")
        page.browser.until("document.querySelector('#changed').hidden")
        assert "1 node(s) is not in the partition" in page.text("#answer") or "partition" in page.legend()
    finally:
        change(admin)


def test_a_hidden_page_does_not_follow_and_catches_up_when_it_is_shown(page: Page, admin: str) -> None:
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s});"
    show = "document.dispatchEvent(new Event('visibilitychange'))"
    before = generation(page)
    page.value(f"{hide % 'true'} {show}")
    change(admin, "node1")
    try:
        page.value("new Promise(done => setTimeout(done, 1500))")
        assert before == generation(page)
        page.value(f"{hide % 'false'} {show}")
        until_generation(page, before)
    finally:
        change(admin)


def test_a_service_that_has_stopped_is_said_and_found_again(browser: Browser, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with demo(tmp_path / "first") as service:
        page = opened(browser, admin_url(service))
        port = httpx.URL(admin_url(service)).port
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


def test_a_service_with_a_page_that_follows_it_ends_at_once(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path, KINDRED_GRACE_PERIOD="5") as service:
        page = opened(browser, admin_url(service))
        page.until_text("#mirror", "fresh")
        assert page.text("#lost") == ""
        assert service.end(signal.SIGTERM) == 0
        assert "grace period" not in service.stderr
    browser.open("about:blank")
