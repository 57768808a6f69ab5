"""Archives are the same for the same files, and checksums are those that `sha256sum` checks."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from release.archives import CHECKSUMS, replace_release, write_chart, write_checksums
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
    values = {"registration": "decide", "observability": {"enabled": True}}
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
