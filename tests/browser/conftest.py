"""One browser and four services for all tests here; without a Chromium they are skipped, and say so."""

from collections.abc import Iterator

import pytest

from tests.app.serving import Service
from tests.browser.chromium import Browser, browsing, chromium
from tests.browser.page import Page
from tests.browser.served import bench, demo, huge, odd


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no Chromium here (apt-get install chromium)")
    with browsing(tmp_path_factory.mktemp("profile"), program) as found:
        yield found


@pytest.fixture(scope="session")
def demo_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """Yield the service, and where admins ask."""
    with demo(tmp_path_factory.mktemp("demo")) as service:
        yield service, f"{service.admin_url}/"


@pytest.fixture(scope="session")
def demo_url(demo_service: tuple[Service, str]) -> str:
    return demo_service[1]


@pytest.fixture(scope="session")
def bench_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bench(tmp_path_factory.mktemp("bench")) as service:
        yield f"{service.admin_url}/"


@pytest.fixture(scope="session")
def huge_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with huge(tmp_path_factory.mktemp("huge")) as service:
        yield f"{service.admin_url}/"


@pytest.fixture(scope="session")
def odd_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with odd(tmp_path_factory.mktemp("odd")) as service:
        yield f"{service.admin_url}/"


def opened(browser: Browser, url: str) -> Page:
    """Return the page as it is when somebody opens it."""
    browser.window(1500, 1000)
    page = Page(browser)
    page.open(url)
    return page


def over(browser: Browser, url: str) -> Iterator[Page]:
    """Yield the page; whatever the browser logs as an error fails the test, but refusals are what is tested."""
    page = opened(browser, url)
    yield page
    assert [error for error in browser.errors if "status of 4" not in error] == []
    browser.open("about:blank")  # services wait for the stream of events to end


@pytest.fixture
def page(browser: Browser, demo_url: str) -> Iterator[Page]:
    """Yield the page over the demo cluster."""
    yield from over(browser, demo_url)


@pytest.fixture
def large_page(browser: Browser, bench_url: str) -> Iterator[Page]:
    """Yield the page over 5,000 nodes."""
    yield from over(browser, bench_url)


@pytest.fixture
def huge_page(browser: Browser, huge_url: str) -> Iterator[Page]:
    """Yield the page over 15,000 nodes."""
    yield from over(browser, huge_url)


@pytest.fixture
def odd_page(browser: Browser, odd_url: str) -> Iterator[Page]:
    """Yield the page over nodes that are refused for many reasons."""
    yield from over(browser, odd_url)
