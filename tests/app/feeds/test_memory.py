"""The memory watermark: when it is passed, what is said then, what is done before; and what limits a process has."""

import os
from mmap import mmap
from pathlib import Path

import pytest

from app.feeds.freshness import ResourceState
from app.feeds.memory import (
    UNLIMITED,
    MemoryLimit,
    MemoryPressureError,
    MemoryWatch,
    memory_limit,
    private_bytes,
    resident_bytes,
)
from app.objects.resources import RESOURCES
from core.objects.node import Node
from core.objects.pod import Pod

LIMIT = MemoryLimit(1024**3, "the limit of the cgroup")
MEBIBYTE = 1024**2


class Process:
    """A process whose memory and clock tests move; `kept` is what it gives back when it is asked to."""

    def __init__(self, stored: int) -> None:
        self.stored = stored * MEBIBYTE
        self.retained = 0
        self.now = 1000.0
        self.looked = self.requested = 0

    def resident(self) -> int:
        self.looked += 1
        return self.stored

    def give_back(self) -> None:
        self.requested += 1
        self.stored -= self.retained
        self.retained = 0

    def watch(self, *states: ResourceState, limit: MemoryLimit = LIMIT) -> MemoryWatch:
        """Watch it with the mark at 900 MiB or so."""
        clock = lambda: self.now  # noqa: E731  # a clock
        return MemoryWatch(limit, 0.9, states, clock, resident=self.resident, give_back=self.give_back)


def state_of(kind: type[Pod | Node], objects: int, size: int) -> ResourceState:
    """Return the state of a resource with objects of a size in bytes."""
    state = ResourceState(RESOURCES[kind])
    state.objects, state.read_objects, state.read_bytes = objects, 10, 10 * size
    return state


def test_below_the_mark_there_is_no_problem() -> None:
    watch = Process(900).watch()
    assert (watch.is_above(), watch.is_full(), watch.problem()) == (False, False, "")
    watch.refuse(0)
    assert watch.room() == watch.mark - 900 * MEBIBYTE


def test_above_the_mark_the_kinds_that_take_most_are_named_with_their_sizes() -> None:
    watch = Process(950).watch(state_of(Node, 5_000, 10_000), state_of(Pod, 450_000, 4_500))
    expected = (
        "memory: 950 MiB in use, above the watermark of 922 MiB (the limit of the cgroup: 1.0 GiB); "
        "pods: 450,000 objects, 1.9 GiB on the wire; nodes: 5,000 objects, 48 MiB on the wire"
    )
    assert watch.problem() == expected
    assert (watch.is_full(), watch.room()) == (False, 0)
    with pytest.raises(MemoryPressureError, match=r"^memory: 950 MiB in use"):
        watch.refuse(0)


def test_halfway_from_the_mark_to_the_limit_it_is_full_and_no_sync_begins() -> None:
    assert not Process(970).watch().is_full()
    assert Process(980).watch().is_full()
    with pytest.raises(MemoryPressureError):
        Process(980).watch().allowance()


def test_memory_that_is_only_kept_is_given_back_first_and_not_at_every_look() -> None:
    process = Process(950)
    process.retained = 100 * MEBIBYTE
    watch = process.watch()
    assert not watch.is_above()
    process.stored = 950 * MEBIBYTE
    process.now += 9.0
    assert watch.is_above()
    assert process.requested == 1
    process.now += 2.0
    assert watch.is_above()
    assert process.requested == 2
    process.stored, process.now = 800 * MEBIBYTE, process.now + 1.0
    assert watch.problem() == ""


def test_the_system_is_not_asked_for_every_object_of_a_list() -> None:
    process = Process(100)
    watch = process.watch()
    for _ in range(1_000):
        process.now += 0.001
        watch.refuse(0)
    assert process.looked < 15


def test_without_a_limit_there_is_no_mark() -> None:
    watch = Process(10**9).watch(limit=MemoryLimit(0, "none"))
    assert (watch.is_above(), watch.is_full(), watch.problem()) == (False, False, "")
    assert watch.room() > 10**15
    assert UNLIMITED.room() > 10**15


def test_what_a_sync_gathers_counts_beside_what_is_known_once() -> None:
    state = state_of(Pod, 100, 50)
    state.listed = 300
    assert (state.stored(), state.wire_size()) == (300, 15_000)
    state.listed = 0
    assert (state.stored(), state.wire_size()) == (100, 5_000)
    assert ResourceState(RESOURCES[Pod]).wire_size() == 0


def test_a_sync_may_go_up_to_the_mark_or_to_what_there_was_when_it_began() -> None:
    process = Process(800)
    watch = process.watch()
    assert watch.allowance() == watch.mark
    process.stored, process.now = 950 * MEBIBYTE, process.now + 1.0
    allowed = watch.allowance()
    watch.refuse(allowed)  # what is free within the process may do
    process.stored, process.now = 951 * MEBIBYTE, process.now + 1.0
    with pytest.raises(MemoryPressureError):
        watch.refuse(allowed)


# Limits.


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


def test_the_limit_is_that_of_the_cgroup_or_else_the_memory_of_the_machine(tmp_path: Path) -> None:
    assert memory_limit(tmp_path, tmp_path / "nowhere") == MACHINE
    assert limit(tmp_path, "0::/\n", memory_max="max") == MACHINE
    assert limit(tmp_path, "4:memory:/\n", memory__limit_in_bytes=2**63 - 4096) == MACHINE
    assert limit(tmp_path, "0::/\n", memory_max=GIBIBYTE) == (GIBIBYTE, "the limit of the cgroup")


def test_version_1_tells_the_path_of_the_host_and_mounts_the_container(tmp_path: Path) -> None:
    own = "5:cpu,cpuacct:/kubepods/x\n4:memory:/kubepods/x\n"
    assert limit(tmp_path, own, memory__limit_in_bytes=GIBIBYTE).bytes == GIBIBYTE


def test_of_nested_limits_the_lowest_counts(tmp_path: Path) -> None:
    reported = limit(tmp_path, "0::/a/b\n", a__b__memory_max="max", a__memory_max=GIBIBYTE, memory_max=2 * GIBIBYTE)
    assert reported.bytes == GIBIBYTE
    assert limit(tmp_path, "0::/a/b\n", a__b__memory_max=1000).bytes == 1000


def test_what_the_process_holds_is_told_in_bytes(tmp_path: Path) -> None:
    before, own = resident_bytes(), private_bytes()
    size = 64 * 1024 * 1024
    with mmap(-1, size) as retained:  # pages of its own, whatever the process has freed and kept
        retained.write(bytes(1024) * (size // 1024))
        stored = resident_bytes() - before
        own = private_bytes() - own
    assert before > 1024 * 1024
    assert stored > size // 2
    assert own > size // 2
    assert resident_bytes(tmp_path / "nowhere") == private_bytes(tmp_path / "nowhere") == 0
