"""What a process may have, as cgroups of both versions and the machine say it, and what it has."""

import os
from mmap import mmap
from pathlib import Path

from app.watch.memory import MemoryLimit, memory_limit, resident_bytes

GIBIBYTE = 1024**3
MACHINE = MemoryLimit(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the memory of the machine")


def limit(folder: Path, own: str, **files: object) -> MemoryLimit:
    """Read cgroups made of files, whose names have `__` for a slash and end at `_of` a file."""
    for name, value in files.items():
        path = folder / name.replace("__", "/").replace("memory_max", "memory.max")
        path = path.with_name(path.name.replace("limit_in_bytes", "memory.limit_in_bytes"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (folder / "own").write_text(own)
    return memory_limit(folder, folder / "own")


def test_without_any_limit_the_memory_of_the_machine_is_the_limit(tmp_path: Path) -> None:
    assert memory_limit(tmp_path, tmp_path / "nowhere") == MACHINE
    assert limit(tmp_path, "0::/\n", memory_max="max") == MACHINE
    assert limit(tmp_path, "4:memory:/\n", memory__limit_in_bytes=2**63 - 4096) == MACHINE


def test_a_container_sees_its_own_limit_at_the_root(tmp_path: Path) -> None:
    assert limit(tmp_path, "0::/\n", memory_max=GIBIBYTE) == (GIBIBYTE, "the limit of the cgroup")


def test_version_1_tells_the_path_of_the_host_and_mounts_the_container(tmp_path: Path) -> None:
    own = "5:cpu,cpuacct:/kubepods/x\n4:memory:/kubepods/x\n"
    assert limit(tmp_path, own, memory__limit_in_bytes=GIBIBYTE).bytes == GIBIBYTE


def test_of_nested_limits_the_lowest_counts(tmp_path: Path) -> None:
    told = limit(tmp_path, "0::/a/b\n", a__b__memory_max="max", a__memory_max=GIBIBYTE, memory_max=2 * GIBIBYTE)
    assert told.bytes == GIBIBYTE
    assert limit(tmp_path, "0::/a/b\n", a__b__memory_max=1000).bytes == 1000


def test_what_the_process_holds_is_told_in_bytes(tmp_path: Path) -> None:
    before = resident_bytes()
    size = 64 * 1024 * 1024
    with mmap(-1, size) as kept:  # pages of its own, whatever the process has freed and kept
        kept.write(bytes(1024) * (size // 1024))
        held = resident_bytes() - before
    assert before > 1024 * 1024
    assert held > size // 2
    assert resident_bytes(tmp_path / "nowhere") == 0
