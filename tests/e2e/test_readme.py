"""The kubectl lines of README.md and the uvx line of docs/run.md, run as they stand there.

The wheel serves the demo from an environment with only what it needs.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN
from tests.e2e.image_builder import locked_wheels
from tests.e2e.programs import PATIENCE, Program, free_port

ROOT: Final = Path(__file__).parents[2]
DEPLOYMENT: Final = "/apis/apps/v1/namespaces/kindred/deployments/kindred"
_LINE: Final = re.compile(r"^\$ (kubectl .*)$", re.MULTILINE)


def run(line: str, kubeconfig: Path) -> str:
    """Run a line in the root of the project, and return its output. Raises CalledProcessError."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    program = shutil.which("kubectl") or pytest.skip("there is no kubectl")
    _, *arguments = shlex.split(line)
    done = subprocess.run(  # noqa: S603  # a line of our own README
        [program, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


def test_the_overlay_is_applied_and_its_rollout_is_followed(cluster: Cluster) -> None:
    apply, rollout = _LINE.findall((ROOT / "README.md").read_text("utf-8"))
    kubeconfig = cluster.plane.kubeconfig("admin", client=ADMIN)
    assert "deployment.apps/kindred" in run(apply, kubeconfig)
    # Nothing runs pods here, so the test reports them as the deployment controller and kubelet would.
    deployment = cluster.api.get(DEPLOYMENT)
    replicas = deployment["spec"]["replicas"]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
    status = {"observedGeneration": deployment["metadata"]["generation"], **counts}
    cluster.api.patch(f"{DEPLOYMENT}/status", {"status": status})
    assert run(rollout, kubeconfig) == 'deployment "kindred" successfully rolled out\n'


_UVX: Final = re.compile(r"^\$ (uvx .*)$", re.MULTILINE)


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
    (line,) = _UVX.findall((ROOT / "docs" / "run.md").read_text("utf-8"))
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
        requested = (ROOT / "app/demo/requests/required-affinity.json").read_bytes()
        response = httpx.post(f"http://127.0.0.1:{port}/filter", content=requested, timeout=PATIENCE).json()
        assert program.end()
    assert response["NodeNames"] == ["node1"]


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False
