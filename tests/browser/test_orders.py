"""In how many orders a question is asked: a choice on the page, which the address keeps."""

from tests.browser.page import Page
from tests.browser.test_address import reopen
from tests.browser.test_what_if import DRAINED, drain, opened

ORDERS = "document.querySelector('#orders').value"


def test_fewer_orders_are_chosen_and_kept_in_the_address(page: Page) -> None:
    opened(page)
    page.browser.click("#loss button")
    page.until_text("#pods", "3 orders in which pods arrive")
    assert "orders" not in page.value("location.hash")
    page.value("document.querySelector('#orders').value = '1'")
    for button, headline in (("#loss button", "The cluster does not"), ("#removal", "could go, each by itself")):
        page.browser.click(button)
        page.responded(headline)
        page.until_text("#pods", "1 order in which pods arrive")
    page.browser.type("#pod-name", "shop/deploy/web")
    page.enter("#replicas", "3")
    page.responded("3 of the 3 that are asked for fit")
    page.until_text("#pods", "1 order in which pods arrive")
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    page.until_text("#pods", "1 order in which pods arrive")
    reopen(page, page.value("location.href"))
    page.responded(DRAINED, begins=True)
    assert page.value(ORDERS) == "1"
    page.until_text("#pods", "1 order in which pods arrive")


def test_a_number_of_orders_that_is_not_offered_is_left_out_of_an_address(page: Page) -> None:
    page.value("location.hash = 'ask=drain&nodes=node35&orders=7'")
    page.responded("The drain of node35 ends", begins=True)
    page.until_text("#pods", "3 orders in which pods arrive")
    assert page.value("document.querySelector('#orders').selectedOptions[0].text") == "3"
