"""The wheel serves the demo from an environment of its own, by the line of docs/run.md."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.e2e.programs import Program, free_port
from tests.e2e.wheels import locked_wheels

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 120.0  # seconds; uv unpacks 50 packages
_LINE: Final = re.compile(r"^\$ (uvx .*)$", re.MULTILINE)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Build the wheel, and return its folder."""
    folder = tmp_path / "dist"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)  # noqa: S603  # our own arguments
    return folder


def test_the_line_of_the_docs_serves_the_demo_from_an_environment_with_only_what_the_wheel_needs(
    dist: Path, tmp_path: Path
) -> None:
    port = free_port()
    (line,) = _LINE.findall((ROOT / "docs" / "run.md").read_text("utf-8"))
    uvx, *arguments = shlex.split(line)
    environment = {
        "HOME": str(tmp_path),
        "KINDRED_LISTEN": f"127.0.0.1:{port}",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "UV_FIND_LINKS": str(locked_wheels(ROOT / "requirements.lock", f"3.{sys.version_info.minor}")),
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,
    }
    command = [str(Path(sys.executable).with_name(uvx)), *arguments]
    with Program("uvx", command, tmp_path / "log", environment, folder=dist) as program:
        program.wait_until(lambda: _ready(port), PATIENCE)
        asked = (ROOT / "app/demo/requests/required-affinity.json").read_bytes()
        answer = httpx.post(f"http://127.0.0.1:{port}/filter", content=asked).json()
        assert program.end()
    assert answer["NodeNames"] == ["node1"]


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False
