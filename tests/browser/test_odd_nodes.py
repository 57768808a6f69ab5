"""The page over nodes that are refused for many reasons: signs, the level between zones and nodes, twins of nodes."""

import json
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from app.objects.decode_node import decode_node
from tests.bench.cluster import HOST
from tests.browser.page import Page
from tests.browser.served import REASONS, ROW, odd_nodes

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
    drawNode(canvas.getContext('2d'), palette, sign, null, [0, 0, size]);
    return canvas.getContext('2d').getImageData(0, 0, size, size).data.filter((_, at) => at % 4 === 3);
  };
  const all = Array.from({ length: OTHERS }, (_, place) => drawn(place + 1));
  const apart = (one, other) => one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0) / 255 / one.length;
  return all.map(one => all.map(other => apart(one, other)));
})(12)"""


def asked(page: Page, **spec: Any) -> None:  # noqa: ANN401  # members of a PodSpec
    page.ask_with_manifest(json.dumps({"metadata": {"name": "next", "namespace": "shop"}, "spec": spec}))
    page.browser.until("document.querySelector('#answer').textContent.startsWith('shop/next: ')")


def test_frequent_reasons_have_a_sign_each_and_the_others_one_that_tells_them_on_a_click(odd_page: Page) -> None:
    page = odd_page
    asked(page)
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
    asked(page)
    assert page.cells(".tree tbody tr") == [
        ["▸europe-west1-b", "12", "1", "33", ""],
        ["▸europe-west1-c", "11", "0", "", ""],
    ]
    page.browser.type("#rack-key", ROW)
    page.browser.press("Enter")
    page.browser.until("document.querySelector('#rack-key').placeholder !== ''")
    page.browser.click(".tree tbody tr .twist")
    assert [row[0] for row in page.cells(".tree tbody tr")] == [
        "▾europe-west1-b",
        "▸row-0",
        "▸row-2",
        "▸europe-west1-c",
    ]
    page.browser.type("#rack-key", HOST + "s")
    page.browser.press("Enter")
    assert page.complaint("#rack-key") == f"rack: no node has the label {HOST}s"
    assert page.text("#question-error") == ""
    page.browser.type("#rack-key", "two words")
    page.browser.press("Enter")
    page.browser.until("document.querySelector('#rack-key-error').textContent.includes('must consist of')")
    assert page.value("document.activeElement.id") == "rack-key"
    assert page.text("#answer").startswith("No answer.")  # and the map of the answer before is gone
    assert "requested" in page.value("document.querySelector('#map').getAttribute('aria-label')")
    page.browser.type("#rack-key", "")
    page.browser.press("Enter")
    page.browser.until("document.querySelector('#rack-key').placeholder === ''")
    assert page.text("#rack-key-error") == ""


@pytest.mark.parametrize("like", [CLOSED, OPEN], ids=["closed", "open"])
def test_a_node_like_another_is_its_twin(odd_page: Page, like: Any) -> None:  # noqa: ANN401
    page = odd_page
    asked(page)
    page.value(KEEP_SENT)
    page.browser.click("[data-add=add_nodes]")
    page.fill_last([like.name, "twin", "", ""])
    page.browser.click("#ask")
    page.browser.until("document.querySelector('#supposition').textContent.includes('more nodes: twin')")
    (twin,) = page.value("JSON.parse(window.sent.at(-1)).add_nodes")
    original = decode_node(like.json())
    labels = {**original.labels, HOST: "twin"}
    assert decode_node(json.dumps(twin).encode()) == replace(original, name="twin", labels=labels)
    page.show_node("twin")
    verdict = page.text("#detail-body .verdict")
    page.show_node(like.name)
    assert page.text("#detail-body .verdict").partition(",")[0] == verdict.partition(",")[0]
