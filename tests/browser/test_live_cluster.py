"""The page over a cluster that Kindred follows and decides for: measured load, units, and victims of preemption."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

import httpx
import pytest

from tests.app.commands.test_cli_serve_cluster import kubeconfig
from tests.app.serving import PATIENCE, until
from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import admin_url, serving
from tests.browser.test_address import reopen
from tests.browser.test_opening import choose_layer, heads
from tests.builders import NodeBuilder, make_node, make_pod
from tests.demo_cluster import HOSTNAME, ZONE
from tests.fake_apiserver import Behaviour, FakeApiServer
from tests.fake_apiserver.resources import NODES, PODS, SCHEDULING_GROUPS
from tests.fake_apiserver.usage import METRICS_PATH, FakeUsage
from tests.fake_apiserver.wire import Request

AMOUNTS: Final = {"cpu": "4", "memory": "8Gi", "pods": "110"}
FRESH: Final = FakeUsage(cpu={"n0": 1000, "n1": 3800}, memory={"n0": 2 << 30, "n1": 4 << 30})
OLD: Final = FakeUsage(cpu={"n2": 2000}, memory={"n2": 1 << 30}, age=900.0)
SETTINGS: Final = {
    "KINDRED_PROFILE": "full",
    "KINDRED_DECIDE": "any-node",
    "KINDRED_USAGE_SOURCE": "metrics-api",
    "KINDRED_USAGE_INTERVAL": "1",
}


CONDITION: Final = {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable"}
TEAM: Final = {
    "metadata": {"name": "team", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    "status": {"conditions": [{**CONDITION, "message": "0/4 nodes", "lastTransitionTime": "2026-01-02T03:04:05Z"}]},
}


def node(name: str, zone: str) -> NodeBuilder:
    return make_node(name).label(HOSTNAME, name).label(ZONE, zone).allocatable(**AMOUNTS).capacity(**AMOUNTS)


def fill(server: FakeApiServer) -> None:
    """Create four nodes: two that are measured, one that was measured too long ago, and one that was not."""
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


def measured(request: Request) -> tuple[int, bytes]:
    """Return a NodeMetricsList with old measurements beside fresh ones."""
    lists = [json.loads(usage.metrics_api(request)[1]) for usage in (FRESH, OLD)]
    return 200, json.dumps({**lists[0], "items": [item for each in lists for item in each["items"]]}).encode()


@contextmanager
def api_server() -> Iterator[str]:
    """Serve the cluster in a thread; give its URL."""
    began: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        async with FakeApiServer(Behaviour(other_apis={METRICS_PATH: measured})) as server:
            fill(server)
            ended = asyncio.Event()
            began.set_result((server.url, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    url, loop, ended = began.result(PATIENCE)
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)


@pytest.fixture(scope="module")
def followed_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("followed")
    with (
        api_server() as server,
        serving(folder, "--kubeconfig", kubeconfig(folder, server), **SETTINGS) as service,
    ):
        url = admin_url(service)
        until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
        until(lambda: any(httpx.get(f"{url}cluster").json()["load"]["too_old"]))
        yield url


@pytest.fixture
def followed(browser: Browser, followed_url: str) -> Iterator[Page]:
    page = opened(browser, followed_url)
    yield page
    assert browser.errors == []
    browser.open("about:blank")  # the service waits for the stream of events to end


def rows(page: Page) -> list[list[str]]:
    return page.cells(".tree tbody tr")


def lines(page: Page, selector: str) -> list[str]:
    """Give the lines of an element that are not empty."""
    return [each for each in page.text(selector).splitlines() if each]


def test_the_load_is_a_layer_beside_the_requests(followed: Page) -> None:
    offered = "[...document.querySelectorAll('#layer option')].map(it => [it.value, it.textContent])"
    assert followed.value(offered)[-2:] == [["load:cpu", "load: cpu"], ["load:memory", "load: memory"]]
    choose_layer(followed, "load:cpu")
    assert heads(followed) == ["Domain or node", "Nodes", "Load", "Used, of capacity"]
    zone_a, zone_b = rows(followed)
    assert zone_a == ["▸a", "2", "60 %", "4.8 of 8"]
    assert zone_b[:3] == ["▸b", "2", "unknown"]
    assert zone_b[3].startswith("1 node measured too long ago, up to 15 min; 1 node not measured")
    label = followed.value("document.querySelector('#map').getAttribute('aria-label')")
    assert "60 % of cpu in use on 2 measured nodes" in label
    assert followed.value("location.hash") == "#layer=load:cpu"


def test_nodes_that_are_not_measured_have_a_sign_of_their_own_in_the_legend(followed: Page) -> None:
    choose_layer(followed, "load:cpu")
    legend = [" ".join(each.split()) for each in followed.value(
        "[...document.querySelectorAll('#legend > li')].map(it => it.innerText)"
    )]  # fmt: skip
    assert legend == [
        "0 below 20 %",
        "1 20 to 40 %",
        "0 40 to 60 %",
        "0 60 to 80 %",
        "1 80 to 100 %",
        "1 measured too long ago",
        "1 not measured",
    ]
    choose_layer(followed, "cpu")
    assert "measured" not in followed.legend()


def test_a_link_restores_the_layer_and_the_keyboard_walks_its_nodes(followed: Page) -> None:
    reopen(followed, f"{followed.url}#layer=load:memory")
    assert followed.value("document.querySelector('#layer').value") == "load:memory"
    followed.value("document.querySelector('.tree tr[tabindex=\"0\"]').focus()")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        followed.browser.press(key)
    followed.wait_for_details("n0")
    assert rows(followed)[1] == ["n0", "", "25 %", "2Gi of 8Gi"]


@pytest.mark.parametrize(
    ("name", "table", "usage"),
    [
        pytest.param(
            "n0", [["cpu", "1", "4", "25 %"], ["memory", "2Gi", "8Gi", "25 %"]], "Usage: measured ", id="measured"
        ),
        pytest.param("n2", [], "Usage: measured 15 min ago, which is too old.", id="too-old"),
        pytest.param("n3", [], "Usage: not measured.", id="not-measured"),
    ],
)
def test_the_details_of_a_node_have_its_usage_and_its_age(
    followed: Page, name: str, table: list[list[str]], usage: str
) -> None:
    followed.show_node(name)
    tables = followed.value("[...document.querySelectorAll('#detail-body caption')].map(it => it.textContent)")
    assert tables == ["Requested by the pods there", *(["Measured usage"] if table else [])]
    assert followed.cells("#detail-body table:nth-of-type(2) tbody tr") == table
    assert usage in followed.text("#detail-body")


def test_an_explanation_can_be_coloured_by_the_load(followed: Page) -> None:
    followed.ask("shop/web-0")
    choose_layer(followed, "load:cpu")
    assert rows(followed)[0] == ["▸a", "2", "60 %", "4.8 of 8"]
    followed.show_node("n1")
    assert "Measured usage" in followed.text("#detail-body")


TEAM_CONDITION: Final = (
    "Condition: PodGroupInitiallyScheduled=False (Unschedulable), since 2026-01-02T03:04:05Z: 0/4 nodes"
)


def test_units_are_listed_with_their_packing_or_conditions(followed: Page) -> None:
    followed.browser.until("document.querySelector('#units-waiting').children.length")
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_narrow_window_has_room_for_it_all(followed: Page, *, dark: bool) -> None:
    followed.browser.window(360, 800, dark=dark)
    reopen(followed, f"{followed.url}#layer=load:cpu&node=n1")
    followed.wait_for_details("n1")
    followed.browser.until("document.querySelector('#units-waiting').children.length")
    assert followed.too_wide() == []


def test_without_a_source_of_usage_and_without_units_the_page_has_neither(page: Page) -> None:
    offered = page.value("[...document.querySelectorAll('#layer option')].map(it => it.value)")
    assert not [each for each in offered if each.startswith("load:")]
    page.show_node("node1")
    assert "Usage" not in page.text("#detail-body")
    assert page.value("document.querySelector('#units').hidden")
    reopen(page, f"{page.url}#layer=load:cpu")
    assert page.value("document.querySelector('#layer').value") == "cpu"
