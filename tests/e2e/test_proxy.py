"""The proxy before kube-apiserver leaves nothing open, so that no other test ends with what it left."""

import gc
import socket
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast
from urllib.parse import urlsplit

import pytest

from tests.e2e.control_plane import ControlPlane, ControlPlaneAuthority
from tests.e2e.proxy import api_proxy

LOOPBACK: Final = "127.0.0.1"


def test_a_proxy_that_stops_while_it_connects_leaves_no_connection_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = ControlPlaneAuthority(tmp_path)
    with ExitStack() as stack, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        silent = stack.enter_context(socket.create_server((LOOPBACK, 0)))
        plane = SimpleNamespace(port=silent.getsockname()[1], authority=authority)
        with api_proxy(cast("ControlPlane", plane)) as proxy:
            for _ in range(10):
                client = socket.create_connection((LOOPBACK, urlsplit(proxy.url).port or 0))
                stack.enter_context(authority.client_tls().wrap_socket(client, server_hostname=LOOPBACK))
                stack.enter_context(silent.accept()[0])  # it connects now, and waits for a handshake
        logged = [*caplog.messages]
        caplog.clear()  # a traceback in it would keep connections alive
        gc.collect()
    assert (logged, [str(each.message) for each in found]) == ([], [])
