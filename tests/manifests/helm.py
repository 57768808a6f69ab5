"""What `helm install` would send for the chart: rendered by helm, or by a helm that is built from its own module.

`python -m tests.manifests.helm` builds it, with progress.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.e2e.binaries import BuildError, binaries, built_already
from tests.manifests.kustomize import MANIFESTS, Manifest

CHART: Final = MANIFESTS / "chart"
REGISTRATIONS: Final = ("score-offload", "full-offload", "decide")
MODULE: Final = Path(__file__).parent / "go"
_HELM: Final = "helm"


class ChartError(RuntimeError):
    """Helm refuses the chart or its values; the message is Helm's."""


def found_helm() -> Path | None:
    """Return helm where it is on PATH, or where a run of `make e2e` has built it."""
    if found := shutil.which(_HELM):
        return Path(found)
    built = built_already([_HELM], MODULE)
    return None if built is None else built[_HELM]


def helm() -> Path:
    """Return helm, and build it if it is missing, with progress on stderr. Raises BuildError."""
    return found_helm() or binaries([_HELM], MODULE)[_HELM]


def template(
    program: Path, values: Mapping[str, Any], chart: Path = CHART, name: str = "kindred", namespace: str = "kindred"
) -> list[Manifest]:
    """Return the objects of a release with these values. Raises ChartError."""
    text = run(program, ["template", name, str(chart), "--namespace", namespace, "--values", "-"], values)
    return [loaded for loaded in yaml.safe_load_all(text) if loaded]


def run(program: Path, arguments: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return what helm prints on stdout, given the values on stdin. Raises ChartError."""
    done = subprocess.run(  # noqa: S603  # our own arguments
        [str(program), *arguments], input=yaml.safe_dump(dict(values)), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ChartError(done.stderr)
    return done.stdout


if __name__ == "__main__":
    try:
        helm()
    except BuildError as error:
        sys.exit(str(error))
