"""Idle connections of a real Go client, as kube-scheduler is one: the client closes them, never Kindred.

A port that closes first may do so in the moment in which a request is under way. Go then repeats no POST.
"""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import shop
from tests.app.server.conversations import serving, until

OF_GO: Final = 90.0  # seconds, net/http: DefaultTransport.IdleConnTimeout
SCALE: Final = 90  # times faster than with the defaults
PATIENCE: Final = 120.0  # the first build of Go's net/http

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the client."""
    program = tmp_path_factory.mktemp("go") / "client"
    source = Path(__file__).with_name("go_client") / "main.go"
    subprocess.run(["go", "build", "-o", str(program), str(source)], check=True, timeout=PATIENCE)  # noqa: S603, S607  # our own program
    return program


def test_a_go_client_keeps_its_connection_for_as_long_as_it_wants(client: Path) -> None:
    retained = DEFAULTS.idle_timeout
    assert retained > OF_GO
    limits = Limits(idle_timeout=retained / SCALE, read_timeout=0.1)
    port = create_service(Settings(listen="127.0.0.1:0"), shop(), None, limits=limits).ports[0]

    async def talked() -> list[str]:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number):
            # Each request comes when the client would soon close its connection. A busy machine may make it later.
            program = await asyncio.create_subprocess_exec(
                *(client, f"http://127.0.0.1:{number}/filter", f"{OF_GO / SCALE}s", f"{0.8 * OF_GO / SCALE}s"),
                stdout=asyncio.subprocess.PIPE,
            )
            stated, _ = await program.communicate()
            await until(lambda: port.connections.open == 0)
            return stated.decode().split()

    assert asyncio.run(talked()) == [f"{OF_GO // 60:.0f}m{OF_GO % 60:.0f}s", "false", "true", "true", "true"]
