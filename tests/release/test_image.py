"""The image of a release: by an engine that works, with the time of the commit, or a clear error."""

from pathlib import Path

import pytest

from release.checkout import Checkout, ReleaseError
from release.image import commands, engine

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
def test_the_image_has_the_name_that_manifests_have_and_goes_into_an_oci_archive(builder: str) -> None:
    told = [" ".join(command) for command in commands(Path("/dist/image.tar"), OF, builder, "")]
    assert all(each.startswith(f"{builder} ") for each in told)
    assert "--build-arg VERSION=1.2.3 --build-arg REVISION=c0ffee" in told[0]
    assert ("rewrite-timestamp=true" in told[0]) == (builder == "docker")
    assert ("--timestamp 1700000000" in told[0]) == (builder != "docker")
    assert "/dist/image.tar" in told[-1]
    assert all("kindred:1.2.3" in each for each in told)


@pytest.mark.parametrize(("digest", "told"), [("", False), ("sha256:0a", True)], ids=["its tag", "a digest"])
def test_the_base_is_that_of_the_digest_if_there_is_one(digest: str, told: bool) -> None:  # noqa: FBT001  # a row
    build, _push = commands(Path("/dist/image.tar"), OF, "buildah", digest)
    assert ("BASE_DIGEST=sha256:0a" in build) == told
    assert ("BASE_DIGEST=" in " ".join(build)) == told
