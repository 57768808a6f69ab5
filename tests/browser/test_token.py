"""The page on an admin port that wants a token: it is asked for where the service refuses, and kept for the tab."""

from pathlib import Path

from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.served import admin_url, demo

TOKEN = "right-token"  # noqa: S105  # of this test alone


def test_a_token_is_asked_for_and_kept_for_the_tab(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with demo(tmp_path, KINDRED_ADMIN_TOKEN_FILE=str(tmp_path / "token")) as service:
        page = opened(browser, admin_url(service))
        browser.until("document.querySelector('#access').hidden === false")  # the state of the service is refused
        assert page.value("sessionStorage.length") == 0
        browser.window(360, 740)
        assert page.too_wide() == []
        browser.type("#pod-name", "data/queue-0")
        browser.click("#ask")
        assert page.text("#token-error") == ""
        browser.type("#token", "wrong-token")
        browser.press("Enter")
        browser.until("document.querySelector('#token-error').textContent !== ''")
        assert page.complaint("#token") == "The service does not take this token."
        assert page.value("sessionStorage.length") == 0
        browser.type("#token", TOKEN)
        browser.press("Enter")
        browser.until("document.querySelector('#answer').textContent.startsWith('data/queue-0')")
        assert page.value("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
        page.show_node("node5")
        browser.evaluate("sessionStorage.clear()")
