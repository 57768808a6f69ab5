"""The kubectl lines of README.md, run as they stand there against a real API server."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN

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
