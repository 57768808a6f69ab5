"""What the page opens on (zones and use, pods that wait, samples), how the map is coloured, what is found."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.chromium import Browser
from tests.browser.conftest import opened
from tests.browser.page import Page
from tests.browser.served import listed, serving
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod


def heads(page: Page) -> list[str]:
    found: list[str] = page.value("[...document.querySelectorAll('.tree thead th')].map(it => it.textContent)")
    return found


def pixel(page: Page, x: int, y: int) -> list[int]:
    """Return the colour of the map at a point of it."""
    page.painted()
    found: list[int] = page.value(
        f"[...document.querySelector('#map').getContext('2d').getImageData({x}, {y}, 1, 1).data].slice(0, 3)"
    )
    return found


def test_the_page_opens_on_the_cluster_by_zones_and_use(page: Page) -> None:
    assert page.text("#answer").startswith("60 nodes in 3 zones. Requested: cpu ")
    assert heads(page) == ["Domain or node", "Nodes", "Use", "Requested, of allocatable"]
    assert [row[0] for row in page.cells(".tree tbody tr")] == ["▸eu-west-1a", "▸eu-west-1b", "▸eu-west-1c"]
    assert {"20"} == {row[1] for row in page.cells(".tree tbody tr")}
    label = page.map_label()
    assert label.startswith("Map of 60 nodes in 3 zones, ")
    assert "of cpu requested" in label


def test_the_steps_of_the_scale_have_all_nodes_between_them(page: Page) -> None:
    assert "below 20 %" in page.legend()
    counts = page.value("[...document.querySelectorAll('#legend strong')].map(it => Number(it.textContent))")
    assert sum(counts) == 60


def test_the_map_is_coloured_by_the_resource_that_is_chosen(page: Page) -> None:
    by_cpu = pixel(page, 14, 48)
    page.choose_layer("pods")
    page.browser.until("document.querySelector('#map').getAttribute('aria-label').includes('of pods requested')")
    assert by_cpu != pixel(page, 14, 48)
    page.ask("data/queue-0")
    assert "Score" in heads(page)  # an answer is coloured by what it says
    page.choose_layer("memory")
    assert "Requested, of allocatable" in heads(page)
    assert "Gi of" in page.cells(".tree tbody tr")[0][3]
    page.choose_layer("verdict")
    assert "Score" in heads(page)


def test_a_node_and_a_zone_tell_what_is_requested_there(page: Page) -> None:
    page.show_node("node21")
    assert page.text("#detail-body .hint") == "eu-west-1b, rack-b1"
    rows = {row[0]: row[1:] for row in page.cells("#detail-body .figures tbody tr")}
    assert rows["cpu"][1] == "7.91"
    assert rows["memory"][1] == "30Gi"
    page.browser.click("#detail-body summary")
    page.browser.until("document.querySelector('#detail-body .chip') !== null")
    page.browser.click(".tree tbody tr:nth-child(2) td")
    page.wait_for_details("eu-west-1b")
    rows = {row[0]: row[1:] for row in page.cells("#detail-body .figures tbody tr")}
    assert rows["cpu"][1] == "158"


def test_pending_pods_are_grouped_by_cause_and_asked_about_at_a_click(page: Page) -> None:
    assert page.text("#pending-count") == "3"
    assert "didn't match pod anti-affinity rules" in page.text(".cause summary")
    # `kindred pending` says 8m57s, and the service may run for a while already.
    assert re.search(r"waits ([89]|[1-5]\d) min\s+Would help: ", page.text(".waiting"))
    pod = page.text(".waiting button")
    assert pod.startswith("data/queue-")
    page.browser.click(".waiting button")
    page.responded("nodes are available")
    assert page.text("#answer").startswith(f"{pod}: 0/60 nodes are available")


@pytest.mark.parametrize("sample", ["required-affinity", "web"])
def test_a_sample_of_the_demo_is_answered_at_a_click(page: Page, sample: str) -> None:
    page.browser.click(f"[data-sample={sample}]")
    page.responded("/60 nodes are available")


def test_after_an_error_no_map_of_an_answer_before_is_left(page: Page) -> None:
    page.ask("data/queue-0")
    assert "Score" in heads(page)
    page.browser.type("#pod-name", "shop/nobody")
    page.browser.click("#ask")
    assert "pod shop/nobody: " in page.complaint("#pod-name")
    assert page.text("#answer").startswith("No answer. 60 nodes in 3 zones.")
    assert "Score" not in heads(page)
    assert page.text("#supposition") == ""
    assert "requested" in page.map_label()


def test_the_way_back_to_the_cluster_is_a_click(page: Page) -> None:
    page.ask("data/queue-0")
    page.browser.click("#back")
    page.responded("60 nodes", begins=True)
    assert page.value("location.hash") == ""
    assert page.value("document.querySelector('#pod-name').value") == ""
    assert page.value("document.querySelector('#back').hidden")


def test_racks_are_drawn_by_any_label_before_anything_is_asked(page: Page) -> None:
    assert not page.value("document.querySelector('#rack-key').checkVisibility()")
    page.draw_racks("node.kubernetes.io/instance-type")
    page.browser.until("document.querySelector('#rack-key').placeholder === 'node.kubernetes.io/instance-type'")
    page.enter("#rack-key", "example.com/rak")
    assert "rack: no node has the label example.com/rak" in page.complaint("#rack-key")


def test_a_label_that_is_wrong_is_not_complained_of_any_more_when_another_is_drawn(page: Page) -> None:
    page.delay("cluster?rack=no%2F")
    page.draw_racks("no/such")
    page.until_delayed()
    page.enter("#rack-key", "node.kubernetes.io/instance-type")
    page.browser.until("document.querySelector('#rack-key').placeholder === 'node.kubernetes.io/instance-type'")
    page.release()
    assert page.text("#rack-key-error") == ""


@contextmanager
def served(browser: Browser, folder: Path, nodes: Sequence[NodeBuilder], pods: Sequence[PodBuilder]) -> Iterator[Page]:
    """Open the page over a cluster of these nodes and pods."""
    kinds = (("Node", [each.obj() for each in nodes]), ("Pod", [each.obj() for each in pods]))
    (folder / "cluster.json").write_text(listed(kinds))
    with serving(folder, "--snapshot", str(folder / "cluster.json")) as service:
        yield opened(browser, f"{service.admin_url}/")
        browser.open("about:blank")


def test_what_is_requested_beyond_what_there_is_and_what_a_node_lacks_has_a_sign_of_its_own(
    browser: Browser, tmp_path: Path
) -> None:
    nodes = [
        make_node("full").allocatable(cpu="2", pods=10),
        make_node("half").allocatable(cpu="2", pods=10),
        make_node("none").allocatable(pods=10),
    ]
    pods = [
        make_pod("large").uid("1").on("full").requests(cpu="3"),
        make_pod("small").uid("2").on("half").requests(cpu="1"),
    ]
    with served(browser, tmp_path, nodes, pods) as page:
        legend = page.legend().replace("\n", " ")
        assert "1 40 to 60 %" in legend
        assert "1 more than there is" in legend
        assert "1 no cpu" in legend
        page.show_node("full")
        assert page.cells("#detail-body .figures tbody tr")[0] == ["cpu", "3", "2", "150 %"]
        page.show_node("none")
        assert [row[0] for row in page.cells("#detail-body .figures tbody tr")] == ["pods"]


def test_many_causes_are_folded_so_that_all_of_them_are_seen(browser: Browser, tmp_path: Path) -> None:
    nodes = [make_node("small").allocatable(cpu="2", memory="1Gi", pods=10)]
    large = [make_pod(f"cpu-{cpu}").uid(f"c{cpu}").requests(cpu=cpu) for cpu in range(3, 9)]
    alike = [make_pod(f"memory-{number}").uid(f"m{number}").requests(memory="2Gi") for number in range(3)]
    small = [make_pod("small").uid("s").requests(cpu="1")]
    with served(browser, tmp_path, nodes, [*large, *alike, *small]) as page:
        causes = "[...document.querySelectorAll('.cause')].map(it => [it.open, it.firstChild.textContent])"
        assert page.value(causes) == [
            [False, "6 pods: Insufficient cpu (NodeResourcesFit)"],
            [False, "3 pods: Insufficient memory (NodeResourcesFit)"],
            [False, "1 pod: fit now, and wait for their scheduler"],
        ]
        browser.click(".cause summary")
        browser.until("document.querySelector('.cause').open")
        rendered = "[...document.querySelectorAll('.cause')[%d].querySelectorAll('.waiting button, summary')]"
        visible = f"{rendered}.filter(it => it.checkVisibility()).map(it => it.textContent)"
        assert page.value(visible % 0)[1:] == [
            "default/cpu-3",
            "default/cpu-4",
            "default/cpu-5",
            "3 other kinds of pods",
        ]
        browser.click(".cause:nth-child(2) summary")
        browser.until("document.querySelectorAll('.cause')[1].open")
        assert page.value(visible % 1)[1:] == ["default/memory-0", "2 pods like it"]


def offered(page: Page, field: str, text: str) -> list[str]:
    """Type a text, and give the names that the browser is told to offer then."""
    page.browser.type(field, text)
    names = f"[...document.querySelector('{field}').list.options].map(it => it.value)"
    page.browser.until(f"(all => all.length > 0 && all.every(it => it.includes({json.dumps(text)})))({names})")
    found: list[str] = page.value(names)
    return found


def test_pods_and_nodes_are_offered_by_a_part_of_their_names(page: Page) -> None:
    assert "data/queue-0" in offered(page, "#find", "queue")
    assert offered(page, "#find", "node21") == ["node21"]
    assert page.value("document.querySelector('#find').list.options[0].label") == "node21, node"
    page.browser.press("Enter")
    page.wait_for_details("node21")


def test_the_field_of_the_pod_offers_pods_alone(page: Page) -> None:
    assert {"data"} == {name.partition("/")[0] for name in offered(page, "#pod-name", "data/")}
    page.browser.type("#pod-name", "node4")
    page.browser.until("document.querySelector('#pod-name').list.options.length === 0")


def test_a_name_that_there_is_not_is_asked_about_and_refused_beside_the_field_of_the_pod(page: Page) -> None:
    page.enter("#find", "shop/nobody")
    assert "pod shop/nobody: " in page.complaint("#pod-name")
    page.enter("#find", "")
    assert page.complaint("#find") == "Say which pod or node."


def test_whoever_goes_on_while_the_details_of_a_node_are_awaited_keeps_the_focus(page: Page) -> None:
    page.ask("data/queue-0")
    page.delay("explain?")
    page.enter("#find", "node21")
    page.until_delayed()
    page.value("document.querySelector('#pod-name').focus()")
    page.release()
    page.wait_for_details("node21")
    assert page.value("document.activeElement.id") == "pod-name"
