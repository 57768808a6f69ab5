"""No setting of whoever runs the tests reaches them, and none of theirs reaches the next test."""

import logging
import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("KINDRED_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _log_levels_are_as_before() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("", "uvicorn")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
