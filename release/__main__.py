"""The command: `python -m release` fills a folder with all files of a release.

The same commit gives the same bytes on the same machine: all is made from the files of the commit, with its time. The
last release in the folder is replaced when all is made, so a release that fails leaves it as it was.
"""

import argparse
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from release.archives import replace_release, write_chart, write_checksums
from release.checkout import Checkout, ReleaseError, checkout
from release.image import base_of, engine, write_image
from release.programs import run

ROOT: Final = Path(__file__).parents[1]


def release(options: argparse.Namespace) -> Checkout:
    """Fill a folder with the release of the commit that is checked out. Raises ReleaseError."""
    of = checkout(ROOT)
    if options.tag not in {"", f"v{of.version}"}:
        raise ReleaseError(
            f"the tag is {options.tag}, and the commit has version {of.version}: its tag is v{of.version}"
        )
    with_image = options.image == "yes"
    if with_image and not options.base_digest:
        _refuse_tag_or_warn(options.tag)
    builder = engine() if with_image else ""
    with tempfile.TemporaryDirectory() as made:
        source, files = Path(made) / "source", Path(made) / "dist"
        source.mkdir()
        files.mkdir()
        of.export(source)
        _write_distributions(source, files, of)
        _write_manifests(source, files, of, options.renderer)
        _say("chart")
        write_chart(source / "manifests" / "chart", files / f"kindred-{of.version}.tgz", of.epoch)
        _write_sbom(source, files, options.tools, of)
        if with_image:
            _say(f"image, by {builder}")
            write_image(source, files / f"kindred-{of.version}-image.oci.tar", of, builder, options.base_digest)
        else:
            _say("image: left out, as IMAGE=no says")
        write_checksums(files)
        replace_release(files, options.folder)
    return of


def _refuse_tag_or_warn(tag: str) -> None:
    """Say that the base of the image has no digest. Raises ReleaseError for a tag, because that is published."""
    base = base_of((ROOT / "Dockerfile").read_text("utf-8"))
    unpinned = f"the base image {base} is not pinned, so a later build may have another base"
    pin = f"pin it with BASE_DIGEST=sha256:..., from `skopeo inspect --format '{{{{.Digest}}}}' docker://{base}`"
    if tag:
        raise ReleaseError(f"{unpinned}. For the tag {tag}, {pin}")
    _say(f"{unpinned}; {pin}")


def _write_distributions(source: Path, files: Path, of: Checkout) -> None:
    _say("wheel and sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(files)]
    run(command, source, {"SOURCE_DATE_EPOCH": str(of.epoch)})


def _write_manifests(source: Path, files: Path, of: Checkout, renderer: Sequence[str]) -> None:
    _say("manifests")
    for overlay in sorted(path.parent for path in (source / "manifests" / "overlays").glob("*/kustomization.yaml")):
        rendered = run([*renderer, str(overlay)], source)
        (files / f"kindred-{of.version}-{overlay.name}.yaml").write_text(rendered, "utf-8")


def _write_sbom(source: Path, files: Path, tools: Path, of: Checkout) -> None:
    _say("SBOM")
    command = [
        str(tools.absolute() / "cyclonedx-py"),
        "requirements",
        "--output-reproducible",
        "--mc-type",
        "application",
    ]
    file = files / "sbom.cdx.json"
    run(
        [*command, "--pyproject", "pyproject.toml", "-o", str(file), "requirements.lock"],
        source,
        {"SOURCE_DATE_EPOCH": str(of.epoch)},
    )
    bom = json.loads(file.read_text("utf-8"))
    # pyproject.toml does not have it, as hatchling takes it from app/__init__.py.
    bom["metadata"]["component"]["version"] = of.version
    file.write_text(json.dumps(bom, indent=2, sort_keys=True) + "\n", "utf-8")


def _words(command: str) -> list[str]:
    """Return the words of a command line. Raises ArgumentTypeError where there are none."""
    words = shlex.split(command)
    if not words:
        raise argparse.ArgumentTypeError("names no program")
    return words


def _digest(text: str) -> str:
    """Return a digest, or the empty text. Raises ArgumentTypeError for anything else."""
    if text and not re.fullmatch("sha256:[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"expected sha256: and 64 hexadecimal digits, got {text!r}")
    return text


def _say(text: str) -> None:
    print(f"release: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a release; exit status 1 with one line that says why not."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="default: dist")
    parser.add_argument("--tools", type=Path, required=True, help="the folder with cyclonedx-py")
    parser.add_argument("--renderer", type=_words, required=True, help="such as: kubectl kustomize")
    parser.add_argument("--tag", default="", help="the tag that is released, which has to be v and the version")
    parser.add_argument("--image", choices=("yes", "no"), default="yes", help="no: leave the container image out")
    parser.add_argument("--base-digest", type=_digest, default="", help="sha256:... that pins the image's base")
    options = parser.parse_args(arguments)
    try:
        of = release(options)
    except ReleaseError as error:
        sys.exit(f"release: {error}")
    _say(f"{of.version} of {of.commit[:12]} is in {options.folder}")


if __name__ == "__main__":
    main()
