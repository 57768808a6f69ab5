"""The command that makes a release: what it refuses, before anything is made."""

from pathlib import Path

import pytest

import release.__main__ as command
from release.checkout import Checkout, ReleaseError

OF = Checkout(Path(), "c0ffee", 1_700_000_000, "1.2.3")


def options(folder: Path) -> list[str]:
    return ["--folder", str(folder), "--tools", str(folder), "--renderer", "kubectl kustomize", "--image", "no"]


def refused(problem: str) -> Checkout:
    raise ReleaseError(problem)


def test_what_cannot_be_released_ends_with_one_line_and_leaves_the_last_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of the last release").touch()
    monkeypatch.setattr(command, "checkout", lambda _root: refused("the working tree differs: Makefile"))
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
