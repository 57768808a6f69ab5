"""What a release holds is the same for the same files: archives, checksums that `sha256sum` checks, and the image."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from release.archives import CHECKSUMS, replace_release, write_chart, write_checksums
from release.checkout import Checkout, ReleaseError
from release.image import commands, engine, write_image
from tests.manifests.helm import CHART, found_helm, template

EPOCH = 1_700_000_000


def test_the_chart_is_the_same_whenever_and_by_whomever_it_is_written(tmp_path: Path) -> None:
    first, second, chart = tmp_path / "1.tgz", tmp_path / "2.tgz", tmp_path / "chart"
    chart.mkdir()
    for name in ("b.yaml", "a.yaml"):
        (chart / name).write_text(name)
    (chart / "link.yaml").symlink_to("a.yaml")
    write_chart(chart, first, EPOCH)
    (chart / "a.yaml").chmod(0o600)
    os.utime(chart / "b.yaml", (1, 1))
    write_chart(chart, second, EPOCH)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as opened:
        assert opened.getnames() == ["kindred/a.yaml", "kindred/b.yaml", "kindred/link.yaml"]
        assert all(member.isfile() and member.mtime == EPOCH for member in opened)
        linked = opened.extractfile("kindred/link.yaml")
        assert linked is not None
        assert linked.read() == b"a.yaml"


def test_helm_renders_the_archive_as_it_renders_the_folder(tmp_path: Path) -> None:
    program = found_helm()
    if program is None:
        pytest.skip("no helm on PATH, and `make e2e` has built none")
    write_chart(CHART, tmp_path / "kindred.tgz", EPOCH)
    values = {"registration": "decide", "observability": {"enabled": True}, "scheduler": {"image": {"tag": "v1.36.3"}}}
    assert template(program, values) == template(program, values, tmp_path / "kindred.tgz")


def test_checksums_are_of_all_files_and_a_changed_one_is_found(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    write_checksums(tmp_path)
    write_checksums(tmp_path)
    assert [line.split()[1] for line in (tmp_path / CHECKSUMS).read_text().splitlines()] == ["a", "b"]
    check = ["sha256sum", "--check", CHECKSUMS]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 0  # noqa: S603  # our own
    (tmp_path / "a").write_text("other")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1  # noqa: S603  # our own


def test_a_release_takes_the_place_of_the_last_one_and_of_no_other_file(tmp_path: Path) -> None:
    folder = tmp_path / "dist"
    for version in ("1", "2"):
        files = tmp_path / version
        files.mkdir()
        (files / f"kindred-{version}.tgz").write_text(version)
        write_checksums(files)
        replace_release(files, folder)
        (folder / "site").mkdir(exist_ok=True)
        (folder / "notes.txt").write_text("mine")
    assert sorted(path.name for path in folder.iterdir()) == [CHECKSUMS, "kindred-2.tgz", "notes.txt", "site"]
    assert "kindred-2.tgz" in (folder / CHECKSUMS).read_text()


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
    reported = [" ".join(command) for command in commands(Path("/made/layout"), OF, builder, "")]
    assert all(each.startswith(f"{builder} ") for each in reported)
    assert "--build-arg VERSION=1.2.3 --build-arg REVISION=c0ffee" in reported[0]
    assert ("rewrite-timestamp=true" in reported[0]) == (builder == "docker")
    assert ("--timestamp 1700000000" in reported[0]) == (builder != "docker")
    assert ("dest=/made/layout,tar=false" if builder == "docker" else "oci:/made/layout:") in reported[-1]
    assert all("kindred:1.2.3" in each for each in reported)


@pytest.mark.parametrize(("digest", "reported"), [("", False), ("sha256:0a", True)], ids=["its tag", "a digest"])
def test_the_base_is_that_of_the_digest_if_there_is_one(digest: str, reported: bool) -> None:  # noqa: FBT001  # a row
    build, _push = commands(Path("/made/layout"), OF, "buildah", digest)
    assert ("BASE_DIGEST=sha256:0a" in build) == reported
    assert ("BASE_DIGEST=" in " ".join(build)) == reported


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
