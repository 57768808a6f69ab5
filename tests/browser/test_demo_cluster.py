"""The page over the demo cluster: choose, click, suppose, and be told what is wrong."""

import pytest
import yaml

from app.admin.page_routes import OPEN_PATHS
from tests.app.serving import ROOT
from tests.browser.page import Page

METADATA = {"name": "web-next", "namespace": "shop", "labels": {"app": "queue"}}
REPELLED = {
    "metadata": METADATA,
    "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "api"}}, "topologyKey": "kubernetes.io/hostname"}]}}},
}  # fmt: skip


def test_a_pod_by_name_is_answered_with_its_domains(page: Page) -> None:
    page.ask("data/queue-0")
    assert page.text("#answer") == (
        "data/queue-0: 20/60 nodes are available: 40 node(s) didn't match pod anti-affinity rules."
    )
    assert "gone: data/queue-0" in page.text("#supposition")
    assert page.cells(".tree tbody tr") == [
        ["▸eu-west-1a", "20", "20", "40", ""],
        ["▸eu-west-1b", "20", "0", "", ""],
        ["▸eu-west-1c", "20", "0", "", ""],
    ]
    assert "40 node(s) didn't match pod anti-affinity rules" in page.legend().replace("\n", " ")
    assert page.map_label().startswith("Map of 60 nodes in 3 zones, 20 fit")


def test_the_state_of_the_service_is_told(page: Page) -> None:
    assert "fresh mirror: 60 nodes, 291 pods" in page.text("#mirror")


def test_a_click_on_a_node_of_the_map_tells_the_pods_behind_its_verdict(page: Page) -> None:
    page.ask("data/queue-0")
    left, top, width = page.box("#map")
    page.browser.click_at(left + width / 3 + 25, top + 55)  # the first node of the zone in the middle
    page.wait_for_details("node21")
    reported = page.text("#detail-body")
    assert "node(s) didn't match pod anti-affinity rules" in reported
    assert "1 pod in topology.kubernetes.io/zone = eu-west-1b" in reported
    assert page.value("document.querySelector('.term.blocks .chip').dataset.pod").startswith("data/queue-")
    assert page.value("document.querySelector('.tree tr[aria-selected=true] td').textContent") == "node21"


def test_a_click_on_a_domain_tells_its_counts_and_its_pods(page: Page) -> None:
    page.ask("data/queue-0")
    page.browser.click(".tree tbody tr:nth-child(2) td")
    page.wait_for_details("eu-west-1b")
    assert "0 of 20 nodes fit" in page.text("#detail-body")
    assert "on node" in page.text("#detail-body .term.blocks .chip")


def test_the_tree_is_walked_by_keyboard_alone(page: Page) -> None:
    page.ask("data/queue-0")
    page.value("document.querySelector('.tree tr[tabindex=\"0\"]').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.browser.press(key)
    page.wait_for_details("node2")
    focused = "document.activeElement"
    assert page.value(f"{focused}.getAttribute('aria-level')") == "3"
    assert page.value(f"{focused}.getAttribute('aria-selected')") == "true"
    assert page.value(f"[{focused}.getAttribute('aria-posinset'), {focused}.getAttribute('aria-setsize')]") == [
        "2",
        "5",
    ]
    for key in ("ArrowLeft", "ArrowLeft"):
        page.browser.press(key)
    assert page.value(f"[{focused}.getAttribute('aria-level'), {focused}.getAttribute('aria-expanded')]") == [
        "2",
        "false",
    ]


def blocker(page: Page) -> str:
    pod: str = page.value("document.querySelector('.term.blocks .chip').dataset.pod")
    return pod


def forked(page: Page) -> list[list[str]]:
    lines: list[list[str]] = page.value(
        "[...document.querySelectorAll('.supposed')].map(row => "
        "[row.dataset.kind, ...[...row.querySelectorAll('input')].map(it => it.value)])"
    )
    return lines


def test_without_its_blocker_a_domain_fits(page: Page) -> None:
    page.ask("data/queue-0")
    page.show_node("node21")
    pod = blocker(page)
    page.browser.click(".term.blocks .chip button")
    page.responded(" 40/60 ")
    assert forked(page) == [["remove", pod]]
    page.wait_for_details("node21")
    page.browser.until("document.querySelector('#detail-body .verdict').textContent.startsWith('■ fits')")
    page.browser.click(".supposed button")
    page.responded(" 20/60 ")


def test_a_pod_is_moved_to_another_node_by_the_form(page: Page) -> None:
    page.ask("data/queue-0")
    page.show_node("node21")
    pod = blocker(page)
    page.browser.click(".term.blocks .chip button:last-child")
    assert forked(page) == [["remove", pod], ["assume", pod, ""]]
    page.browser.type(".supposed:last-child input:last-of-type", "node1")
    page.browser.click("#ask")
    page.until_text("#supposition", " on node1")


def test_a_node_more_in_another_zone_is_drawn(page: Page) -> None:
    page.ask("data/queue-0")
    page.browser.click("[data-add=add_nodes]")
    page.fill_last(["node21", "node99", "eu-west-1d", "rack-d1"])
    page.browser.click("#ask")
    page.responded(" 21/61 ")
    page.show_node("node99")
    assert page.text("#detail-body .hint") == "eu-west-1d, rack-d1"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        pytest.param('{"kind": "Pod",', "No JSON", id="no-json"),
        pytest.param("kind: [Pod", "neither JSON nor YAML", id="no-yaml"),
        pytest.param("kind: Pod\n---\nkind: Pod", "expected one pod or pod template", id="two"),
        pytest.param({"kind": "Pod", "metadata": {}}, "metadata.name", id="no-name"),
        pytest.param({"kind": "Service", "metadata": {"name": "x"}}, "expected Pod", id="service"),
        pytest.param({"Pod": REPELLED, "NodeNames": ["n", "n"]}, "node_names[1]", id="args"),
    ],
)
def test_what_is_wrong_with_a_manifest_stands_beside_it(page: Page, manifest: object, message: str) -> None:
    page.ask_with_manifest(manifest)
    assert message in page.complaint("#pod-manifest")
    assert page.value("document.activeElement.id") == "pod-manifest"


def test_a_manifest_extender_args_and_a_template_are_answered(page: Page) -> None:
    page.ask_with_manifest(REPELLED)
    page.responded("shop/web-next: 30/60", begins=True)
    page.ask_with_manifest((ROOT / "app" / "demo" / "requests" / "web.json").read_text())
    page.responded(": 6/6")
    page.ask_with_manifest(yaml.safe_dump({**REPELLED, "kind": "Pod", "metadata": {**METADATA, "name": "of-yaml"}}))
    page.responded("shop/of-yaml: 30/60", begins=True)
    deployment = {"kind": "Deployment", "metadata": {"name": "w", "namespace": "shop"}, "spec": {"template": REPELLED}}
    page.ask_with_manifest(deployment)
    page.responded(": 30/60")


def test_an_unknown_pod_or_node_is_told_beside_its_field(page: Page) -> None:
    page.browser.type("#pod-name", "shop/nobody")
    page.browser.click("#ask")
    assert "pod shop/nobody: neither in the mirror nor in a recent request" in page.complaint("#pod-name")
    page.ask("data/queue-0")
    assert page.text("#pod-name-error") == ""
    page.ask_with_manifest({"Pod": REPELLED, "NodeNames": ["node1"]})
    page.responded("/1 nodes")
    page.enter("#find", "node2")
    assert page.complaint("#find") == "node node2: not among the nodes of the request"


@pytest.mark.parametrize(
    ("kind", "values", "at", "message"),
    [
        pytest.param("assume", ["shop/nobody", "node1"], 0, "pod shop/nobody: neither", id="unknown-pod"),
        pytest.param("assume", ["data/queue-1", "node1"], 1, "cannot be placed on node1", id="placed-already"),
        pytest.param("assume", ["data/queue-1", ""], 1, "Say which node", id="no-node"),
        pytest.param("remove", ["shop/nobody"], 0, "pod shop/nobody: neither", id="unknown-to-remove"),
        pytest.param("add_nodes", ["node77", "x", "", ""], 0, "node node77: not in the mirror", id="unknown-node"),
        pytest.param("add_nodes", ["node1", "node2", "", ""], 1, "node node2 cannot be added", id="known-node"),
    ],
)
def test_a_supposition_that_cannot_be_is_told_beside_its_field(
    page: Page, kind: str, values: list[str], at: int, message: str
) -> None:
    page.ask("data/queue-0")
    page.browser.click("[data-add=remove]")  # one that is right, before the one that is wrong
    page.browser.type(".supposed input", "data/queue-2")
    page.browser.click(f"[data-add={kind}]")
    fields = page.fill_last(values)
    page.browser.click("#ask")
    assert message in page.complaint(fields[at])


def test_names_of_the_cluster_are_text_and_never_markup(page: Page) -> None:
    name = "<img src=x onerror=window.broken=1>"
    page.ask_with_manifest({"metadata": {"name": name, "namespace": "shop"}, "spec": REPELLED["spec"]})
    page.responded("30/60")
    assert name in page.text("#answer")
    assert page.value("document.images.length") == 0


def test_the_page_loads_nothing_but_its_own_files(page: Page) -> None:
    paths = page.value("performance.getEntriesByType('resource').map(each => new URL(each.name).pathname)")
    requested = {"/cluster", "/pending", "/events", "/samples", "/units"}
    known = OPEN_PATHS | requested
    assert set(paths) <= known
    assert {path for path in OPEN_PATHS if path.endswith(".js")} <= set(paths)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_texts_are_told_apart_from_what_is_behind_them(page: Page, *, dark: bool) -> None:
    page.browser.window(1500, 1000, dark=dark)
    page.ask("data/queue-0")
    page.show_node("node21")
    assert page.value(CONTRASTS) == []


CONTRASTS = """(() => {
  const numbers = color => color.match(/[0-9.]+/g).map(Number);
  const light = color => { const [r, g, b] = numbers(color).map(part => part / 255).map(part =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = it => { for (; it; it = it.parentElement) { const color = getComputedStyle(it).backgroundColor;
    if ((numbers(color)[3] ?? 1) > 0) return color; } return 'rgb(255, 255, 255)'; };
  const low = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const it = text.parentElement;
    if (!text.data.trim() || !it.getClientRects().length) continue;
    const [one, other] = [light(getComputedStyle(it).color), light(behind(it))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) low.push([text.data, (one + 0.05) / (other + 0.05)]);
  }
  return low;
})()"""
