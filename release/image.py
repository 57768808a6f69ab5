"""The container image as an OCI archive, by the engine that there is."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from release.archives import write_layout
from release.checkout import Checkout, ReleaseError
from release.programs import run, succeeds

# Engine -> the command that succeeds where it can build: a docker without its daemon cannot.
_ENGINES: Final[Mapping[str, Sequence[str]]] = {
    "buildah": ("buildah", "info"),
    "podman": ("podman", "info"),
    "docker": ("docker", "buildx", "inspect", "--bootstrap"),
}


def engine() -> str:
    """Return the engine to build with. Raises ReleaseError where none of those here can build."""
    for name, works in _ENGINES.items():
        if shutil.which(name) and succeeds(works):
            return name
    raise ReleaseError(
        f"no engine to build the image with: none of {', '.join(_ENGINES)} is installed and working. "
        "IMAGE=no makes a release without the image"
    )


def base_of(dockerfile: str) -> str:
    """Return the name of the base image, with its tag."""
    return next(line.partition("=")[2] for line in dockerfile.splitlines() if line.startswith("ARG BASE="))


def write_image(source: Path, archive: Path, of: Checkout, builder: str, base_digest: str) -> None:
    """Build the image of an exported commit, with the time of the commit, into an OCI archive. Raises ReleaseError.

    Engines write archives with the time of writing, so they write the folder, and the archive is made of that here.
    """
    with tempfile.TemporaryDirectory() as folder:
        layout = Path(folder) / "layout"
        for command in commands(layout, of, builder, base_digest):
            run(command, source, {"SOURCE_DATE_EPOCH": str(of.epoch)})
        write_layout(layout, archive, of.epoch)


def commands(layout: Path, of: Checkout, builder: str, base_digest: str) -> list[list[str]]:
    """Return the commands that fill a folder with the image, as an OCI image layout.

    They are run in the folder with the Dockerfile. Without a digest the base is its tag's.
    """
    name = f"kindred:{of.version}"
    values = {"VERSION": of.version, "REVISION": of.commit, **({"BASE_DIGEST": base_digest} if base_digest else {})}
    told = [part for key, value in values.items() for part in ("--build-arg", f"{key}={value}")]
    if builder == "docker":
        output = f"type=oci,dest={layout},tar=false,name={name},rewrite-timestamp=true"
        return [["docker", "buildx", "build", "--provenance=false", *told, "--output", output, "."]]
    return [
        [builder, "build", "--timestamp", str(of.epoch), *told, "--tag", name, "."],
        [builder, "push", name, f"oci:{layout}:{name}"],
    ]
