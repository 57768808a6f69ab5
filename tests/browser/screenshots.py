"""`python -m tests.browser.screenshots`: pictures of the page, light and dark, for docs/images."""

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from tests.app.serving import ROOT
from tests.bench import cluster
from tests.browser.chromium import Browser, browsing, chromium
from tests.browser.page import Page
from tests.browser.served import PODS, admin_url, bench, demo
from tests.demo_cluster import HOSTNAME, PREFERRED, REQUIRED, ZONE, term, weighted

IMAGES: Final = ROOT / "docs" / "images"
_NEXT_API: Final = {
    "metadata": {"name": "api-next", "namespace": "shop", "labels": {"app": "api"}},
    "spec": {
        "affinity": {
            "podAntiAffinity": {REQUIRED: [term(HOSTNAME, {"app": "api"})]},
            "podAffinity": {PREFERRED: [weighted(30, term(ZONE, {"app": "cache"}, namespaces=["data"]))]},
        }
    },
}
_WIDTH: Final = 1500
_HEIGHT: Final = 1080


def main() -> None:
    """Make all pictures."""
    program = chromium()
    if program is None:
        sys.exit("no Chromium: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in ("profile", "demo", "bench"):
            (folder / each).mkdir()
        with browsing(folder / "profile", program) as browser:
            with demo(folder / "demo") as service:
                _picture(browser, admin_url(service), None, "node1", "page-opening")
                _picture(browser, admin_url(service), _NEXT_API, "node21", "page-demo")
            with bench(folder / "bench") as service:
                _picture(browser, admin_url(service), _selective(), "node-03619", "page-5000")


def _selective() -> dict[str, Any]:
    """Return a pod that likes and dislikes much, and stays away from some of the pods of all namespaces."""
    pod = cluster.incoming("pref_mix", 1, cluster.app_count(PODS))
    away = term(HOSTNAME, {"tier": "tier-0", "version": "v2"}, namespaceSelector={})
    pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED] = [away]
    return pod


def _picture(browser: Browser, url: str, pod: dict[str, Any] | None, node: str, name: str) -> None:
    """Write pictures of the page with an answer about a pod, or as it opens, and with a node chosen."""
    page = Page(browser)
    for scheme in ("light", "dark"):
        browser.window(_WIDTH, _HEIGHT, dark=scheme == "dark")
        page.open(url)
        if pod is not None:
            page.ask_with_manifest(yaml.safe_dump(pod, sort_keys=False))
            browser.until("document.querySelector('#answer').textContent.includes('nodes are available')")
        page.show_node(node)
        browser.until("document.querySelector('.cause, #pending-causes .hint') !== null")
        browser.evaluate("document.querySelector('#pod-manifest').scrollTop = 0; scrollTo(0, 0)")
        browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        browser.screenshot(IMAGES / f"{name}-{scheme}.png")
    if browser.errors:
        sys.exit("\n".join(browser.errors))


if __name__ == "__main__":
    main()
