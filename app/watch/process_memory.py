"""The memory of this process, and the limit at which the kernel kills it."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUPS: Final = Path("/proc/self/cgroup")
_OWN_PAGES: Final = Path("/proc/self/statm")


class MemoryLimit(NamedTuple):
    """The limit in bytes, and its source."""

    bytes: int
    source: str


def memory_limit(cgroups: Path = _CGROUPS, own_cgroups: Path = _OWN_CGROUPS) -> MemoryLimit:
    """Return the lowest limit of the process's cgroups, or the machine's memory if that is less.

    The machine's memory counts, because the kernel also kills processes when it is used up.
    """
    machine = MemoryLimit(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the memory of the machine")
    limits = [MemoryLimit(each, "the limit of the cgroup") for each in _limits(cgroups, own_cgroups)]
    return min([machine, *limits])


def resident_bytes(own_pages: Path = _OWN_PAGES) -> int:
    """Return the memory of the process in bytes, without swap and mapped files. 0 if unknown."""
    try:
        return int(own_pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def give_back_freed_memory() -> bool:
    """Make glibc return free memory to the system. Return False without free memory, or without glibc."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))


def _limits(cgroups: Path, own_cgroups: Path) -> Iterator[int]:
    """Yield the limits of the process's cgroups and of all their parents, for versions 1 and 2 (cgroups(7))."""
    try:
        lines = own_cgroups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _upwards(cgroups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _upwards(cgroups / "memory", path, "memory.limit_in_bytes")


def _upwards(mounted: Path, path: str, name: str) -> Iterator[int]:
    # In a container the path may be the host's. Only its end is visible then, mounted as the root.
    folder = PurePosixPath(path.lstrip("/"))
    for each in (folder, *folder.parents):
        try:
            yield int((mounted / each / name).read_text())
        except (OSError, ValueError):  # the file is missing, or has `max`
            continue
