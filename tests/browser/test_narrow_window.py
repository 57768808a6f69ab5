"""The page in a window as narrow as a telephone's: nothing has to be scrolled sideways, and all can be done there."""

import json
from collections.abc import Iterator

import pytest

from tests.browser.chromium import Browser
from tests.browser.page import Page
from tests.browser.served import odd_nodes

WIDTHS = (360, 768)


@pytest.fixture(params=WIDTHS, ids=str)
def narrow(browser: Browser, request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param
    browser.window(1500, 1000)


def test_a_question_is_asked_and_a_node_chosen(page: Page, narrow: int) -> None:
    page.browser.window(narrow, 740)
    page.ask("data/queue-0")
    assert page.too_wide() == []
    left, top, width = page.box("#map")
    assert left + width <= narrow
    page.browser.evaluate("document.querySelector('#map').scrollIntoView({block: 'start'})")
    left, top, _ = page.box("#map")
    page.browser.click_at(left + 20, top + 55)
    page.wait_for_details("node1")
    assert "fits" in page.text("#detail-body .verdict")
    page.show_node("node21")
    page.browser.click(".term.blocks .chip button")
    page.browser.until("document.querySelector('#answer').textContent.includes(' 40/60 ')")
    page.browser.click("[data-add=add_nodes]")
    assert page.too_wide() == []


def test_long_names_and_many_reasons_have_room(odd_page: Page, narrow: int) -> None:
    page = odd_page
    page.browser.window(narrow, 740)
    page.ask_with_manifest(json.dumps({"metadata": {"name": "n" * 253, "namespace": "shop"}}))
    page.browser.until("document.querySelector('#answer').textContent.includes('nodes are available')")
    page.browser.click("#legend summary")
    page.browser.click(".tree tbody tr .twist")
    page.show_node(odd_nodes()[0].name)
    assert "{company-name.example.com/team-01: }" in page.text("#detail-body .verdict")
    assert page.too_wide() == []
