"""What a page keeps while the cluster that it shows changes: the focus, the place in a list, what was chosen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

import httpx
import pytest

from tests.app.commands.test_serve import kubeconfig
from tests.app.serving import until
from tests.browser.chromium import Browser
from tests.browser.conftest import over
from tests.browser.page import Page
from tests.browser.served import in_thread, serving
from tests.browser.test_live_cluster import SETTINGS, api_server, node
from tests.builders import make_pod
from tests.fake_apiserver.resources import NODES, PODS

MANY: Final = 130
FILLER: Final = "z{:03}"
LOOKED_AT: Final = FILLER.format(20)
Changing = tuple[str, Callable[[], None]]


@pytest.fixture(scope="module")
def changing_api() -> Iterator[str]:
    with in_thread(api_server()) as api:
        yield api


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory, changing_api: str) -> Iterator[Changing]:
    """Yield the page's URL over four nodes and many more, and what removes the first of them and adds two."""
    folder, api = tmp_path_factory.mktemp("changing"), changing_api
    created = [
        {"verb": "create", "path": NODES.path, "object": node(FILLER.format(at), "b").obj()} for at in range(MANY)
    ]
    httpx.post(f"{api}/_control/objects", json=created).raise_for_status()
    gone = count()

    def add() -> None:
        at = next(gone)
        old = {"verb": "delete", "path": NODES.path, "name": FILLER.format(at), "namespace": ""}
        new = [{"verb": "create", "path": NODES.path, "object": node(f"a{at}-{half}", "a").obj()} for half in (0, 1)]
        httpx.post(f"{api}/_control/objects", json=[old, *new]).raise_for_status()

    with serving(folder, "--kubeconfig", kubeconfig(folder, api), **SETTINGS) as service:
        until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
        yield f"{service.admin_url}/", add


@pytest.fixture
def page(browser: Browser, changing: Changing) -> Iterator[Page]:
    yield from over(browser, changing[0])


@contextmanager
def refreshed(page: Page, add: Callable[[], None]) -> Iterator[None]:
    """Add a node after the block, and wait until the page has read nodes and pending pods again."""
    text = page.text("#answer")
    page.value("window.causes = document.querySelector('#pending-causes').firstChild")
    yield
    add()
    page.browser.until(f"document.querySelector('#answer').textContent !== {text!r}")
    page.browser.until("!window.causes.isConnected")


def test_the_list_is_not_scrolled_back_to_the_row_with_the_focus(page: Page, changing: Changing) -> None:
    with refreshed(page, changing[1]):
        page.show_node(LOOKED_AT)
        page.value("document.querySelector('.tree tr[aria-selected=true]').focus()")
        page.value("document.querySelector('#tree-scroll').scrollTop = 2500")
    assert page.value("document.activeElement.cells?.[0].textContent") == LOOKED_AT
    assert page.value("document.querySelector('#tree-scroll').scrollTop") > 2400


def test_the_focus_stays_on_what_was_folded_or_chosen_to_go(page: Page, changing: Changing) -> None:
    for it in ("#pending-causes summary", "#goes", "#detail-body summary"):
        with refreshed(page, changing[1]):
            page.show_node(LOOKED_AT)
            page.value(f"document.querySelector('{it}').focus()")
        assert page.value(f"document.activeElement === document.querySelector('{it}')"), it


def test_the_node_whose_details_are_read_is_the_one_that_goes(page: Page, changing: Changing) -> None:
    with refreshed(page, changing[1]):
        page.show_node(LOOKED_AT)
        page.browser.click("#detail-body summary")
    page.browser.click("#goes")
    assert page.value("document.querySelector('#drain-nodes').value") == LOOKED_AT


def test_the_focus_stays_on_its_node(page: Page, changing: Changing) -> None:
    with refreshed(page, changing[1]):
        page.show_node(LOOKED_AT)
        page.value("document.querySelector('.tree tr[aria-selected=true]').focus()")
    assert page.value("document.activeElement.cells?.[0].textContent") == LOOKED_AT


@pytest.mark.parametrize("way", ["mouse", "keyboard"])
def test_more_nodes_are_shown_and_the_focus_is_on_the_first_of_them(page: Page, way: str) -> None:
    more = "document.querySelector('.tree tr[data-key^=\"more:\"]')"
    page.browser.click(".tree tbody tr:last-child .twist")
    before = page.value(f"{more}.previousElementSibling.cells[0].textContent")
    if way == "mouse":
        page.browser.click_at(*page.browser.centre(more))
    else:
        page.browser.press("End")
        page.browser.press("Enter")
    assert page.value(more) is None
    assert page.value("document.activeElement.previousElementSibling.cells[0].textContent") == before
    assert page.value("document.querySelectorAll('.tree tr[tabindex=\"0\"]').length") == 1


def test_a_label_of_racks_that_is_typed_is_not_drawn_yet(page: Page, changing: Changing) -> None:
    with refreshed(page, changing[1]):
        page.value("document.querySelector('#advanced').open = true")
        page.browser.type("#rack-key", "kubernetes.io/host")
        page.value("document.querySelector('#pod-name').focus()")
    assert page.text("#rack-key-error") == ""
    assert page.value("document.activeElement.id") == "pod-name"


def test_a_label_of_racks_that_is_no_more_is_said_without_taking_the_focus(page: Page, changing: Changing) -> None:
    page.draw_racks("no/such")
    page.complaint("#rack-key")
    page.value("document.querySelector('#pod-name').focus()")
    page.delay("cluster?rack=")
    changing[1]()
    page.until_delayed()
    page.release()
    page.value("new Promise(done => setTimeout(done, 100))")
    assert page.value("document.activeElement.id") == "pod-name"


def test_the_racks_that_are_wanted_are_drawn_when_somebody_goes_back_from_an_answer(
    page: Page, changing: Changing
) -> None:
    page.draw_racks("kubernetes.io/hostname")
    page.browser.until("document.querySelector('#rack-key').placeholder === 'kubernetes.io/hostname'")
    page.ask("shop/web-0")
    page.value("window.causes = document.querySelector('#pending-causes').firstChild")
    changing[1]()
    page.browser.until("!document.querySelector('#changed').hidden && !window.causes.isConnected")
    page.value("new Promise(done => setTimeout(done, 500))")
    page.value("history.back()")
    page.browser.until("document.querySelector('#cluster-heading').textContent === 'Cluster'")
    page.browser.until("document.querySelector('#rack-key').placeholder === 'kubernetes.io/hostname'")


HANGS: Final = """(start => { const [before, later] = [window.fetch, window.setTimeout];
  window.hung = 0;
  window.setTimeout = (call, pause) => later(call, pause < 60000 || window.hung ? pause : pause / 100);
  window.fetch = (path, options) => {
    if (!path.startsWith(start) || window.hung) return before(path, options);
    window.hung += 1;
    return new Promise((_, fail) => options.signal?.addEventListener('abort', () => fail(options.signal.reason)));
  };
})(%r)"""


def test_a_look_without_an_answer_does_not_end_the_looking(page: Page, changing: Changing) -> None:
    page.value(HANGS % "cluster")
    changing[1]()
    page.browser.until("window.hung === 1")
    with refreshed(page, changing[1]):
        pass


def test_a_service_that_does_not_begin_to_tell_its_state_is_said_and_found_again(page: Page) -> None:
    page.value(HANGS % "events")
    page.value(
        """(it => { window.said = ""; new MutationObserver(() => { window.said += it.textContent; })
        .observe(it, { childList: true, characterData: true, subtree: true }); })(document.querySelector("#lost"))"""
    )  # it is said for half a second only
    page.value("document.dispatchEvent(new Event('visibilitychange'))")
    page.browser.until("window.hung === 1")
    page.browser.until("window.said.includes('the service does not answer')")
    page.browser.until("document.querySelector('#lost').textContent === ''")


BUSY: Final = """(start => { const before = window.fetch;
  [window.refuses, window.refused] = [true, 0];
  window.fetch = (path, options) => {
    if (!path.startsWith(start) || !window.refuses) return before(path, options);
    window.refused += 1;
    return Promise.resolve(new Response('{"detail": "try again"}', { status: 503 }));
  };
})(%r)"""


def test_a_look_that_was_refused_is_taken_again_though_nothing_changes(page: Page, changing: Changing) -> None:
    text = page.text("#answer")
    page.value(BUSY % "cluster")
    changing[1]()
    page.browser.until("window.refused > 0")
    page.value("new Promise(done => setTimeout(done, 2500))")  # until all changes are known
    page.value("window.refuses = false")
    page.browser.until(f"document.querySelector('#answer').textContent !== {text!r}")


@pytest.mark.parametrize("path", ["pending", "units"])
def test_a_list_that_was_refused_stays_and_is_read_again_though_nothing_changes(
    page: Page, changing: Changing, path: str
) -> None:
    page.value("document.querySelector('#pending-causes summary').focus()")
    count = page.text("#pending-count")
    page.value(BUSY % path)
    changing[1]()
    page.until_text(f"#{path}-note", "try again")
    assert page.text("#pending-count") == count
    assert page.value("document.activeElement === document.querySelector('#pending-causes summary')")
    page.value("new Promise(done => setTimeout(done, 2500))")  # until all changes are known
    page.value("window.refuses = false")
    page.browser.until(f"document.querySelector('#{path}-note').textContent === ''")


def test_the_focus_stays_near_a_pod_or_a_node_that_has_gone(page: Page, changing_api: str) -> None:
    def change(verb: str, path: str, **given: object) -> None:
        httpx.post(f"{changing_api}/_control/objects", json=[{"verb": verb, "path": path, **given}]).raise_for_status()

    change("create", PODS.path, object=make_pod("late").in_namespace("shop").requests(cpu=9).obj())
    page.until_text("#pending-causes", "shop/late")
    page.value("document.querySelector('button[data-pod=\"shop/late\"]').focus()")
    change("delete", PODS.path, name="late", namespace="shop")
    page.browser.until("!document.querySelector('#pending-causes').textContent.includes('shop/late')")
    assert page.value("document.activeElement.id") == "pending-heading"

    page.show_node(FILLER.format(MANY - 1))
    page.value("document.querySelector('#goes').focus()")
    change("delete", NODES.path, name=FILLER.format(MANY - 1), namespace="")
    page.browser.until("document.querySelector('#details').hidden")
    assert page.value("document.activeElement.id") == "domains-heading"


ANNOUNCED: Final = """(() => { window.said = [];
  new MutationObserver(all => all.forEach(({ target }) => {
    const of = (target.closest ? target : target.parentElement)?.closest('[role=status], [role=alert]');
    if (of && of.getAttribute('aria-live') !== 'off') window.said.push(`${of.id}: ${of.textContent}`);
  })).observe(document.body, { subtree: true, childList: true, characterData: true });
})()"""


def test_screen_readers_do_not_read_counts_at_each_change(page: Page, changing: Changing) -> None:
    page.value(ANNOUNCED)
    with refreshed(page, changing[1]):
        pass
    assert page.value("window.said") == []


def test_what_is_measured_of_the_page_is_not_kept_for_each_change(page: Page, changing: Changing) -> None:
    with refreshed(page, changing[1]):
        pass
    assert page.value("performance.getEntriesByType('mark').length") == 2
