"""Certificates of Kindred for the tests of its ports."""

import pytest

from tests.app.server.tls.secrets import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Make them once for all tests, which must not change them."""
    return Certificates(tmp_path_factory.mktemp("server") / "ca")
