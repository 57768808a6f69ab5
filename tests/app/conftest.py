"""No setting, cluster or proxy of the environment reaches a test, and no log level of one test the next."""

import asyncio
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.app.api_server.client_setting import Certificates, Setting


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home without a kubeconfig."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, empty_home: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("KINDRED_", "KUBE", "SSL_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(empty_home))


@pytest.fixture(autouse=True)
def _log_levels_are_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("", "uvicorn")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _uvicorn_looks_sooner() -> Iterator[None]:
    """Let servers in this process look every 5 ms whether they are to end, and wait 5 ms then, in place of 100 ms each.

    Some hundred tests start and end a server of their own.
    """

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 20)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
        yield


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates that are made once for all tests, and must not be changed."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def setting(tmp_path: Path, certificates: Certificates) -> Setting:
    """Make a place where a client talks to a server."""
    return Setting(tmp_path, certificates)
