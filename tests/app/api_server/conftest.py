"""A home of its own for each test, as kubeconfig files are looked for there, and the event loops."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture(params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy], ids=["asyncio", "uvloop"])
def both_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test once on each event loop that the service can have."""
    asyncio.set_event_loop_policy(request.param())
    yield
    asyncio.set_event_loop_policy(None)
