"""The page over 5,000 nodes: the same, and fluent."""

from statistics import median

from tests.browser.page import Page
from tests.browser.served import NODES, bench_pod

FRAME = 50.0  # ms in which a picture has to be painted anew; on an idle machine it takes some 5


def test_all_nodes_are_drawn_and_can_be_chosen(large_page: Page) -> None:
    page = large_page
    page.ask(bench_pod("anti_self_host"))
    assert f"/{NODES} nodes are available" in page.text("#answer")
    assert page.value("document.querySelectorAll('.tree tbody tr').length") == 3
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
    assert median(took) < FRAME


def test_an_unknown_pod_is_told_beside_its_field(large_page: Page) -> None:
    large_page.browser.type("#pod-name", "ns-000/nobody")
    large_page.browser.click("#ask")
    assert "neither in the mirror nor asked about lately" in large_page.complaint("#pod-name")
