"""What `kubectl apply -k FOLDER` would send, by what there is: kustomize, kubectl, or a program that Go builds.

`python -m tests.manifests.kustomize` prints the command that renders a folder, for `make release`.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from tests.e2e.binaries import BuildError, binaries

Manifest: TypeAlias = dict[str, Any]

MANIFESTS: Final = Path(__file__).parents[2] / "manifests"
DECIDE: Final = "decide"
OVERLAYS: Final = ("score-offload", "full-offload", DECIDE)
_MODULE: Final = Path(__file__).parent / "go"
_FIRST: Final = ("Namespace",)


class RenderError(RuntimeError):
    """A folder cannot be rendered, or kustomize cannot be built."""


class NoRendererError(RenderError):
    """This machine has no kustomize, no kubectl, and no Go to build kustomize with."""


@cache
def renderer() -> tuple[str, ...]:
    """Return the command that renders a folder. Raises RenderError, which says what is missing."""
    if found := shutil.which("kustomize"):
        return found, "build"
    if found := shutil.which("kubectl"):
        return found, "kustomize"
    return built_renderer()


@cache
def built_renderer() -> tuple[str, ...]:
    """Return the command of a kustomize that is built here, from its own module. Raises RenderError."""
    if shutil.which("go") is None:
        raise NoRendererError("no kubectl, no kustomize, and no Go to build it")
    try:
        return str(binaries(["kustomize"], _MODULE)["kustomize"]), "build"
    except BuildError as error:
        raise RenderError(f"no kubectl, no kustomize, and it cannot be built: {error}") from None


def render(folder: Path, command: tuple[str, ...] | None = None) -> list[Manifest]:
    """Return the objects of a kustomization, in the order in which they can be made. Raises RenderError."""
    done = subprocess.run(  # noqa: S603  # our own arguments
        [*(command or renderer()), str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RenderError(f"{folder}: {done.stderr}")
    loaded: list[Manifest] = list(yaml.safe_load_all(done.stdout))
    return sorted(loaded, key=lambda manifest: manifest["kind"] not in _FIRST)


def with_components(folder: Path, overlay: str, components: Iterable[str]) -> Path:
    """Write a kustomization of one's own, with an overlay and components, as docs/install.md shows it."""

    def seen_from_folder(path: str) -> str:
        return os.path.relpath(MANIFESTS / path, folder.resolve())

    mine = {
        "resources": [seen_from_folder(f"overlays/{overlay}")],
        "components": [seen_from_folder(component) for component in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(mine))
    return folder


def of_kind(manifests: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """Return name -> object, of those of one kind."""
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind}


def only(manifests: Iterable[Manifest], kind: str) -> Manifest:
    """Return the one object of a kind."""
    (found,) = of_kind(manifests, kind).values()
    return found


def of_scheduler(manifest: Manifest) -> bool:
    """Return whether an object is the second scheduler's, and not Kindred's."""
    name: str = manifest["metadata"]["name"]
    return name.startswith("kindred-scheduler") and manifest["kind"] != "Certificate"


def of_kindred(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return the objects without those of the second scheduler, where there is one."""
    return [manifest for manifest in manifests if not of_scheduler(manifest)]


def selects(labels: Mapping[str, str], manifest: Manifest) -> bool:
    """Whether the labels of an object, or of a pod's template, are selected."""
    carried: Mapping[str, str] = manifest["metadata"].get("labels", {})
    return labels.items() <= carried.items()


if __name__ == "__main__":
    try:
        sys.stdout.write(shlex.join(renderer()) + "\n")
    except RenderError as problem:
        sys.exit(str(problem))
