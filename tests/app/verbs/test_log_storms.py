"""No request can fill the log: of each line that it causes, ten a second are written, and the number of the others."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.process import logs
from tests.app.feeds.following import scenario
from tests.app.verbs.binding.binding_setting import FORBIDDEN, N1, WEB, scheduling
from tests.fake_apiserver import FakeApiServer

STORM = 600


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Log to a file as a service does."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        logs.configure("info", "json", stream)
        yield tmp_path / "log"
        for handler in root.handlers:
            handler.close()
        root.handlers[:], root.level = handlers, level
        logging.captureWarnings(capture=False)


def kinds(log: Path) -> dict[tuple[str, str, str], list[int]]:
    """Return (logger, verb, first word) of each kind of line -> its written lines, and those that its sums count."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for reported in map(json.loads, log.read_text("utf-8").splitlines()):
        like = reported.get("like", reported["message"])
        counts = found.setdefault((reported["logger"], reported.get("verb", ""), like.split()[0]), [0, 0])
        if "left_out" in reported:
            counts[1] += reported["left_out"]
        else:
            counts[0] += 1
    return found


@scenario()
async def storm(server: FakeApiServer, verb: str, body: bytes) -> None:
    """Have one request made many times."""
    server.faults.add(FORBIDDEN, None, "bind", times=STORM)
    async with scheduling(server, N1, preempt="verb") as scheduler:
        metadata = scheduler.create(WEB)["metadata"]
        for name in ("uid", "name", "namespace"):
            body = body.replace(f"${name}".encode(), metadata[name].encode())
        for _ in range(STORM // 20):
            await asyncio.gather(*(scheduler.send_bytes(verb, body) for _ in range(20)))


@pytest.mark.parametrize(
    ("verb", "body", "kind"),
    [
        pytest.param(
            "bind",
            b'{"PodName": "$name", "PodNamespace": "$namespace", "PodUID": "$uid", "Node": "n1"}',
            ("app.verbs.bind", "", "bind:"),
            id="bind-that-fails",
        ),
        pytest.param("filter", b'{"Pod": 1}', ("kindred.questions", "filter", "request"), id="bad-filter"),
        pytest.param("prioritize", b"no JSON", ("kindred.questions", "prioritize", "request"), id="bad-prioritize"),
        pytest.param("preempt", b"{}", ("kindred.questions", "preempt", "request"), id="bad-preempt"),
    ],
)
def test_a_storm_of_requests_has_ten_lines_a_second_and_the_number_of_the_others(
    verb: str, body: bytes, kind: tuple[str, str, str], log: Path
) -> None:
    began = time.monotonic()
    storm(verb, body)
    seconds = time.monotonic() - began
    logging.getLogger().handlers[0].close()
    found = kinds(log)
    assert sum(found[kind]) == STORM
    assert found[kind][1] > 0
    for written, _ in found.values():
        assert written <= 10 * (seconds + 2)


def test_every_line_goes_through_the_limit() -> None:
    app = Path(logs.__file__).parents[1]
    sources = {str(file.relative_to(app)): file.read_text("utf-8") for file in app.rglob("*.py")}
    handling = {name for name, text in sources.items() if re.search(r"addHandler|\.propagate|StreamHandler", text)}
    assert handling == {"process/logs.py"}
    unlimited = {name for name, text in sources.items() if "NO_LIMIT" in text}
    assert unlimited == {"process/logs.py", "telemetry/request_log.py"}, "only where the settings want every request"
