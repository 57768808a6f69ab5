"""The image of a release: by an engine that works, with the time of the commit, or a clear error."""

import os
import tarfile
from pathlib import Path

import pytest

from release.checkout import Checkout, ReleaseError
from release.image import commands, engine, write_image

OF = Checkout(Path(), "c0ffee", 1_700_000_000, "1.2.3")


def test_without_an_engine_that_works_the_error_says_how_to_leave_the_image_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "docker"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match=r"none of buildah, podman, docker .* IMAGE=no"):
        engine()


def test_the_first_engine_that_works_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, status in (("buildah", 1), ("podman", 0), ("docker", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine() == "podman"


@pytest.mark.parametrize("builder", ["buildah", "podman", "docker"])
def test_the_image_has_the_name_that_manifests_have_and_goes_into_an_oci_layout(builder: str) -> None:
    told = [" ".join(command) for command in commands(Path("/made/layout"), OF, builder, "")]
    assert all(each.startswith(f"{builder} ") for each in told)
    assert "--build-arg VERSION=1.2.3 --build-arg REVISION=c0ffee" in told[0]
    assert ("rewrite-timestamp=true" in told[0]) == (builder == "docker")
    assert ("--timestamp 1700000000" in told[0]) == (builder != "docker")
    assert ("dest=/made/layout,tar=false" if builder == "docker" else "oci:/made/layout:") in told[-1]
    assert all("kindred:1.2.3" in each for each in told)


@pytest.mark.parametrize(("digest", "told"), [("", False), ("sha256:0a", True)], ids=["its tag", "a digest"])
def test_the_base_is_that_of_the_digest_if_there_is_one(digest: str, told: bool) -> None:  # noqa: FBT001  # a row
    build, _push = commands(Path("/made/layout"), OF, "buildah", digest)
    assert ("BASE_DIGEST=sha256:0a" in build) == told
    assert ("BASE_DIGEST=" in " ".join(build)) == told


def test_the_archive_is_the_same_whenever_the_engine_writes_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "buildah"
    # `push NAME oci:FOLDER:NAME` writes a layout, as of now; `build` does nothing.
    program.write_text(
        "#!/bin/sh\n[ $1 = push ] || exit 0\n"
        'folder=${3#oci:}; folder=${folder%%:*}; mkdir -p "$folder/blobs/sha256" "$folder/ingest"\n'
        'echo "{}" > "$folder/index.json"; echo layer > "$folder/blobs/sha256/0a"; sleep 0.01\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    first, second = tmp_path / "1.tar", tmp_path / "2.tar"
    for archive in (first, second):
        write_image(tmp_path, archive, OF, "buildah", "")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as opened:
        assert opened.getnames() == ["blobs/sha256/0a", "index.json"]
        assert {member.mtime for member in opened} == {OF.epoch}
