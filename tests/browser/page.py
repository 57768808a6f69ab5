"""The page as people use it: what they do there, and what they then see."""

import json
from collections.abc import Sequence
from typing import Any, Final

from tests.browser.chromium import Browser

_TOO_WIDE: Final = """(() => {
  const drawing = document.querySelector('#map-frame');
  const all = [...document.querySelectorAll('body *')].filter(it => !drawing.contains(it) && it.checkVisibility());
  const hidden = it => getComputedStyle(it).clipPath !== 'none' || it.closest('.skip');
  const out = all.filter(it => !hidden(it) && it.getBoundingClientRect().right > innerWidth + 0.5);
  const scrolls = it => getComputedStyle(it).overflowX !== 'visible' && it.tagName !== 'INPUT';
  const within = all.filter(it => !hidden(it) && scrolls(it) && it.scrollWidth > it.clientWidth);
  const root = document.documentElement;
  const found = [...out, ...within, ...(root.scrollWidth > innerWidth ? [root] : [])];
  return found.map(it => `${it.tagName} ${it.id} ${it.className}`);
})()"""


_DELAY: Final = """(start => { const before = window.fetch; window.release = null;
  window.fetch = async (path, options) => {
    const answer = await before(path, options);
    if (path.startsWith(start)) await new Promise(done => { window.release = done; });
    return answer;
  };
})(%s)"""
_SETTLED: Final = """(() => {
  const it = selector => document.querySelector(selector);
  if (!it('#access').hidden) return true;
  return it('#mirror').textContent !== '' && performance.getEntriesByName('opened').length > 0;
})()"""
"""Whether everything is there that moves what is below it."""


class Page:
    """The page of the admin port in a browser."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.url = ""
        """Where it was opened last."""

    def open(self, url: str) -> None:
        """Load it, and wait for all that it opens with, or for the refusal of the service."""
        self.url = url
        self.browser.errors.clear()
        self.browser.open(url)
        self.settled()

    def settled(self) -> None:
        """Wait for all that the page opens with."""
        self.browser.until(_SETTLED)

    def ask(self, pod: str) -> None:
        """Ask about a pod by its name, and wait until its answer is shown."""
        self.browser.type("#pod-name", pod)
        self.browser.click("#ask")
        self.responded(pod, begins=True)

    def ask_with_manifest(self, manifest: object) -> None:
        """Ask about a pod by its manifest, a text or what is to be written as JSON."""
        self.browser.click("input[value=manifest]")
        self.browser.type("#pod-manifest", manifest if isinstance(manifest, str) else json.dumps(manifest))
        self.browser.click("#ask")

    def ask_for(self, **spec: object) -> None:
        """Ask about a pod with a spec, and wait until its answer is shown."""
        self.ask_with_manifest({"metadata": {"name": "next", "namespace": "shop"}, "spec": spec})
        self.responded("shop/next: ", begins=True)

    def until_text(self, selector: str, text: str, *, begins: bool = False) -> None:
        """Wait until an element has a text, or begins with it."""
        has = "startsWith" if begins else "includes"
        self.browser.until(f"document.querySelector({json.dumps(selector)})?.textContent.{has}({json.dumps(text)})")

    def responded(self, text: str, *, begins: bool = False) -> None:
        """Wait until the answer has a text, or begins with it."""
        self.until_text("#answer", text, begins=begins)

    def enter(self, selector: str, text: str) -> None:
        """Type a text into a field, and press Enter."""
        self.browser.type(selector, text)
        self.browser.press("Enter")

    def draw_racks(self, label: str) -> None:
        """Open what is advanced, and draw racks by a label."""
        self.value("document.querySelector('#advanced').open = true")
        self.enter("#rack-key", label)

    def choose_layer(self, name: str) -> None:
        """Colour the map by something else."""
        it = f"it.value = {json.dumps(name)}; it.dispatchEvent(new Event('change'));"
        self.value(f"(it => {{ {it} }})(document.querySelector('#layer'))")

    def delay(self, path: str) -> None:
        """Keep the answer of a path that begins so from the page, until `release`."""
        self.value(_DELAY % json.dumps(path))

    def until_delayed(self) -> None:
        """Wait until there is an answer that is kept from the page."""
        self.browser.until("window.release !== null")

    def release(self) -> None:
        """Let the page have the answer, and wait until it has shown it."""
        self.value("window.release()")
        self.painted()

    def painted(self) -> None:
        """Wait until the map is painted as it was drawn last: that is done in the next frame."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def show_node(self, node: str) -> None:
        """Show a node by its name, and wait for its details."""
        self.enter("#find", node)
        self.wait_for_details(node)

    def wait_for_details(self, of: str) -> None:
        """Wait until the details are those of a node or a domain."""
        self.browser.until(f"document.querySelector('#detail-body h3')?.textContent === {json.dumps(of)}")

    def text(self, selector: str) -> str:
        """Return the text that an element shows. Empty if there is none."""
        text: str = self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return text

    def cells(self, rows: str) -> list[list[str]]:
        """Return the texts of all cells of some rows."""
        found: list[list[str]] = self.browser.evaluate(
            f"[...document.querySelectorAll({json.dumps(rows)})].map(row => [...row.cells].map(it => it.textContent))"
        )
        return found

    def box(self, selector: str) -> tuple[float, float, float]:
        """Return where an element begins in the window, and how wide it is."""
        found = self.browser.evaluate(
            f"(it => [it.x, it.y, it.width])(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        return found[0], found[1], found[2]

    def too_wide(self) -> list[str]:
        """Return what has to be scrolled sideways, or is lost at the side of the window; the drawing may be."""
        found: list[str] = self.browser.evaluate(_TOO_WIDE)
        return found

    def fill_last(self, values: Sequence[str]) -> list[str]:
        """Fill the fields of what was supposed last, and give their selectors."""
        ids = self.browser.evaluate("[...document.querySelectorAll('.supposed:last-child input')].map(it => it.id)")
        fields = [f"#{each}" for each in ids]
        for field, value in zip(fields, values, strict=True):
            self.browser.type(field, value)
        return fields

    def legend(self) -> str:
        """Return the legend's lines."""
        return self.text("#legend")

    def map_label(self) -> str:
        """Return what the map is to those who do not see it."""
        found: str = self.value("document.querySelector('#map').getAttribute('aria-label')")
        return found

    def value(self, script: str) -> Any:  # noqa: ANN401  # whatever the script gives
        """Return the value of an expression."""
        return self.browser.evaluate(script)

    def complaint(self, selector: str) -> str:
        """Wait until a field is said to be wrong, and give the text that describes it."""
        field = f"document.querySelector({json.dumps(selector)})"
        self.browser.until(f"{field}?.getAttribute('aria-invalid') === 'true'")
        found: str = self.browser.evaluate(
            f"{field}.getAttribute('aria-describedby').split(' ').map(id => document.getElementById(id))"
            ".filter(it => it.getAttribute('role') === 'alert').map(it => it.textContent).join(' ')"
        )
        return found
