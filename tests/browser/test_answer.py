"""An answer comes first: it comes into view, says what would help, what was not judged, and what its scores are of."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bench.cluster import HOST, ZONE
from tests.browser.chromium import Browser
from tests.browser.page import Page
from tests.browser.test_address import reopen
from tests.browser.test_opening import pixel, served
from tests.builders import labelled, make_node, make_pod

PHONE = (390, 844)
IN_VIEW = "(({top}) => top >= 0 && top < innerHeight / 4)(document.querySelector('#answer').getBoundingClientRect())"
FOCUSED = "document.activeElement.textContent"
# How fast the browser scrolls, and how often it paints meanwhile, is not the page's.
KEEP_SCROLLS = """(() => { const { prototype } = Element; const before = prototype.scrollIntoView; window.scrolls = [];
  prototype.scrollIntoView = function (how) { window.scrolls.push(how); before.call(this, how); };
})()"""


@pytest.fixture
def phone(page: Page) -> Iterator[Page]:
    page.browser.window(*PHONE)
    yield page
    page.browser.window(1500, 1000)


WAYS: dict[str, Callable[[Page], None]] = {
    "form": lambda page: page.ask("data/queue-3"),
    "pending": lambda page: page.browser.click(".waiting button"),
    "sample": lambda page: page.browser.click("[data-sample=web]"),
    "link": lambda page: reopen(page, f"{page.url}#pod=data/queue-3"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_on_a_phone_an_answer_comes_into_view_with_the_focus_on_its_heading(
    phone: Page, way: Callable[[Page], None]
) -> None:
    assert not phone.value(IN_VIEW)
    way(phone)
    phone.responded("nodes are available")
    assert phone.value(IN_VIEW)  # at once, as this user wants nothing to move
    assert phone.value(FOCUSED) == "Answer"


def test_on_a_phone_the_answer_of_a_link_is_still_in_view_when_pods_above_it_have_come(phone: Page) -> None:
    with phone.browser.delaying("pending", "units"):
        reopen(phone, f"{phone.url}#pod=data/queue-3")
    phone.browser.until(f"{FOCUSED} === 'Answer'")
    assert phone.value("document.querySelector('#pending-causes').children.length > 0")
    assert phone.value(IN_VIEW)


def test_on_a_phone_whoever_looks_at_a_node_before_all_has_come_stays_there(phone: Page) -> None:
    phone.browser.open("about:blank")
    with phone.browser.delaying("pending", seconds=3.0):
        phone.browser.open(f"{phone.url}#pod=data/queue-3")
    phone.responded("nodes are available")
    phone.browser.click_at(*(side + 20 for side in phone.browser.centre("document.querySelector('#map')")))
    phone.browser.until("document.querySelector('#detail-body h3') !== null")
    phone.settled()
    assert phone.value("document.querySelector('#details').getBoundingClientRect().top < innerHeight / 2")
    assert phone.value(FOCUSED) != "Answer"


def test_whoever_likes_motion_sees_the_page_scroll_to_the_answer(phone: Page) -> None:
    phone.browser.window(*PHONE, moves=True)
    phone.value(KEEP_SCROLLS)
    phone.value("document.querySelector('.waiting button').click()")
    phone.responded("nodes are available")
    phone.browser.until(IN_VIEW)
    assert phone.value("window.scrolls") == [{"behavior": "smooth"}]


def test_on_a_phone_a_node_of_the_map_brings_its_details_into_view(phone: Page) -> None:
    phone.browser.click_at(*(side + 20 for side in phone.browser.centre("document.querySelector('#map')")))
    phone.browser.until("document.querySelector('#detail-body h3') !== null")
    assert phone.value("document.querySelector('#detail-body h3').getBoundingClientRect().bottom < innerHeight")


def test_whoever_goes_on_while_an_answer_is_awaited_is_left_alone(phone: Page) -> None:
    phone.value("document.querySelector('.waiting button').click(); document.querySelector('#find').focus()")
    phone.responded("nodes are available")
    assert phone.value("document.activeElement.id") == "find"
    assert phone.value("scrollY") == 0


def test_a_box_that_is_ticked_keeps_the_focus(page: Page) -> None:
    page.ask("data/queue-0")
    page.value("document.querySelector('#score-all').focus()")
    page.browser.press(" ")
    page.browser.until("performance.getEntriesByType('resource').some(it => it.name.endsWith('score=all'))")
    page.browser.until("document.querySelector('#ask').getAttribute('aria-busy') === null")
    assert page.value("document.activeElement.id") == "score-all"


@pytest.mark.parametrize("sample", ["", "web"])
def test_the_button_is_above_the_fold_and_no_column_is_empty(page: Page, sample: str) -> None:
    columns = "getComputedStyle(document.querySelector('main')).gridTemplateColumns.split(' ').length"
    page.browser.window(1400, 900)
    if sample:
        page.browser.click(f"[data-sample={sample}]")
        page.responded("nodes are available")
    page.value("scrollTo(0, 0)")
    assert page.value("document.querySelector('#ask').getBoundingClientRect().bottom") < 900
    assert page.value(columns) == 2
    page.show_node("node5")
    assert page.value(columns) == 3
    page.browser.click("h1 a")
    page.browser.until(f"{columns} === 2")


def test_racks_classes_and_generations_are_advanced(page: Page) -> None:
    page.ask("data/queue-3")
    advanced = "document.querySelector('#advanced')"
    for text in ("Racks by label", "Equivalence class: ", "Generation of the mirror: "):
        assert text not in page.text("main")
        assert text in page.value(f"{advanced}.textContent")
    assert "generation" not in page.text("header")
    page.browser.click("#advanced summary")
    page.browser.until(f"{advanced}.open")
    assert re.search(r"Equivalence class: [0-9a-f]{16}, ", page.text("main"))


def test_the_answer_about_the_pod_of_the_demo_begins_with_what_is_to_be_done(page: Page) -> None:
    page.ask("data/queue-3")
    heading, first, *_ = page.text("#helps").splitlines()
    assert heading == "Changes that would help, each by itself"
    assert first.startswith("set topologyKey of the required pod anti-affinity from ")
    assert "After a change of the pod, delete it: its StatefulSet makes it again" in page.text("#helps")
    selects = "required anti-affinity by topology.kubernetes.io/zone selects pods with app=queue in data"
    _, reported, *others = page.text("#notes").splitlines()
    assert reported.startswith(f"Of this pod's rules: {selects}: 3 placed pods in 3 domains: eu-west-1")
    assert others == []
    top = "document.querySelector('%s').getBoundingClientRect().top"
    assert page.value(f"{top % '#helps'} < {top % '#notes'} && {top % '#helps'} < {top % '#map'}")


def test_that_nothing_helps_is_said(page: Page) -> None:
    page.ask_for(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "nope"}}])
    assert page.text("#answer").startswith("shop/next: 0/60 nodes are available")
    assert page.text("#helps") == "No change that was tried would help"
    page.ask_for()
    page.responded("60/60")
    assert page.text("#helps") == ""


def test_the_minimum_of_a_spread_over_more_domains_than_there_are_is_said(page: Page) -> None:
    pod = make_pod("next").in_namespace("shop").label("app", "web")
    page.ask_with_manifest(pod.spread(ZONE, labelled(app="web"), minDomains=5).obj())
    page.responded("0/60")
    notes = page.text("#notes")
    assert "Spread by topology.kubernetes.io/zone, maxSkew 1: eu-west-1" in notes
    assert (
        "; too uneven on 60 nodes, no such label on 0; minDomains 5, and there are 3: the minimum counts as 0." in notes
    )


# Another cluster: two nodes with scores of their own, in a dump that lacks kinds of objects.


@pytest.fixture
def pair(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    nodes = [make_node(name).label(HOST, name).allocatable(cpu="4", memory="8Gi", pods=10) for name in ("n1", "n2")]
    with served(browser, tmp_path, nodes, [make_pod("p").uid("1").on("n1").requests(cpu="1")]) as page:
        yield page


def test_what_a_dump_lacks_is_not_judged_and_the_command_that_adds_it_is_there(pair: Page) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    pair.ask_with_manifest({"metadata": {"name": "next", "labels": {"app": "web"}}, "spec": {"volumes": [claim]}})
    pair.responded("nodes are available")
    lines = pair.text("#notes").splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.startswith("Not judged: "))
    assert "VolumeBinding, VolumeZone: the dump has no persistentvolumes, persistentvolumeclaims, " in lines[place]
    assert re.fullmatch(r"To add it: kubectl get -A -o json pv,pvc,\S+ >> \S+/cluster.json", lines[place + 1])
    assert pair.text("#answer").endswith("It may fit: not every rule was judged.")
    scored = pair.text("#scored")
    assert "Not in these scores: PodTopologySpread: the dump has no services, " in scored
    assert re.search(r"^To add it: kubectl get -A -o json svc,\S+ >> ", scored, re.MULTILINE)


def test_what_is_unknown_of_a_manifest_makes_a_pod_that_may_fit(pair: Page) -> None:
    pair.ask_for(runtimeClassName="kata")
    assert "Not judged: runtimeClassName kata: no RuntimeClass is at hand" in pair.text("#notes")
    assert pair.text("#answer").endswith("It may fit: not every rule was judged.")
    assert "passes what was judged" in pair.legend()
    assert "pass what was judged" in pair.map_label()


COLOURS = """(async () => { const { Palette } = await import(`${location.origin}/page/signs.js`);
  const { low, high } = new Palette(); return [low, high]; })()"""


def test_colours_stretch_over_the_scores_that_there_are_and_the_legend_has_their_range(pair: Page) -> None:
    pair.ask_for()
    pair.browser.click(".tree tbody tr .twist")
    low, high = (int(row[3]) for row in pair.cells(".tree tbody tr")[1:])
    assert 0 < high - low < 40
    assert f"fits: score {low} to {high}, the fuller the colour, the higher" in pair.legend()
    assert [pixel(pair, 14, 48), pixel(pair, 44, 48)] == pair.value(COLOURS)
    pair.ask_with_manifest({"Pod": {"metadata": {"name": "one", "namespace": "shop"}}, "NodeNames": ["n1"]})
    pair.responded("shop/one: 1/1 nodes")
    assert pair.legend().splitlines() == ["1", f"fits: score {low}"]
    assert pair.value("document.querySelectorAll('#legend .swatch').length") == 1


def test_the_profile_stands_beside_the_scores(page: Page) -> None:
    page.browser.click("[data-sample=web]")
    page.responded("60/60")
    scored = page.text("#scored")
    assert re.match(r"Best score 56, on node\d+\. ", scored)
    assert "profile full, with weights: TaintToleration 3, NodeResourcesFit 1, InterPodAffinity 2, " in scored
    page.show_node("node5")
    assert "Score 41, by the profile full" in page.value("document.querySelector('#detail-body').textContent")
    page.browser.click(".waiting button")
    page.responded("data/queue-3")
    assert page.text("#scored") == ""  # no node is scored
