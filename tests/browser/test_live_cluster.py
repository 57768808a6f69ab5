"""The page over a cluster that Kindred follows and decides for: units, victims of preemption, and changes."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
import pytest

from tests.app.commands.test_serve import kubeconfig
from tests.app.serving import until
from tests.bench.cluster import HOST, ZONE
from tests.browser.chromium import Browser
from tests.browser.conftest import over
from tests.browser.page import Page
from tests.browser.served import in_thread, serving
from tests.browser.test_address import reopen
from tests.builders import NodeBuilder, make_node, make_pod
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.control import Control
from tests.fake_apiserver.resources import NODES, PODS, SCHEDULING_GROUPS

AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
SETTINGS: Final = {
    "KINDRED_PROFILE": "full",
    "KINDRED_DECIDE": "any-node",
}


CONDITION: Final = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable"}
TEAM: Final = {
    "metadata": {"name": "team", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    "status": {"conditions": [{**CONDITION, "message": "0/4 nodes", "lastTransitionTime": "2026-01-02T03:04:05Z"}]},
}


def node(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label(HOST, name).label(ZONE, zone).allocatable(**AMOUNTS).capacity(**AMOUNTS)


def fill(server: FakeApiServer) -> None:
    """Create four nodes, a gang that is placed, one that waits, a preemptor, and a group of kube-scheduler."""
    for name, zone in (("n0", "a"), ("n1", "a"), ("n2", "b"), ("n3", "b")):
        server.create(NODES.path, node(name, zone).obj())
    placed = [make_pod(f"train-{at}").of_group("train", 2).packed("near", ZONE).on(f"n{at}") for at in range(2)]
    waiting = make_pod("wide-0").of_group("wide", 3).packed("dense")
    victim = make_pod("batch-3").in_namespace("shop").on("n1").terminating()
    preemptor = make_pod("web-0").in_namespace("shop").priority(100).requests(cpu=9).nominated("n1")
    member = make_pod("team-0").in_scheduling_group("team")
    for pod in (*placed, waiting, victim, preemptor, member):
        server.create(PODS.path, pod.obj())
    server.create(SCHEDULING_GROUPS.path, TEAM)


@asynccontextmanager
async def api_server() -> AsyncIterator[str]:
    """Serve the cluster; give its URL."""
    async with FakeApiServer() as server:
        server.control = Control(server, None).handle
        fill(server)
        yield server.url


@pytest.fixture(scope="module")
def api_url() -> Iterator[str]:
    with in_thread(api_server()) as server:
        yield server


@pytest.fixture(scope="module")
def followed_url(tmp_path_factory: pytest.TempPathFactory, api_url: str) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("followed")
    with serving(folder, "--kubeconfig", kubeconfig(folder, api_url), **SETTINGS) as service:
        url = f"{service.admin_url}/"
        until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
        until(lambda: len(httpx.get(f"{url}units").json()["units"]) == 3)  # it is ready without some
        yield url


@pytest.fixture
def followed(browser: Browser, followed_url: str) -> Iterator[Page]:
    yield from over(browser, followed_url)


def lines(page: Page, selector: str) -> list[str]:
    """Give the lines of an element that are not empty."""
    return [each for each in page.text(selector).splitlines() if each]


TEAM_CONDITION: Final = (
    "Condition: PodGroupInitiallyScheduled=False (Unschedulable), since 2026-01-02T03:04:05Z: 0/4 nodes"
)


def test_units_are_listed_with_their_packing_or_conditions(followed: Page) -> None:
    assert followed.text("#units-count") == "3"
    waiting = lines(followed, "#units-waiting")
    assert waiting[:4] == [
        "default/team pending, by kube-scheduler",
        "waits for 1 more member of 2",
        "0 of 2 scheduled, 1 pending",
        TEAM_CONDITION,
    ]
    assert waiting[4] == "default/wide pending"
    assert waiting[5] == "waits for 2 more members of 3"
    assert waiting[6].startswith("0 of 3 scheduled, 1 pending")
    assert waiting[7].startswith("Packing: spread, on 0 nodes; placed as spread: metadata.annotations[")
    assert followed.text("#units-sum") == "1 unit scheduled"
    followed.browser.click("#units-sum")
    followed.browser.until("document.querySelector('#units-placed').checkVisibility()")
    assert lines(followed, "#units-placed") == [
        "default/train scheduled",
        "2 of 2 scheduled",
        f"Packing: near {ZONE}, on 1 domain, 2 nodes",
    ]


def test_an_explanation_of_a_member_tells_of_its_group(followed: Page) -> None:
    followed.ask("default/wide-0")
    notes = followed.text("#notes")
    assert "Placed together with its group: default/wide is pending: waits for 2 more members of 3." in notes
    assert "Packing: spread, on 0 nodes; placed as spread: " in notes


def test_a_member_of_a_group_of_kube_scheduler_tells_of_it_when_it_is_pending_and_explained(followed: Page) -> None:
    waits = "default/team is pending: waits for 1 more member of 2"
    assert f"Group {waits}" in followed.text("#pending-causes")
    followed.ask("default/team-0")
    notes = followed.text("#notes")
    assert (
        f"Placed together with its group, by kube-scheduler: {waits}. Of 1 member, 0 of 2 scheduled, 1 pending."
        in notes
    )
    assert f"{TEAM_CONDITION}." in notes


WAITS: Final = "waits for shop/batch-3 on n1 to end, since "


def test_who_waits_for_which_victim_is_told_of_the_pod_and_of_the_node(followed: Page) -> None:
    assert f"shop/web-0 {WAITS}" in followed.text("#pending-causes")
    followed.show_node("n1")
    followed.browser.until("document.querySelector('#detail-body .measured') !== null")
    assert f"shop/web-0 {WAITS}" in followed.text("#detail-body .measured")
    followed.show_node("n0")
    assert followed.value("document.querySelector('#detail-body .measured')") is None
    followed.ask("shop/web-0")
    assert f"It {WAITS}" in followed.text("#notes")


def change(api: str, changed: NodeBuilder) -> None:
    """Change a node."""
    update = {"verb": "update", "path": NODES.path, "object": changed.obj()}
    httpx.post(f"{api}/_control/objects", json=[update]).raise_for_status()


@pytest.fixture
def close(api_url: str, followed_url: str) -> Iterator[Callable[[], None]]:
    """Yield what closes a node, which is open again after the test, for the service, too."""
    yield lambda: change(api_url, node("n3", "b").unschedulable())
    change(api_url, node("n3", "b"))
    mirrored = f"{followed_url}debug/mirror?node=n3"
    until(lambda: not httpx.get(mirrored).json()["nodes"][0]["unschedulable"])


def generation(page: Page) -> int:
    found = re.search(r"mirror: ([\d,]+)", page.value("document.querySelector('#generation').textContent"))
    assert found
    return int(found[1].replace(",", ""))


def until_generation(page: Page, beyond: int) -> None:
    page.browser.until(
        "Number(document.querySelector('#generation').textContent.match(/mirror: ([0-9,]+)/)?.[1].replace(',', ''))"
        f" > {beyond}"
    )


def test_a_change_of_the_cluster_is_shown_without_being_asked_for(followed: Page, close: Callable[[], None]) -> None:
    before = generation(followed)
    close()
    until_generation(followed, before)


def test_a_pod_that_begins_to_wait_is_shown_though_nothing_else_changes(followed: Page, api_url: str) -> None:
    of = {"path": PODS.path, "name": "late-0", "namespace": "default"}
    written = [{"verb": "create", "path": PODS.path, "object": make_pod("late-0").of_group("late", 3).obj()}]
    before = generation(followed)
    httpx.post(f"{api_url}/_control/objects", json=written).raise_for_status()
    try:
        followed.until_text("#pending-causes", "default/late-0")
        followed.until_text("#units-waiting", "default/late")
        assert before == generation(followed)
    finally:
        httpx.post(f"{api_url}/_control/objects", json=[{"verb": "delete", **of}]).raise_for_status()
    followed.browser.until("!document.querySelector('#units-waiting').textContent.includes('default/late')")


def test_an_answer_of_before_a_change_says_so_and_is_asked_again_at_a_click(
    followed: Page, close: Callable[[], None]
) -> None:
    followed.ask("shop/web-0")
    assert followed.value("document.querySelector('#changed').hidden")
    close()
    followed.browser.until("!document.querySelector('#changed').hidden")
    followed.browser.click("#changed-again")
    followed.browser.until("document.querySelector('#changed').hidden")
    assert "unschedulable" in followed.text("#answer") or "unschedulable" in followed.legend()


def test_an_answer_that_a_change_overtakes_says_so(followed: Page, close: Callable[[], None]) -> None:
    followed.delay("explain?limit=3")
    followed.browser.type("#pod-name", "shop/web-0")
    followed.browser.click("#ask")
    followed.until_delayed()
    before = generation(followed)
    close()
    until_generation(followed, before)
    followed.release()
    followed.responded("shop/web-0", begins=True)
    assert not followed.value("document.querySelector('#changed').hidden")
    assert generation(followed) > before


def test_a_click_is_not_lost_if_the_list_is_read_again_while_the_button_is_down(
    followed: Page, close: Callable[[], None]
) -> None:
    at = followed.browser.centre("document.querySelector('.waiting button')")
    followed.delay("pending")
    close()
    followed.until_delayed()
    followed.browser.mouse("mousePressed", *at)
    followed.release()
    followed.browser.mouse("mouseReleased", *at)
    followed.responded("nodes are available")
    assert followed.value("document.querySelector('#pod-name').value") == followed.text(".waiting button")


LOOKS: Final = "performance.getEntriesByType('resource').filter(it => it.name.endsWith('/pending')).length"


def test_an_answer_takes_the_focus_if_the_list_it_was_asked_in_has_been_read_again(
    followed: Page, close: Callable[[], None]
) -> None:
    followed.delay("explain?limit=3")
    followed.browser.click(".waiting button")
    followed.until_delayed()
    looks = followed.value(LOOKS)
    close()
    followed.browser.until(f"{LOOKS} > {looks}")
    followed.painted()
    assert followed.value("document.activeElement.dataset.pod") == followed.text(".waiting button")
    followed.release()
    followed.responded("nodes are available")
    assert followed.value("document.activeElement.textContent") == "Answer"


def test_the_page_goes_on_if_a_press_has_no_release(followed: Page, close: Callable[[], None]) -> None:
    at = followed.browser.centre("document.querySelector('.waiting button')")
    followed.value("window.before = document.querySelector('#pending-causes').firstChild")
    followed.browser.mouse("mousePressed", *at)  # and is released in a menu of the system
    close()
    try:
        followed.browser.until("!window.before.isConnected")
    finally:
        followed.browser.mouse("mouseReleased", *at)


def test_a_press_of_the_space_bar_is_not_lost_if_the_list_is_read_again(
    followed: Page, close: Callable[[], None]
) -> None:
    followed.value("document.querySelector('.waiting button').focus()")
    space = {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}
    followed.delay("pending")
    close()
    followed.until_delayed()
    followed.browser.command("Input.dispatchKeyEvent", {"type": "keyDown", "text": " ", **space})
    followed.release()
    followed.browser.command("Input.dispatchKeyEvent", {"type": "keyUp", **space})
    followed.responded("nodes are available")


def test_a_click_is_not_lost_if_a_unit_comes_while_the_button_is_down(
    followed: Page, api_url: str, followed_url: str, close: Callable[[], None]
) -> None:
    pod = make_pod("late-0").of_group("late", 3)
    written = [{"verb": "create", "path": PODS.path, "object": pod.obj()}]
    httpx.post(f"{api_url}/_control/objects", json=written).raise_for_status()
    try:
        until(lambda: "default/late" in httpx.get(f"{followed_url}units").text)
        followed.delay("units")  # not before: only the first answer is released, and that must have the unit
        close()
        followed.until_delayed()
        at = followed.browser.centre("document.querySelector('#units-sum')")
        followed.browser.mouse("mousePressed", *at)
        followed.release()
        followed.browser.mouse("mouseReleased", *at)
        assert followed.value("document.querySelector('#units-folded').open")
        followed.until_text("#units-waiting", "default/late")
    finally:
        gone = [{"verb": "delete", "path": PODS.path, "name": "late-0", "namespace": "default"}]
        httpx.post(f"{api_url}/_control/objects", json=gone).raise_for_status()


def test_a_click_is_not_lost_if_the_cluster_changes_while_the_button_is_down(
    followed: Page, close: Callable[[], None]
) -> None:
    followed.ask("shop/web-0")
    at = followed.browser.centre("document.querySelector('.tree tbody tr')")
    followed.browser.mouse("mousePressed", *at)
    close()
    followed.value("new Promise(done => setTimeout(done, 1000))")
    followed.browser.mouse("mouseReleased", *at)
    followed.browser.until("!document.querySelector('#details').hidden && !document.querySelector('#changed').hidden")


def test_a_hidden_page_does_not_follow_and_catches_up_when_it_is_shown(
    followed: Page, close: Callable[[], None]
) -> None:
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s});"
    show = "document.dispatchEvent(new Event('visibilitychange'))"
    before = generation(followed)
    followed.value(f"{hide % 'true'} {show}")
    close()
    followed.value("new Promise(done => setTimeout(done, 1500))")
    assert before == generation(followed)
    followed.value(f"{hide % 'false'} {show}")
    until_generation(followed, before)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_narrow_window_has_room_for_it_all(followed: Page, *, dark: bool) -> None:
    followed.browser.window(360, 800, dark=dark)
    reopen(followed, f"{followed.url}#layer=memory&node=n1")
    followed.wait_for_details("n1")
    assert followed.too_wide() == []


def test_without_units_the_page_has_none(page: Page) -> None:
    assert page.value("document.querySelector('#units').hidden")
