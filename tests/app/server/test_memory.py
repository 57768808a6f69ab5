"""glibc keeps what is freed; other C libraries are left alone."""

import ctypes
import platform
import subprocess
import sys

import pytest

from app.server.process import keep_freed_memory

_PAGE_FAULTS = """
import resource, sys
if sys.argv[1] == "kept":
    from app.server.process import keep_freed_memory
    keep_freed_memory()
def faults():
    for _ in range(100):
        blocks = [bytearray(b"x" * 300_000) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
faults()
print(-faults() + faults())
"""


def page_faults(mode: str) -> int:
    command = [sys.executable, "-c", _PAGE_FAULTS, mode]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603 - our own program


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_blocks_of_the_size_of_an_answer_are_not_asked_for_again() -> None:
    assert page_faults("kept") < 100
    assert page_faults("default") > 1_000


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    keep_freed_memory()
