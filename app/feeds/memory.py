"""The memory watermark: compares the memory of the process with its limit, and names the largest kind of objects.

Above the mark nothing more is loaded, and the replica is not ready and reports the cause. A kill by the kernel would
report no cause, and the next start would end the same way. Meanwhile the mirror still serves requests: as usual while
it is complete and recent, and by the stale policy otherwise.
"""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from app.feeds.freshness import ResourceState


class MemoryLimit(NamedTuple):
    """The limit in bytes, and its source."""

    bytes: int
    source: str


def memory_limit(cgroups: Path = Path("/sys/fs/cgroup"), own_cgroups: Path = Path("/proc/self/cgroup")) -> MemoryLimit:
    """Return the lowest limit of the process's cgroups, or the machine's memory if that is less.

    The machine's memory counts, because the kernel also kills processes when it is used up.
    """
    machine = MemoryLimit(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the memory of the machine")
    limits = [MemoryLimit(each, "the limit of the cgroup") for each in _limits(cgroups, own_cgroups)]
    return min([machine, *limits])


def resident_bytes(own_pages: Path = Path("/proc/self/statm")) -> int:
    """Return the memory of the process in bytes, without swap and mapped files. 0 if unknown."""
    try:
        return int(own_pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def private_bytes(rollup: Path = Path("/proc/self/smaps_rollup")) -> int:
    """Return the memory that the process shares with no other, such as its parent, in bytes. 0 if unknown.

    It takes about 10 ms for 340 MB.
    """
    try:
        lines = rollup.read_text("ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024


def give_back_freed_memory() -> None:
    """Make glibc return free memory to the system. No effect with another library."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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


_LOOKED_EVERY: Final = 0.1  # seconds: a measurement takes 20 us
_GIVEN_BACK_EVERY: Final = 10.0  # seconds: giving memory back may take 100 ms
_MAX_KINDS: Final = 3  # that a message names


class MemoryPressureError(Exception):
    """There is too little memory to load more. The message names the largest part."""


class MemoryWatch:
    """Compares the memory of the process with a mark below its limit."""

    def __init__(  # noqa: PLR0913  # a clock and two functions of the system
        self,
        limit: MemoryLimit,
        share: float,
        states: Sequence[ResourceState],
        clock: Callable[[], float],
        *,
        resident: Callable[[], int] = resident_bytes,
        give_back: Callable[[], None] = give_back_freed_memory,
    ) -> None:
        """Set the mark to a share of the limit. A limit of 0 bytes means none."""
        self.limit = limit
        self.mark = int(limit.bytes * share)
        self._full = (self.mark + limit.bytes) // 2
        self._states = states
        self._clock = clock
        self._resident = resident
        self._give_back = give_back
        self._resident_bytes = 0
        self._looked_at = self._given_back_at = float("-inf")

    def is_above(self) -> bool:
        """Return whether the memory of the process is above the mark."""
        return bool(self.mark) and self._look() > self.mark

    def is_full(self) -> bool:
        """Return whether the memory is above the middle between mark and limit. Then even watch events are rejected."""
        return bool(self.mark) and self._look() > self._full

    def room(self) -> int:
        """Return the bytes up to the mark. Without a limit, the largest number."""
        return max(0, self.mark - self._look()) if self.mark else 1 << 62

    def problem(self) -> str:
        """Return the problem, in one line. Empty below the mark."""
        if not self.is_above():
            return ""
        return self._message()

    def _message(self) -> str:
        kinds = sorted(self._states, key=ResourceState.wire_size, reverse=True)[:_MAX_KINDS]
        sizes = "; ".join(
            f"{state.plural}: {state.stored():,} objects, {_size(state.wire_size())} on the wire"
            for state in kinds
            if state.stored()
        )
        return (
            f"memory: {_size(self._resident_bytes)} in use, above the watermark of {_size(self.mark)} "
            f"({self.limit.source}: {_size(self.limit.bytes)}){'; ' if sizes else ''}{sizes}"
        )

    def allowance(self) -> int:
        """Return the bytes that the process may have during a sync that begins now.

        Above the mark, the sync may not raise the present memory. Memory of an earlier sync may be free within the
        process, and only another attempt can show this. So the sync of a cluster that has become smaller succeeds.
        Raises MemoryPressureError near the limit.
        """
        if self.is_full():
            self.refuse(0)
        return max(self.mark, self._resident_bytes)

    def refuse(self, allowed: int) -> None:
        """Raise MemoryPressureError if the memory is above the mark and above `allowed` bytes."""
        # Cheap enough for every object of a list.
        if self.mark and self._look() > max(allowed, self.mark):
            raise MemoryPressureError(self._message())

    def _look(self) -> int:
        now = self._clock()
        if now - self._looked_at >= _LOOKED_EVERY:
            self._resident_bytes = self._resident()
            if self._resident_bytes > self.mark and now - self._given_back_at >= _GIVEN_BACK_EVERY:
                self._given_back_at = now
                self._give_back()  # freed memory may be kept for the next request
                self._resident_bytes = self._resident()
            self._looked_at = now
        return self._resident_bytes


def _size(size: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:  # noqa: PLR2004  # what these units are
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


UNLIMITED: Final = MemoryWatch(MemoryLimit(0, "no limit"), 1.0, (), lambda: 0.0)
"""For a mirror that follows nothing, or without a limit."""
