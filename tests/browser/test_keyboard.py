"""The page by the keyboard: keys that are the browser's own, and where the focus is afterwards."""

from tests.browser.page import Page
from tests.browser.test_address import fragment


def test_the_skip_link_leads_to_the_list_and_keeps_the_answer(page: Page) -> None:
    page.ask("data/queue-0")
    headline, address = page.text("#answer"), fragment(page)
    page.value("document.querySelector('.skip').focus()")
    page.browser.press("Enter")
    page.browser.until("document.activeElement.id === 'domains-heading'")
    page.painted()
    assert (page.text("#answer"), fragment(page)) == (headline, address)


def test_keys_with_which_the_browser_goes_back_are_not_taken_by_the_list(page: Page) -> None:
    page.value("document.querySelector('.tree tbody tr').focus()")
    for modifier in ("altKey", "ctrlKey", "metaKey"):
        key = f"new KeyboardEvent('keydown', {{key: 'ArrowRight', {modifier}: true, bubbles: true, cancelable: true}})"
        assert page.value(f"document.activeElement.dispatchEvent({key})"), modifier
        assert page.value("document.querySelector('.tree tbody tr').ariaExpanded") == "false"
