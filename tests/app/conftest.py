"""No setting of whoever runs the tests reaches them."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("KINDRED_"):
            monkeypatch.delenv(name)
