"""`python -m tests.browser.screenshots`: the picture of the page as it opens, for the README."""

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.app.serving import ROOT
from tests.browser.chromium import browsing, chromium
from tests.browser.page import Page
from tests.browser.served import demo

_PICTURE: Final = ROOT / "docs" / "images" / "page-opening-light.png"


def main() -> None:
    """Make the picture."""
    program = chromium()
    if program is None:
        sys.exit("no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryDirectory() as folder:
        with browsing(Path(profile), program) as browser, demo(Path(folder)) as service:
            page = Page(browser)
            browser.window(1500, 1080)
            page.open(f"{service.admin_url}/")
            page.show_node("node1")
            browser.until("document.querySelector('.cause, #pending-causes .hint') !== null")
            browser.evaluate("scrollTo(0, 0)")
            page.painted()
            browser.screenshot(_PICTURE)
        if browser.errors:
            sys.exit("\n".join(browser.errors))


if __name__ == "__main__":
    main()
