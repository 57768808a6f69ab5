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


_SETTLED: Final = """(() => {
  const it = selector => document.querySelector(selector);
  if (!it('#access').hidden) return true;
  const asked = performance.getEntriesByType('resource').map(each => new URL(each.name).pathname);
  return it('#mirror').textContent !== '' && !it('#map-frame').hidden
    && it('#pending-causes').children.length && asked.includes('/samples');
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
        self.browser.until(_SETTLED)

    def ask(self, pod: str) -> None:
        """Ask about a pod by its name, and wait until its answer is shown."""
        self.browser.type("#pod-name", pod)
        self.browser.click("#ask")
        self.browser.until(f"document.querySelector('#answer').textContent.startsWith({json.dumps(pod)})")

    def ask_with_manifest(self, text: str) -> None:
        """Ask about a pod by its manifest."""
        self.browser.click("input[value=manifest]")
        self.browser.type("#pod-manifest", text)
        self.browser.click("#ask")

    def show_node(self, node: str) -> None:
        """Show a node by its name, and wait for its details."""
        self.browser.type("#find", node)
        self.browser.press("Enter")
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
