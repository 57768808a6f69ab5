"""The command that makes a release: what it refuses, before anything is made."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

import release.__main__ as command
from release.checkout import Checkout, ReleaseError
from release.image import base_of

DIGEST: Final = "sha256:" + "a0" * 32
DOCKERFILE: Final = Path("Dockerfile").read_text("utf-8")
OF = Checkout(Path(), "c0ffee", 1_700_000_000, "1.2.3")


def options(folder: Path) -> list[str]:
    return ["--folder", str(folder), "--tools", str(folder), "--renderer", "kubectl kustomize", "--image", "no"]


def rejected(problem: str) -> Checkout:
    raise ReleaseError(problem)


def test_what_cannot_be_released_ends_with_one_line_and_leaves_the_last_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of the last release").touch()
    monkeypatch.setattr(command, "checkout", lambda _root: rejected("the working tree differs: Makefile"))
    with pytest.raises(SystemExit) as ended:
        command.main(options(tmp_path))
    assert ended.value.code == "release: the working tree differs: Makefile"
    assert [path.name for path in tmp_path.iterdir()] == ["of the last release"]


@pytest.mark.parametrize("tag", ["1.2.3", "v1.2.4", "main"])
def test_a_tag_of_another_version_is_refused_with_the_right_one(
    tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "checkout", lambda _root: OF)
    with pytest.raises(SystemExit, match=rf"the tag is {tag}, .* its tag is v1\.2\.3"):
        command.main([*options(tmp_path), "--tag", tag])


def test_a_renderer_without_a_program_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([*options(tmp_path), "--renderer", " "])
    assert ended.value.code == 2
    assert "argument --renderer: names no program" in capsys.readouterr().err


def test_an_image_without_a_digest_of_its_base_is_made_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "checkout", lambda _root: OF)
    monkeypatch.setattr(command, "engine", lambda: rejected("no engine"))
    for digest, lines in (("", 1), (DIGEST, 0)):
        with pytest.raises(SystemExit) as ended:
            command.main([*options(tmp_path), "--image", "yes", "--base-digest", digest])
        assert ended.value.code == "release: no engine", "the line is no refusal"
        stated = [line for line in capsys.readouterr().err.splitlines() if "is not pinned" in line]
        assert len(stated) == lines
        for line in stated:
            assert "BASE_DIGEST=sha256:..." in line
            assert f"skopeo inspect --format '{{{{.Digest}}}}' docker://{base_of(DOCKERFILE)}" in line


def test_a_release_without_an_image_needs_no_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "checkout", lambda _root: OF._replace(root=tmp_path / "nowhere"))
    with pytest.raises(OSError, match="nowhere"):
        command.main([*options(tmp_path), "--tag", "v1.2.3"])
    assert "pinned" not in capsys.readouterr().err


def test_a_tag_is_not_released_without_a_digest_of_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "checkout", lambda _root: OF)
    monkeypatch.setattr(command, "engine", lambda: pytest.fail("the image is made"))
    with pytest.raises(SystemExit, match=r"is not pinned.*For the tag v1\.2\.3, pin it with BASE_DIGEST="):
        command.main([*options(tmp_path), "--image", "yes", "--tag", "v1.2.3"])


@pytest.mark.parametrize("digest", ["latest", "sha256:", "sha256:" + "g" * 64, "sha512:" + "a" * 64, DIGEST + "a"])
def test_what_is_no_digest_is_bad_input(digest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([*options(tmp_path), "--base-digest", digest])
    assert ended.value.code == 2
    assert "argument --base-digest: expected sha256: and 64 hexadecimal digits" in capsys.readouterr().err


def test_the_makefile_passes_the_digest_only_if_there_is_one() -> None:
    for digest, passed in ((DIGEST, [f"--base-digest {DIGEST}"]), ("", [])):
        made = subprocess.run(  # noqa: S603  # our own arguments
            ["make", "--dry-run", "release", f"BASE_DIGEST={digest}"],  # noqa: S607  # the make of the machine
            capture_output=True,
            text=True,
            check=True,
        )
        assert re.findall("--base-digest [^ \n]+", made.stdout) == passed
