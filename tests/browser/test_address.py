"""Every state has an address: it can be sent, a reload restores it, and the browser goes back and forth."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.page import Page
from tests.browser.test_demo_cluster import METADATA, REPELLED

PREVIOUS, NEXT = -1, 1


def fragment(page: Page) -> str:
    found: str = page.value("location.hash.slice(1)")
    return found


def reopen(page: Page, address: str) -> None:
    """Open an address as somebody does who has got it from another."""
    page.browser.open("about:blank")
    page.open(address)


def go(page: Page, steps: int) -> None:
    page.value(f"history.go({steps})")


def test_a_pod_a_supposition_and_a_node_are_restored_from_the_address(page: Page) -> None:
    page.ask("data/queue-0")
    page.show_node("node21")
    page.browser.click(".term.blocks .chip button")
    page.responded("40/60")
    page.wait_for_details("node21")
    address, headline = page.value("location.href"), page.text("#answer")
    assert "pod=data/queue-0" in address
    reopen(page, address)
    page.responded("40/60")
    page.wait_for_details("node21")
    assert headline == page.text("#answer")
    assert address == page.value("location.href")
    assert page.value("document.querySelectorAll('.supposed').length") == 1
    assert page.value("document.querySelector('.tree tr[aria-selected=true] td').textContent") == "node21"


def test_a_layer_and_a_zone_are_restored_from_the_address(page: Page) -> None:
    page.browser.click(".tree tbody tr:nth-child(2) td")
    page.wait_for_details("eu-west-1b")
    page.choose_layer("memory")
    assert fragment(page) == "layer=memory&zone=eu-west-1b"
    reopen(page, page.value("location.href"))
    page.wait_for_details("eu-west-1b")
    assert page.value("document.querySelector('#layer').value") == "memory"
    assert "of memory requested" in page.map_label()


def test_a_rack_and_the_label_of_racks_are_restored_from_the_address(page: Page) -> None:
    page.draw_racks("example.com/rack")
    page.browser.click(".tree tbody tr .twist")
    page.browser.click(".tree tbody tr:nth-child(2) td")
    page.wait_for_details("rack-a1")
    assert fragment(page) == "racks=example.com/rack&zone=eu-west-1a&rack=rack-a1"
    reopen(page, page.value("location.href"))
    page.wait_for_details("rack-a1")
    assert page.value("document.querySelector('#rack-key').value") == "example.com/rack"
    assert page.value("document.querySelector('#advanced').open")


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(json.dumps(REPELLED), id="json"),
        pytest.param("kind: Pod\nmetadata:\n  name: of-yaml # &=+%\n  namespace: shop\nspec: {}\n", id="yaml"),
    ],
)
def test_a_manifest_is_restored_from_the_address(page: Page, manifest: str) -> None:
    page.ask_with_manifest(manifest)
    page.responded("/60 nodes are available")
    headline = page.text("#answer")
    reopen(page, page.value("location.href"))
    page.responded("/60 nodes are available")
    assert headline == page.text("#answer")
    assert manifest.strip() == page.value("document.querySelector('#pod-manifest').value")


def test_a_manifest_that_is_too_long_is_left_out_of_the_address_and_that_is_said(page: Page) -> None:
    pod: dict[str, Any] = {**REPELLED, "metadata": {**METADATA, "annotations": {"long": "x" * 70_000}}}
    page.browser.click("input[value=manifest]")
    page.value(f"(it => {{ it.value = {json.dumps(json.dumps(pod))}; }})(document.querySelector('#pod-manifest'))")
    page.browser.click("#ask")
    page.responded("/60 nodes are available")
    assert "too long for the address" in page.text("#supposition")
    assert len(fragment(page)) < 1000


def test_all_suppositions_are_written_to_the_address_and_read_from_it(page: Page) -> None:
    page.ask("data/queue-0")
    placed = json.dumps({"metadata": {"name": "other", "namespace": "shop", "annotations": {"at": "a@b"}}})
    for kind, values in (
        ("remove", ["data/queue-2"]),
        ("assume", [placed, "node5"]),
        ("add_nodes", ["node21", "node99", "eu-west-1d", ""]),
    ):
        page.browser.click(f"[data-add={kind}]")
        page.fill_last(values)
    page.browser.click("#ask")
    page.responded("/61 nodes")
    reopen(page, page.value("location.href"))
    page.responded("/61 nodes")
    texts = (
        "[...document.querySelectorAll('.supposed')].map(row => [...row.querySelectorAll('input')].map(it => it.value))"
    )
    assert [["data/queue-2"], [placed, "node5"], ["node21", "node99", "eu-west-1d", ""]] == page.value(texts)


def test_back_and_forward_go_from_state_to_state(page: Page) -> None:
    page.ask("data/queue-0")
    page.show_node("node21")
    page.ask("data/queue-1")
    go(page, PREVIOUS)
    page.responded("data/queue-0")
    page.wait_for_details("node21")
    go(page, PREVIOUS)
    page.browser.until("document.querySelector('#detail-body h3') === null")
    assert page.text("#answer").startswith("data/queue-0")
    go(page, PREVIOUS)
    page.responded("60 nodes in 3 zones")
    assert fragment(page) == ""
    go(page, NEXT)
    page.responded("data/queue-0")


def test_a_link_to_a_pod_that_there_is_not_says_so(page: Page) -> None:
    reopen(page, page.value("location.href") + f"#pod={quote('shop/nobody', safe='')}&node=node1")
    assert "pod shop/nobody: " in page.complaint("#pod-name")
    page.responded("No answer.")
    assert fragment(page) == "pod=shop/nobody&node=node1"


def test_a_fragment_that_means_nothing_shows_the_cluster(page: Page) -> None:
    reopen(page, page.value("location.href") + "#%%%&layer=nothing&zone=nowhere&assume=@@@")
    page.responded("60 nodes in 3 zones")
    assert page.value("document.querySelector('#layer').value") == "cpu"
