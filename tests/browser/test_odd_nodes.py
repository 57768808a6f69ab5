"""The page over nodes refused for many reasons (signs, racks, twins of nodes), and in a narrow window."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.objects.decode_node import decode_node
from tests.bench.cluster import HOST
from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import REASONS, ROW, listed, odd_nodes, serving
from tests.builders import make_node, make_pod

SIGNS = 12  # of reasons of their own
CLOSED, OPEN = odd_nodes()[-2:]
KEEP_SENT = """(() => { const before = window.fetch; window.sent = [];
  window.fetch = (path, options) => {
    if (options?.body) window.sent.push(options.body);
    return before(path, options);
  };
})()"""
# How much of each two signs differs, if all colours are one.
DIFFERENCES = """(async size => {
  const { Palette, drawNode, OTHERS } = await import(`${location.origin}/page/signs.js`);
  const palette = new Palette();
  palette.classes = palette.classes.map(() => '#000000');
  const drawn = sign => {
    const canvas = new OffscreenCanvas(size, size);
    drawNode(canvas.getContext('2d'), palette, sign, { text: '', share: 0 }, [0, 0, size]);
    return canvas.getContext('2d').getImageData(0, 0, size, size).data.filter((_, at) => at % 4 === 3);
  };
  const all = Array.from({ length: OTHERS }, (_, place) => drawn(place + 1));
  const apart = (one, other) => one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0) / 255 / one.length;
  return all.map(one => all.map(other => apart(one, other)));
})(12)"""


def test_frequent_reasons_have_a_sign_each_and_the_others_one_that_tells_them_on_a_click(odd_page: Page) -> None:
    page = odd_page
    page.ask_for()
    assert page.value("document.querySelectorAll('#legend > li').length") == 1 + SIGNS + 1
    lines = page.legend().splitlines()
    assert "4" in lines[lines.index(next(each for each in lines if "team-01" in each)) - 1]
    others = REASONS + 1 - SIGNS  # and the closed node's
    assert f"{others} other reasons" in page.legend()
    assert "team-15" not in page.legend()
    page.browser.click("#legend summary")
    page.browser.until("document.querySelector('#legend details').open")
    assert "team-15" in page.legend()
    signs = page.value("[...document.querySelectorAll('#legend .swatch')].map(it => it.title)")
    assert len(set(signs)) == 1 + SIGNS + 1
    page.show_node(odd_nodes()[-3].name)
    assert page.text("#detail-body .verdict").startswith(f"{signs[-1]} node(s) had untolerated taint")
    assert "team-15" in page.text("#detail-body .verdict")


def test_signs_are_told_apart_without_their_colours(odd_page: Page) -> None:
    table = odd_page.value(DIFFERENCES)
    assert len(table) == SIGNS + 1
    alike = [(one + 1, other + 1) for one, other in combinations(range(len(table)), 2) if table[one][other] < 0.03]
    assert alike == []


def test_the_level_between_zones_and_nodes_is_a_label_of_ones_choice(odd_page: Page) -> None:
    page = odd_page
    page.ask_for()
    assert page.cells(".tree tbody tr") == [
        ["▸europe-west1-b", "12", "1", "33", ""],
        ["▸europe-west1-c", "11", "0", "", ""],
    ]
    page.draw_racks(ROW)
    page.browser.until("document.querySelector('#rack-key').placeholder !== ''")
    page.browser.click(".tree tbody tr .twist")
    assert [row[0] for row in page.cells(".tree tbody tr")] == [
        "▾europe-west1-b",
        "▸row-0",
        "▸row-2",
        "▸europe-west1-c",
    ]
    page.enter("#rack-key", HOST + "s")
    assert page.complaint("#rack-key") == f"rack: no node has the label {HOST}s"
    assert page.text("#question-error") == ""
    page.enter("#rack-key", "two words")
    page.until_text("#rack-key-error", "must consist of")
    assert page.value("document.activeElement.id") == "rack-key"
    assert page.text("#answer").startswith("No answer.")  # and the map of the answer before is gone
    assert "requested" in page.map_label()
    page.enter("#rack-key", "")
    page.browser.until("document.querySelector('#rack-key').placeholder === ''")
    assert page.text("#rack-key-error") == ""


@pytest.mark.parametrize("like", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_node_like_another_is_its_twin(odd_page: Page, like: Any) -> None:  # noqa: ANN401
    page = odd_page
    page.ask_for()
    page.value(KEEP_SENT)
    page.browser.click("[data-add=add_nodes]")
    page.fill_last([like.name, "twin", "", ""])
    page.browser.click("#ask")
    page.until_text("#supposition", "more nodes: twin")
    (twin,) = page.value("JSON.parse(window.sent.at(-1)).add_nodes")
    original = decode_node(like.json())
    labels = {**original.labels, HOST: "twin"}
    assert decode_node(json.dumps(twin).encode()) == replace(original, name="twin", labels=labels)
    page.show_node("twin")
    verdict = page.text("#detail-body .verdict")
    page.show_node(like.name)
    assert page.text("#detail-body .verdict").partition(",")[0] == verdict.partition(",")[0]


WIDTHS = (360, 768)


@pytest.fixture(params=WIDTHS, ids=str)
def narrow(browser: Browser, request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param
    browser.window(1500, 1000)


def test_a_question_is_asked_and_a_node_chosen(page: Page, narrow: int) -> None:
    page.browser.window(narrow, 740)
    page.ask("data/queue-0")
    assert page.too_wide() == []
    left, top, width = page.box("#map")
    assert left + width <= narrow
    page.browser.evaluate("document.querySelector('#map').scrollIntoView({block: 'start'})")
    left, top, _ = page.box("#map")
    page.browser.click_at(left + 20, top + 55)
    page.wait_for_details("node1")
    assert "fits" in page.text("#detail-body .verdict")
    page.show_node("node21")
    page.browser.click(".term.blocks .chip button")
    page.responded(" 40/60 ")
    page.browser.click("[data-add=add_nodes]")
    assert page.too_wide() == []


def test_long_names_and_many_reasons_have_room(odd_page: Page, narrow: int) -> None:
    page = odd_page
    page.browser.window(narrow, 740)
    page.ask_with_manifest({"metadata": {"name": "n" * 253, "namespace": "shop"}})
    page.responded("nodes are available")
    page.browser.click("#legend summary")
    page.browser.click(".tree tbody tr .twist")
    page.show_node(odd_nodes()[0].name)
    assert "{company-name.example.com/team-01: }" in page.text("#detail-body .verdict")
    assert page.too_wide() == []


LONGEST = f"{'a' * 60}.{'b' * 60}/{'c' * 63}"
"""A label, taint and resource of 185 characters without a place to break."""


def test_the_longest_keys_have_room(browser: Browser, tmp_path: Path, narrow: int) -> None:
    amounts: dict[str, str | int] = {"cpu": "4", "memory": "8Gi", "pods": 110, LONGEST: 3}
    nodes = [make_node("n1").allocatable(**amounts).taint(LONGEST, "v" * 63, "NoSchedule"), make_node("n2")]
    pod = make_pod("waits").in_namespace("shop").uid("1").requests(**{LONGEST: 9})
    dump = tmp_path / "cluster.json"
    dump.write_text(listed((("Node", [each.obj() for each in nodes]), ("Pod", [pod.obj()]))))
    with serving(tmp_path, "--snapshot", str(dump), "--profile", "full") as service:
        page = opened(browser, f"{service.admin_url}/")
        browser.window(narrow, 740)
        page.choose_layer(LONGEST)
        page.painted()
        assert page.too_wide() == []
        page.ask("shop/waits")
        page.show_node("n1")
        assert page.too_wide() == []
        browser.open("about:blank")
