"""A release is made from a commit with nothing beside it and from one version, by programs whose failures are told."""

import subprocess
from pathlib import Path

import pytest

from release.checkout import ReleaseError, checkout, newest_release
from release.programs import run

CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-01-02\n\n## 1.2.2 - 2026-01-01\n"


def run_git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=A Name", "-c", "user.email=name@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)  # noqa: S603, S607  # our own


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository with one commit."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "link").symlink_to("CHANGELOG.md")
    run_git(tmp_path, "init", "--quiet")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "--quiet", "--message", "all", "--date", "2026-01-02T00:00:00Z")
    return tmp_path


def test_a_clean_checkout_has_the_version_and_the_time_of_its_commit(root: Path) -> None:
    (root / "ignored").touch()
    of = checkout(root)
    assert of.version == "1.2.3"
    assert len(of.commit) == 40
    rendered = subprocess.run(["git", "show", "-s", "--format=%ct"], cwd=root, capture_output=True, check=True)  # noqa: S607  # on PATH
    assert of.epoch == int(rendered.stdout)


def test_the_exported_files_are_those_of_the_commit_and_none_that_git_ignores(root: Path, tmp_path: Path) -> None:
    (root / "ignored").touch()
    folder = tmp_path / "exported"
    folder.mkdir()
    (root / ".git" / "info" / "exclude").write_text("exported\n")
    checkout(root).export(folder)
    assert sorted(path.name for path in folder.iterdir()) == [".gitignore", "CHANGELOG.md", "app", "link"]
    assert (folder / "link").read_text() == CHANGELOG


@pytest.mark.parametrize("name", ["app/__init__.py", "new file"])
def test_a_file_that_differs_from_the_commit_is_named(root: Path, name: str) -> None:
    (root / name).write_text("changed")
    with pytest.raises(ReleaseError, match=f"differs from its commit: {name}; commit"):
        checkout(root)


def test_of_many_changed_files_the_first_ones_are_named(root: Path) -> None:
    for number in range(12):
        (root / f"new-{number:02}").touch()
    with pytest.raises(ReleaseError, match=r"new-00, new-01, .*, new-09 and 2 more"):
        checkout(root)


@pytest.mark.parametrize(
    "heading", ["## 1.2.4 - 2026-01-03", "## Unreleased"], ids=["another version", "nothing released"]
)
def test_a_changelog_of_another_version_is_refused_with_both(root: Path, heading: str) -> None:
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n")
    run_git(root, "commit", "--quiet", "--all", "--message", "other")
    with pytest.raises(ReleaseError, match=r"has version '1\.2\.3', .* CHANGELOG\.md is '(1\.2\.4)?'"):
        checkout(root)


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="not a git repository"):
        checkout(tmp_path)


def test_only_a_heading_with_a_date_is_a_release() -> None:
    assert newest_release(CHANGELOG) == "1.2.3"
    assert newest_release("## Unreleased\n## 2.0.0\n") == ""


def test_what_a_program_prints_is_returned_and_the_end_of_what_a_failed_one_said_is_in_the_error(
    tmp_path: Path,
) -> None:
    assert run(["sh", "-c", 'echo "$EPOCH in $(pwd)"'], tmp_path, {"EPOCH": "7"}) == f"7 in {tmp_path}\n"
    with pytest.raises(ReleaseError, match=r"exit status 3\n(?s:.*)line 30$") as raised:
        run(["sh", "-c", 'for i in $(seq 30); do echo "line $i" >&2; done; exit 3'], tmp_path)
    assert "line 11\n" in str(raised.value)
    assert "line 10\n" not in str(raised.value)
    with pytest.raises(ReleaseError, match=r"^absent-program: No such file or directory$"):
        run(["absent-program", "build"], tmp_path)
