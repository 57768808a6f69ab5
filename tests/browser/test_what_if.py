"""Questions about many pods on the page: the drain of nodes, the loss of zones, how many more fit, what could go."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from core.events import ClusterEvent
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from tests.app.admin.limited_callers import limited_service
from tests.app.server.conversations import serving
from tests.app.serving import PATIENCE
from tests.browser.chromium import Browser
from tests.browser.conftest import opened as opened_at
from tests.browser.page import Page
from tests.browser.served import in_thread
from tests.browser.test_address import NEXT, PREVIOUS, go, reopen
from tests.browser.test_demo_cluster import CONTRASTS
from tests.browser.test_large_cluster import slowness
from tests.builders import PodBuilder, make_node, make_pod
from tests.conformance.engine import load

DRAINED = "The drain of 2 nodes ends; 6 of 6 pods find a place."
NODES = "document.querySelector('#drain-nodes').value"


def opened(page: Page) -> Page:
    """Open the card, as a click on it does."""
    page.value("document.querySelector('#what-if').open = true")
    return page


def drain(page: Page, nodes: str) -> None:
    opened(page)
    page.browser.type("#drain-nodes", nodes)
    page.browser.click("#drain button")


def test_a_drain_says_where_the_pods_go_and_what_stays(page: Page) -> None:
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    moves = page.cells("#pods table tbody tr")
    assert len(moves) == 6
    assert {row[0] for row in moves} == {"node35", "node36"}
    assert ["node35", "data/database-0", "node25"] in moves
    assert "Not placed again" in page.text("#pods")
    assert "DaemonSet kube-system/kube-proxy: 2 pods" in page.text("#pods")
    assert "kubectl drain node35 node36 --ignore-daemonsets" in page.text("#notes")
    assert "2 drained" in page.map_label()
    assert page.value("document.querySelector('#layer').selectedOptions[0].text") == "pods that move"


def test_a_node_tells_which_pods_come_and_which_go(page: Page) -> None:
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    page.show_node("node25")
    page.until_text("#detail-body", "Pods that come")
    assert ["data/database-0", "node35"] in page.cells("#detail-body table tbody tr")
    page.show_node("node35")
    page.until_text("#detail-body", "Pods that are there")
    assert ["data/database-0", "node25"] in page.cells("#detail-body table tbody tr")


def test_nodes_racks_and_zones_are_chosen_on_the_map_and_in_the_list(page: Page) -> None:
    left, top, width = page.box("#map")
    page.browser.click_at(left + width / 3 + 25, top + 55, shift=True)  # the first node of the zone in the middle
    page.browser.until(f"{NODES} === 'node21'")
    assert page.value("document.querySelector('#details').hidden")  # nothing else is chosen
    page.browser.click(".tree tbody tr .twist")
    page.browser.click(".tree tbody tr:nth-child(2) td", shift=True)
    rack = "topology.kubernetes.io/zone=eu-west-1a,example.com/rack=rack-a1"
    page.browser.until(f"{NODES} === 'node21 {rack}'")
    assert page.cells(".tree tbody tr:nth-child(2)")[0][0] == "▸rack-a1, chosen"
    page.browser.press("ArrowDown")
    page.browser.press("Enter", shift=True)
    page.until_text(".tree tbody tr:nth-child(3)", "rack-a2, chosen")
    page.browser.press("Enter", shift=True)
    page.browser.until(f"{NODES} === 'node21 {rack}'")
    page.browser.click("#drain button")
    page.responded("The drain of 6 nodes ")
    assert "6 drained" in page.map_label()


def test_the_command_has_the_labels_of_a_rack_that_is_chosen_alone(page: Page) -> None:
    page.browser.click(".tree tbody tr .twist")
    page.browser.click(".tree tbody tr:nth-child(2) td", shift=True)
    page.browser.click("#drain button")
    page.responded("The drain of 5 nodes ")
    rack = "topology.kubernetes.io/zone=eu-west-1a,example.com/rack=rack-a1"
    assert f"kubectl drain -l {rack} --ignore-daemonsets --force" in page.text("#notes")


def test_a_node_is_chosen_by_the_button_in_its_details(page: Page) -> None:
    page.show_node("node35")
    assert page.text("#goes") == "Choose to be drained"
    page.browser.click("#goes")
    page.browser.until(f"{NODES} === 'node35'")
    assert page.text("#goes") == "Not to be drained"
    page.browser.click("#goes")
    page.browser.until(f"{NODES} === ''")


def test_nodes_are_chosen_by_labels(page: Page) -> None:
    opened(page)
    page.enter("#drain-labels", "example.com/rack=rack-b3")
    page.responded("The drain of 5 nodes ")


@pytest.mark.parametrize(
    ("nodes", "labels", "field", "message"),
    [
        pytest.param("", "", "#drain-nodes", "Choose nodes on the map, or say which.", id="none"),
        pytest.param("node35 node99", "", "#drain-nodes", "node99: neither a node, nor a zone or rack", id="unknown"),
        pytest.param("", "rack=r7", "#drain-labels", "no node matches", id="no-match"),
        pytest.param("", "rack in", "#drain-labels", "expected a label selector", id="no-selector"),
    ],
)
def test_what_is_wrong_with_nodes_stands_beside_them(
    page: Page, nodes: str, labels: str, field: str, message: str
) -> None:
    opened(page)
    page.browser.type("#drain-labels", labels)
    drain(page, nodes)
    assert message in page.complaint(field)
    assert page.value("`#${document.activeElement.id}`") == field
    assert page.text("#answer").startswith("No answer.")


def test_the_loss_of_each_zone_is_a_table_and_one_of_them_is_drawn(page: Page) -> None:
    opened(page)
    page.browser.click("#loss button")
    page.responded("The cluster does not survive the loss of 3 of 3 domains of topology.kubernetes.io/zone")
    rows = page.cells(".losses tbody tr")
    assert rows[0][:4] == ["eu-west-1b", "20", "60", "10"]
    assert rows[0][4] == "0 of 8 of Job batch/nightly-report-29328610"
    assert "Without eu-west-1b" in page.text("#pods h3")
    page.browser.click(".losses tbody tr:nth-child(2) button")
    page.until_text("#pods h3", f"Without {rows[1][0]}")
    assert page.value("document.activeElement.dataset.lost") == rows[1][0]
    assert page.value("document.activeElement.getAttribute('aria-pressed')") == "true"
    address, label = page.value("location.href"), page.map_label()
    reopen(page, address)
    page.until_text("#pods h3", f"Without {rows[1][0]}")
    assert page.map_label() == label
    assert page.value("location.href") == address


def test_a_loss_by_another_label_and_by_one_that_there_is_not(page: Page) -> None:
    opened(page)
    page.enter("#loss-by", "example.com/rack")
    page.responded(" domains of example.com/rack")
    page.enter("#loss-by", "no/such")
    assert "no node has the label no/such" in page.complaint("#loss-by")


@asynccontextmanager
async def budgeted(*others: PodBuilder) -> AsyncIterator[str]:
    """Serve the page of a cluster with a pod that its budget never lets go, and with others; give its URL."""
    nodes = [make_node(name).allocatable(cpu=4, memory="8Gi", pods=20) for name in ("n1", "n2")]
    pod = make_pod("web-0").label("app", "web").owned_by("ReplicaSet", "web", "r").requests(cpu=1).on("n1")
    mirror = load([], [node.obj() for node in nodes], [each.obj() for each in (pod, *others)])
    selector = parse_selector({"app": "web"}, ())
    mirror.apply(ClusterEvent("Add", PodDisruptionBudget(namespace="default", name="web", selector=selector)))
    async with serving(limited_service(mirror, None).port) as (_, number):
        yield f"http://127.0.0.1:{number}/"


def test_a_pod_that_is_never_evicted_is_not_said_to_find_no_place(browser: Browser) -> None:
    with in_thread(budgeted()) as url:
        page = opened_at(browser, url)
        drain(page, "n1")
        page.responded("The drain of n1 does not end")
        page.until_text("#outcome h4", "Why the drain does not end")
        assert "default/web-0: never evicted: its PodDisruptionBudget" in page.text("#outcome")
        assert "Without a place" not in page.text("#outcome")
        assert "1 never emptied" in page.map_label()
        browser.open("about:blank")  # the server waits for the stream of events to end


def test_a_node_is_never_emptied_also_if_another_of_its_pods_finds_no_place(browser: Browser) -> None:
    pinned = make_pod("pinned").owned_by("ReplicaSet", "db", "s").node_selector({"disk": "fast"}).on("n1")
    with in_thread(budgeted(pinned)) as url:
        page = opened_at(browser, url)
        drain(page, "n1")
        page.until_text("#outcome", "Without a place")
        assert "1 never emptied" in page.map_label()
        browser.open("about:blank")


@asynccontextmanager
async def tiered() -> AsyncIterator[str]:
    """Serve the page of a cluster whose nodes have a label, one with an empty value; give its URL."""
    nodes = [
        make_node(name).label("tier", name[1:]).allocatable(cpu=cpu, memory="8Gi", pods=20)
        for name, cpu in (("n", 2), ("nx", 4))
    ]
    pods = [
        make_pod(f"of-{name}").owned_by("ReplicaSet", name, name).requests(cpu=cpu).on(name)
        for name, cpu in (("n", 1), ("nx", 3))
    ]
    mirror = load([], [node.obj() for node in nodes], [pod.obj() for pod in pods])
    async with serving(limited_service(mirror, None).port) as (_, number):
        yield f"http://127.0.0.1:{number}/"


def test_the_loss_of_an_empty_value_has_a_name_and_is_not_drawn_for_the_worst(browser: Browser) -> None:
    with in_thread(tiered()) as url:
        page = opened(opened_at(browser, url))
        page.enter("#loss-by", "tier")
        page.until_text("#pods h3", "Without x, ")
        assert [row[0] for row in page.cells(".losses tbody tr")] == ["x", '""']
        page.browser.click(".losses tbody tr:nth-child(2) button")
        page.until_text("#pods h3", 'Without "", ')
        browser.open("about:blank")  # the server waits for the stream of events to end


def test_a_developer_asks_whether_40_more_replicas_fit(page: Page) -> None:
    opened(page)
    page.browser.type("#pod-name", "shop/deploy/web")
    page.enter("#replicas", "40")
    page.responded("40 of the 40 that are asked for fit: Deployment shop/web.")
    zones = page.cells("#outcome table tbody tr")
    assert sum(int(row[1]) for row in zones if row[0].startswith("eu-west-1")) == 40
    address = page.value("location.href")
    assert "ask=capacity&pod=shop/deploy/web&replicas=40" in address
    reopen(page, address)
    page.responded("40 of the 40 that are asked for fit")


def test_of_a_replica_that_is_not_judged_it_is_not_said_that_it_has_no_place(page: Page) -> None:
    opened(page)
    page.browser.type("#pod-name", "batch/train-vision-4k7xm")
    page.enter("#replicas", "2")
    page.responded("0 of the 2 that are asked for fit")
    assert "The next one may have a place: it claims devices." in page.text("#notes")


def test_what_is_supposed_of_a_pod_is_said_not_to_count_for_its_replicas(page: Page) -> None:
    opened(page)
    page.browser.type("#pod-name", "shop/deploy/web")
    page.browser.click("[data-add=remove]")  # and not said which
    page.enter("#replicas", "3")
    page.responded("3 of the 3 that are asked for fit")
    assert 'What is supposed in "Question" does not count here' in page.text("#notes")
    page.browser.click(".supposed button")
    page.responded("No answer.", begins=True)  # what it asks about the pod itself: none of the Deployment is pending
    page.enter("#replicas", "3")
    page.responded("3 of the 3 that are asked for fit")
    assert "does not count" not in page.text("#notes")


def test_what_is_wrong_with_replicas_stands_beside_them(page: Page) -> None:
    opened(page)
    page.browser.type("#pod-name", "shop/deploy/web")
    page.enter("#replicas", "many")
    assert page.complaint("#replicas") == "Give a number, or leave it empty."
    page.browser.type("#pod-name", "shop/deploy/nobody")
    page.enter("#replicas", "3")
    assert "no such pod" in page.complaint("#pod-name")


def test_nodes_that_could_go_are_told_with_what_is_in_the_way_of_the_others(page: Page) -> None:
    opened(page)
    page.browser.type("#drain-nodes", "node1 node2")
    page.browser.click("#removal")
    page.responded("1 of 2 nodes could go, each by itself.")
    (stays,) = page.cells("#outcome table tbody tr")
    assert stays[0] == "node1"
    assert "1 could all go" in page.map_label()


def test_a_drain_is_restored_from_the_address_and_left_again(page: Page) -> None:
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    page.show_node("node25")
    address = page.value("location.href")
    assert "#ask=drain&nodes=node35+node36&node=node25" in address
    reopen(page, address)
    page.responded(DRAINED, begins=True)
    page.wait_for_details("node25")
    assert page.value(NODES) == "node35 node36"
    page.browser.click("#back")
    page.responded("60 nodes in 3 zones", begins=True)
    assert page.text("#outcome") + page.text("#pods") == ""
    assert page.value(NODES) == ""


def counting(page: Page) -> None:
    """Count the questions that the page asks from now on."""
    count = "path.startsWith('what-if/') && options.method && (window.asked += 1)"
    page.value(
        f"(() => {{ const old = fetch; window.asked = 0; "
        f"window.fetch = (path, options) => {{ {count}; return old(path, options); }}; }})()"
    )


def test_going_back_shows_the_answer_again_and_asks_nothing(page: Page) -> None:
    counting(page)
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    page.show_node("node25")
    page.browser.click("#loss button")
    page.responded("The cluster does not survive")
    go(page, PREVIOUS)
    page.responded(DRAINED, begins=True)
    page.wait_for_details("node25")
    assert (page.value("window.asked"), page.value(NODES)) == (2, "node35 node36")
    go(page, PREVIOUS)
    page.browser.until("document.querySelector('#details').hidden")
    go(page, NEXT)
    go(page, NEXT)
    page.responded("The cluster does not survive")
    assert page.value("window.asked") == 2


def test_a_link_that_is_opened_in_the_same_window_is_asked_and_going_back_is_not(page: Page) -> None:
    counting(page)
    for names in ("node35", "node36"):
        page.value(f"location.hash = 'ask=drain&nodes={names}'")
        page.responded(f"The drain of {names} ends", begins=True)
    go(page, PREVIOUS)
    page.responded("The drain of node35 ends", begins=True)
    assert page.value("window.asked") == 2


def test_going_back_to_a_question_of_which_no_answer_is_kept_offers_to_ask_it(page: Page) -> None:
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    for label in ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "example.com/rack"):
        page.enter("#loss-by", label)
        page.responded(f" of {label}")
    counting(page)
    go(page, 3 * PREVIOUS)
    page.responded("This question was not asked again.")
    assert page.text("#outcome") + page.text("#pods") == ""
    assert page.value("window.asked") == 0
    page.browser.click("#helps button")
    page.responded(DRAINED, begins=True)


def test_a_pod_that_the_api_server_refuses_is_not_made_again(page: Page) -> None:
    page.value(
        """(() => { const old = fetch; window.fetch = async (path, options) => {
        const response = await old(path, options);
        if (!path.startsWith('what-if/drain?')) return response;
        const told = await response.json();
        const { move } = told.pods.find(each => each.move.pod === 'data/database-0');
        const rejected = {fate: 'denied', nodes: 0, reasons: {}, victims: [], node: '', why: 'violates PodSecurity'};
        Object.assign(move, {placed: 'never', node: '', nodes: {}, rejected});
        return new Response(JSON.stringify(told)); }; })()"""
    )
    drain(page, "node35 node36")
    page.responded("The drain of 2 nodes ends; 5 of 6 pods find a place.", begins=True)
    assert "data/database-0: not made again: violates PodSecurity" in page.text("#outcome")


def test_a_long_question_shows_its_time_and_is_cancelled(large_page: Page) -> None:
    page = opened(large_page)
    page.enter("#loss-by", "zone")
    page.until_text("#running-what", "Kindred tries each loss.")
    page.browser.until("/^[1-9]\\d* s$/.test(document.querySelector('#running-time').textContent)")
    page.browser.click("#cancel")
    page.responded("Cancelled.", begins=True)
    assert page.value("document.querySelector('#running').hidden")
    drain(page, "node-00001")  # one question at a time: the one before has ended
    page.responded("The drain of node-00001 ends")


def test_the_share_done_of_a_long_question_is_shown(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_steps(*_: object, **__: object) -> Iterator[None]:
        yield
        time.sleep(1)
        yield
        time.sleep(PATIENCE)

    monkeypatch.setattr("app.simulation.questions.lose_each", two_steps)
    with in_thread(tiered()) as url:
        page = opened(opened_at(browser, url))
        page.enter("#loss-by", "tier")
        share = "document.querySelector('#running-share')"
        page.browser.until(f"{share}.value === 2 / 12")  # two pods in three orders and two states
        page.browser.click("#cancel")
        page.responded("Cancelled.", begins=True)
        position = page.value(f"(document.querySelector('#loss').requestSubmit(), {share}.position)")
        assert position == -1, "nothing is known of the next question yet"
        browser.open("about:blank")


def test_a_zone_of_5_000_nodes_is_chosen_by_one_click(large_page: Page) -> None:
    page = large_page
    took = page.value(
        """Array.from({ length: 3 }, () => { // chosen, not chosen, and chosen again: the best counts
        const begun = performance.now(); const row = document.querySelector('.tree tbody tr td');
        row.dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true}));
        return performance.now() - begun; })"""
    )
    assert page.value(NODES).startswith("topology.kubernetes.io/zone=")
    assert min(took) / slowness(page) < 500  # ms


WIDTHS = (400, 1280)


@pytest.fixture(params=WIDTHS, ids=str)
def narrow(page: Page, request: pytest.FixtureRequest) -> Iterator[int]:
    page.browser.window(request.param, 740)
    yield request.param
    page.browser.window(1500, 1000)


def test_answers_about_many_pods_have_room(page: Page, narrow: int) -> None:
    drain(page, "node35 node36")
    page.responded(DRAINED, begins=True)
    page.show_node("node35")
    assert page.too_wide() == []
    page.browser.click("#loss button")
    page.responded("The cluster does not survive")
    assert page.too_wide() == []
    assert page.box("#map")[2] <= narrow


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_answers_about_many_pods_are_told_apart_from_what_is_behind_them(page: Page, *, dark: bool) -> None:
    page.browser.window(1500, 1000, dark=dark)
    opened(page)
    page.browser.click("#loss button")
    page.responded("The cluster does not survive")
    assert page.value(CONTRASTS) == []


def test_the_service_says_why_it_does_not_answer(page: Page) -> None:
    opened(page)
    rejection = {"detail": "another question of this caller is running", "field": ""}
    page.value(
        f"(() => {{ const old = fetch; window.fetch = (path, options) => path.startsWith('what-if/') ? Promise.resolve("
        f"new Response({json.dumps(json.dumps(rejection))}, {{status: 429}})) : old(path, options); }})()"
    )
    page.browser.click("#loss button")
    page.until_text("#what-if-error", rejection["detail"])
    page.responded("No answer.", begins=True)
