"""Headless Chromium, driven by its DevTools protocol over a pipe: no socket, no driver, nothing to install but it."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

PATIENCE: Final = 120.0  # seconds
REBOUND: Final = "rebound.example"
"""A name that resolves to this machine, although nobody here has made it do so."""
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # containers have no user namespaces; only our own page is loaded
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1",
)


_SHIFT: Final = 8  # Input.dispatchKeyEvent: modifiers
_LATER: Final = """
const fetchAtOnce = window.fetch;
window.fetch = async (path, options) => {
  const found = await fetchAtOnce(path, options);
  if (PATHS.includes(path)) await new Promise(done => setTimeout(done, PAUSE));
  return found;
};
"""
_LEFT: Final = "Inspected target navigated or closed"


class BrowserError(Exception):
    """What the browser, or a script in the page, says went wrong."""


def chromium() -> str | None:
    """Return the program. None if there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class Browser:
    """The one page of a browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._number = 0
        self.session = ""
        self.errors: list[str] = []
        """What the page has logged as an error, uncaught exceptions and breaches of its policy among them."""

    def command(self, method: str, parameters: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": dict(parameters)}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            response = self._receive()
            if response.get("id") == self._number:
                if "error" in response:
                    raise BrowserError(f"{method}: {response['error']}")
                result: dict[str, Any] = response["result"]
                return result

    def evaluate(self, script: str) -> Any:  # noqa: ANN401  # whatever the script gives
        """Return the value of an expression in the page; promises are waited for."""
        requested = {"expression": script, "awaitPromise": True, "returnByValue": True}
        response = self.command("Runtime.evaluate", requested)
        if "exceptionDetails" in response:
            raise BrowserError(json.dumps(response["exceptionDetails"])[:800])
        return response["result"].get("value")

    def until(self, script: str) -> Any:  # noqa: ANN401  # whatever the script gives
        """Wait until an expression is true, and return it; on a page that is being left it is not."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                found = self.evaluate(script)
            except BrowserError as error:
                if _LEFT not in str(error):
                    raise
                found = None
            if found:
                return found
            if time.monotonic() > deadline:
                raise BrowserError(f"not within {PATIENCE:.0f} s: {script}; {self.errors}")
            time.sleep(0.02)

    def open(self, url: str) -> None:
        """Load a page, and wait until its scripts have run."""
        self.evaluate("window.left = true")  # nothing else tells a page from itself
        self.command("Page.navigate", {"url": url})
        self.until("!window.left && document.readyState === 'complete'")

    @contextmanager
    def delaying(self, *paths: str, seconds: float = 0.5) -> Iterator[None]:
        """Have pages that are opened in the block get each of some paths later than all others."""
        script = _LATER.replace("PATHS", json.dumps(paths)).replace("PAUSE", str(1000 * seconds))
        added = self.command("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        try:
            yield
        finally:
            self.command("Page.removeScriptToEvaluateOnNewDocument", added)

    def click_at(self, x: float, y: float, *, shift: bool = False) -> None:
        """Click at a point of the window."""
        self.command("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, shift=shift)

    def mouse(self, kind: str, x: float, y: float, *, shift: bool = False) -> None:
        """Press the left button of the mouse at a point (`mousePressed`), or release it there (`mouseReleased`)."""
        at = {"x": x, "y": y, "button": "left", "clickCount": 1, "modifiers": _SHIFT if shift else 0}
        self.command("Input.dispatchMouseEvent", {"type": kind, **at})

    def centre(self, element: str) -> tuple[float, float]:
        """Scroll to the element that an expression gives, and return its middle."""
        found = self.evaluate(
            f"(() => {{ const it = {element}; it.scrollIntoView({{block: 'center'}});"
            "const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return found[0], found[1]

    def click(self, selector: str, *, shift: bool = False) -> None:
        """Click on an element as a mouse does."""
        self.click_at(*self.centre(f"document.querySelector({json.dumps(selector)})"), shift=shift)

    def type(self, selector: str, text: str) -> None:
        """Put the focus into a field and replace what is in it."""
        self.evaluate(f"(it => {{ it.focus(); it.select(); }})(document.querySelector({json.dumps(selector)}))")
        self.command("Input.insertText", {"text": text})

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key where the focus is."""
        codes = {
            "Enter": 13,
            "Tab": 9,
            " ": 32,
            "ArrowDown": 40,
            "ArrowRight": 39,
            "ArrowLeft": 37,
            "End": 35,
            "Escape": 27,
        }
        given = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": _SHIFT if shift else 0}
        text = {"text": "\r"} if key == "Enter" else {}
        self.command("Input.dispatchKeyEvent", {"type": "keyDown", **given, **text})
        self.command("Input.dispatchKeyEvent", {"type": "keyUp", **given})

    def window(self, width: int, height: int, *, dark: bool = False, moves: bool = False) -> None:
        """Set the size of the window, the colour scheme that the user prefers, and whether anything may move."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "no-preference" if moves else "reduce"}
        self.command("Emulation.setEmulatedMedia", {"features": [scheme, motion]})

    def screenshot(self, file: Path) -> None:
        """Write what is in the window as PNG."""
        file.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", {"format": "png"})["data"]))

    def start(self) -> None:
        """Attach to the page that the browser begins with."""
        deadline = time.monotonic() + PATIENCE
        while not (pages := self._pages()):  # it answers before it has one
            if time.monotonic() > deadline:
                raise BrowserError("the browser has no page")
            time.sleep(0.02)
        attached = self.command("Target.attachToTarget", {"targetId": pages[0], "flatten": True})
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def _pages(self) -> list[str]:
        targets = self.command("Target.getTargets")["targetInfos"]
        return [each["targetId"] for each in targets if each["type"] == "page"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            chunk = os.read(self._read, 1 << 16) if ready else b""
            if not chunk:
                raise BrowserError("the browser does not answer")
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, reported: Mapping[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(reported["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and reported["entry"]["level"] == "error":
            self.errors.append(f"{reported['entry']['text']} {reported['entry'].get('url', '')}")


@contextmanager
def browsing(folder: Path, program: str) -> Iterator[Browser]:
    """Run a browser with an empty profile."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    # The pipe has to be the descriptors 3 and 4, which a shell puts there.
    script = f'exec "$0" "$@" 3<&{to_read} 4>&{from_write}'
    command = ["bash", "-c", script, program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
    with (
        (folder / "chromium.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, pass_fds=(to_read, from_write)) as process,  # noqa: S603  # Debian's
    ):
        os.close(to_read)
        os.close(from_write)
        browser = Browser(to_write, from_read)
        try:
            browser.start()
            yield browser
            browser.session = ""
            browser.command("Browser.close")
        finally:
            os.close(to_write)
            os.close(from_read)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
