"""The page over 5,000 and 15,000 nodes: the same, and fluent."""

from statistics import fmean, median

from tests.browser.page import Page
from tests.browser.served import HUGE, NODES, bench_pod

FRAME = 50.0  # ms in which a picture has to be painted anew on an idle machine, where it takes some 5
OPENING = 1000.0  # ms from the click on a link until all nodes are drawn, on an idle machine
TRIES = 5  # of which the best counts: other work on the machine is not the page's

SAME_WORK = """Array.from({ length: 40 }, () => { const begun = performance.now(); let sum = 0;
  for (let at = 0; at < 1e6; at += 1) sum += Math.sqrt(at);
  return [performance.now() - begun, sum][0]; })"""
SAME_WORK_TAKES = 2.5  # ms, on an idle machine


def slowness(page: Page) -> float:
    """Return how many times as long as on an idle machine the same work takes now, and at least 1."""
    return max(1.0, fmean(page.value(SAME_WORK)) / SAME_WORK_TAKES)


def test_all_nodes_are_drawn_and_can_be_chosen(large_page: Page) -> None:
    page = large_page
    page.ask(bench_pod("anti_self_host"))
    assert f"/{NODES} nodes are available" in page.text("#answer")
    assert page.value("document.querySelectorAll('.tree tbody tr').length") == 3
    page.painted()
    drawn = page.value(
        """(() => { const it = document.querySelector('#map');
        const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height);
        let filled = 0; for (let at = 3; at < data.length; at += 4) filled += data[at] > 0;
        return filled / (data.length / 4); })()"""
    )
    assert drawn > 0.25
    page.show_node("node-04999")
    assert page.value("document.querySelector('.tree tr[aria-selected=true] td').textContent") == "node-04999"


def test_a_what_if_moves_a_blocker_away(large_page: Page) -> None:
    page = large_page
    page.ask(bench_pod("anti_self_host"))
    before = page.value("Number(document.querySelector('#legend li strong').textContent.replace(',', ''))")
    example = page.value(
        "fetch('explain?limit=1', {method: 'POST', body:"
        "JSON.stringify({pod: document.querySelector('#pod-name').value})})"
        ".then(it => it.json()).then(it => it.summary.reasons[0].examples[0])"
    )
    page.show_node(example)
    page.browser.click(".term.blocks .chip button")
    page.browser.until(
        f"Number(document.querySelector('#legend li strong').textContent.replace(',', '')) === {before + 1}"
    )


def test_the_pointer_is_followed_fluently(large_page: Page) -> None:
    page = large_page
    page.ask(bench_pod("pref_mix"))
    took = page.value(
        """(async () => { const it = document.querySelector('#map'); const box = it.getBoundingClientRect();
        const times = [];
        for (let step = 0; step < 40; step += 1) {
          const begun = performance.now();
          it.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,
            clientX: box.x + 20 + step * 9, clientY: box.y + 50 + step * 3}));
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          times.push(performance.now() - begun);
        } return times; })()"""
    )
    assert median(took) / slowness(page) < FRAME, took


def test_an_unknown_pod_is_told_beside_its_field(large_page: Page) -> None:
    large_page.browser.type("#pod-name", "ns-000/nobody")
    large_page.browser.click("#ask")
    assert "neither in the mirror nor in a recent request" in large_page.complaint("#pod-name")


def test_the_page_opens_with_15_000_nodes_drawn_within_a_second(huge_page: Page) -> None:
    page, took = huge_page, []
    for _ in range(TRIES):
        page.browser.open("about:blank")
        page.open(page.url)
        page.browser.until("performance.getEntriesByName('map drawn').length > 0")
        took.append(page.value("performance.getEntriesByName('map drawn')[0].startTime") / slowness(page))
    assert f"{HUGE:,} nodes in 3 zones." in page.text("#answer")
    assert min(took) < OPENING, took


def test_an_answer_of_15_000_nodes_is_drawn_and_its_nodes_can_be_chosen(huge_page: Page) -> None:
    page = huge_page
    page.ask_with_manifest('{"metadata": {"name": "p", "namespace": "ns-000"}}')
    page.responded("nodes are available")
    took = page.value(
        f"""Array.from({{ length: {TRIES} }}, () => {{
        const begun = performance.now(); const it = document.querySelector('#layer');
        it.value = 'memory'; it.dispatchEvent(new Event('change')); it.value = 'verdict';
        it.dispatchEvent(new Event('change')); return (performance.now() - begun) / 2; }})"""
    )
    assert min(took) / slowness(page) < OPENING / 2, took
    page.show_node("node-14999")
