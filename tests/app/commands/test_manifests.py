"""What commands read: whole, or not at all, and never without end."""

import io
import os
import subprocess
from pathlib import Path

import pytest

from app.commands.manifests import InputError, read_input

MEBIBYTE = 1024 * 1024


def rejection(path: Path | str, most: int = MEBIBYTE) -> str:
    with Path(path).open("rb") as file, pytest.raises(InputError) as caught:
        read_input(file, most, "the limit")
    return str(caught.value)


@pytest.mark.parametrize("size", [0, 1, 3 * MEBIBYTE], ids=["empty", "small", "several-pieces"])
def test_files_pipes_and_what_is_held_in_memory_are_read_whole(tmp_path: Path, size: int) -> None:
    text = b"x" * size
    (tmp_path / "f").write_bytes(text)
    with (tmp_path / "f").open("rb") as file:
        assert read_input(file, size, "the limit") == text
    assert read_input(io.BytesIO(text), size, "the limit") == text
    with subprocess.Popen(["/bin/cat", tmp_path / "f"], stdout=subprocess.PIPE) as cat:  # noqa: S603  # our own file
        assert cat.stdout is not None
        assert read_input(cat.stdout, size, "the limit") == text


def test_a_pipe_without_end_is_refused_at_the_limit() -> None:
    with subprocess.Popen(["/usr/bin/yes"], stdout=subprocess.PIPE) as endless:  # prints "y" for ever
        assert endless.stdout is not None
        with pytest.raises(InputError, match=r"^more than 1048576 bytes \(the limit\)$"):
            read_input(endless.stdout, MEBIBYTE, "the limit")


def test_a_fifo_without_end_is_refused_at_the_limit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with subprocess.Popen(["/bin/sh", "-c", f"yes > {tmp_path}/f 2>&-"]):  # noqa: S603  # our own pipe
        assert rejection(tmp_path / "f") == "more than 1048576 bytes (the limit)"


def test_what_is_no_text_is_told_at_once() -> None:
    assert rejection("/dev/zero", 1 << 40) == "a NUL at byte 0: neither JSON nor YAML in UTF-8 or UTF-16"
    with pytest.raises(InputError, match=r"^a NUL at byte 3145728: "):
        read_input(io.BytesIO(b"x" * 3 * MEBIBYTE + b"\0"), 1 << 40, "the limit")
