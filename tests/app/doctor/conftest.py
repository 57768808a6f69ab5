"""No cluster of whoever runs the tests reaches them; and certificates to throw away."""

import os
from pathlib import Path

import pytest

from tests.app.watch.certificates import Certificates


@pytest.fixture(autouse=True)
def _no_cluster_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("KUBE", "SSL_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates that are made once for all tests, and must not be changed."""
    return Certificates(tmp_path_factory.mktemp("certificates"))
