"""The cache: classes by key, bounded by bytes, and what it counts."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.equivalence import classes
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.classes import ENTRY_BYTES
from core.equivalence.rows import ROW_BYTES
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, Status
from core.framework.invalidation import Scope
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Namespace
from core.objects.pod import Pod
from tests.core.equivalence.said_plugin import SaidPlugin, failing, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, tell

FULL: Final = failing("Insufficient cpu")
ONE_CLASS: Final = ENTRY_BYTES + ROW_BYTES + 16
"""A class with one row over the fewest slots that there are."""


def of_class(name: str) -> Pod:
    """Make a pod of the class of this name."""
    return Pod(name, "default", name, labels={"class": name})


class Asked:
    """A cache over three nodes and one plugin, asked by class."""

    def __init__(self, max_bytes: int = 10**6, mirror: ClusterMirror | None = None) -> None:
        self.mirror = mirror or mirror_of(node("a"), node("b"), node("c"))
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.plugin = SaidPlugin(invalidated_by=rules)
        self.cache = EquivalenceCache(self.mirror, [self.plugin], CacheOptions(mode="spec", max_bytes=max_bytes))

    def ask(self, name: str) -> Sequence[Status]:
        found = statuses(self.cache.evaluation(of_class(name)), self.plugin, whole(self.mirror))
        assert self.cache.nbytes <= self.cache.max_bytes
        assert self.cache.nbytes == sum(entry.weigh() for entry in self.cache)
        return found

    def classes(self) -> list[str]:
        """Name the classes that are there, the one asked about least recently first."""
        return [entry.first_pod.removeprefix("default/") for entry in self.cache]


# Bounded by bytes.


def test_the_class_that_was_asked_about_least_recently_goes_first() -> None:
    asked = Asked(max_bytes=3 * ONE_CLASS)
    for name in "abcad":
        asked.ask(name)

    assert asked.classes() == ["c", "a", "d"]
    assert asked.cache.statistics.evictions == 1


def test_one_off_classes_do_not_let_the_cache_grow() -> None:
    asked = Asked(max_bytes=10 * ONE_CLASS)
    for number in range(300):
        asked.ask(f"p{number}")

    assert len(asked.cache) == 10
    assert asked.cache.statistics.evictions == 290


@pytest.mark.parametrize("max_bytes", [0, ONE_CLASS - 1])
def test_a_class_that_is_larger_than_the_budget_is_answered_and_not_kept(max_bytes: int) -> None:
    asked = Asked(max_bytes=max_bytes)
    asked.plugin.said = {"b": FULL}
    for _ in range(2):
        assert asked.ask("a") == [SUCCESS, FULL, SUCCESS]

    assert (len(asked.cache), asked.cache.nbytes) == (0, 0)
    assert asked.cache.statistics.hits == 0


def test_long_fields_of_a_pod_weigh_as_much_and_make_room_by_evicting_classes() -> None:
    asked = Asked(max_bytes=500_000)
    asked.ask("a")
    for number in range(20):
        before, labels = asked.cache.nbytes, {f"key-{each:04d}": f"{number} {'x' * 20}" for each in range(1000)}
        asked.cache.evaluation(replace(of_class("a"), labels=labels))
        assert number or asked.cache.nbytes - before > 4 * 20_000

    assert 0 < len(asked.cache) < 10
    assert asked.cache.nbytes <= 500_000


def test_a_class_that_comes_back_says_that_it_was_evicted() -> None:
    asked = Asked(max_bytes=ONE_CLASS)
    for name in "aba":
        asked.ask(name)

    assert asked.cache.statistics.misses == {"NEW_CLASS": 6, "EVICTED": 3}
    asked.ask("c")
    assert asked.cache.statistics.misses == {"NEW_CLASS": 9, "EVICTED": 3}


# Slots.


# Which class.


def test_a_pod_without_a_class_is_answered_afresh() -> None:
    mirror = mirror_of(node("a"))
    plugin = SaidPlugin()
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="controller"))
    for said in ({}, {"a": FULL}):
        plugin.said = said
        evaluation = cache.evaluation(of_class("a"))
        assert isinstance(evaluation, FreshEvaluation)
        assert statuses(evaluation, plugin, whole(mirror)) == [said.get("a", SUCCESS)]
        assert cache.finish(evaluation) == "none"

    assert cache.statistics.questions == {"none": 2}
    assert (len(cache), cache.nbytes, cache.statistics.misses) == (0, 0, {})


def test_classes_whose_hashes_collide_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "equivalence_hash", lambda _key: 0)
    asked = Asked()
    expected = {}
    for name, status in (("a", FULL), ("b", SUCCESS), ("c", failing("tainted"))):
        asked.plugin.said = {"a": status}
        expected[name] = asked.ask(name)
    asked.plugin.said = {"a": failing("of no class")}

    assert {name: asked.ask(name) for name in expected} == expected
    assert [entry.hash for entry in asked.cache] == [0, 0, 0]
    assert asked.cache.statistics.hits == 9


# What is counted.


def test_cells_are_counted_by_why_they_were_missing() -> None:
    asked = Asked()
    asked.plugin.invalidated_by += (when(Pod, Scope.COUNTERS),)
    asked.cache = EquivalenceCache(asked.mirror, [asked.plugin], CacheOptions(mode="spec"))
    asked.ask("a")
    assert asked.cache.statistics.misses == {"NEW_CLASS": 3}

    tell(asked.mirror, "Add", Pod("x", "default", "x", node_name="b"))
    asked.ask("a")
    assert asked.cache.statistics.misses == {"NEW_CLASS": 3, "NODE_CHANGED": 1}

    tell(asked.mirror, "Update", Namespace("n", {"a": "b"}))
    asked.ask("a")
    assert asked.cache.statistics.misses == {"NEW_CLASS": 3, "NODE_CHANGED": 1, "CLUSTER_CHANGED": 3}

    tell(asked.mirror, "Delete", Pod("x", "default", "x", node_name="b"))
    asked.plugin.version = 1
    asked.ask("a")
    assert asked.cache.statistics.misses == {
        "NEW_CLASS": 3,
        "NODE_CHANGED": 1,
        "CLUSTER_CHANGED": 3,
        "COUNTERS_CHANGED": 3,
    }
    assert asked.cache.statistics.hits == 2


def test_questions_are_counted_by_how_they_were_answered() -> None:
    asked = Asked()
    sources = []
    for names in (("a",), ("a",), ("a", "b")):
        evaluation = asked.cache.evaluation(of_class("a"))
        statuses(evaluation, asked.plugin, asked.mirror.batch(names))
        sources.append(asked.cache.finish(evaluation))

    (made,) = asked.cache
    assert sources == [f"{word} {made.hash:016x}" for word in ("miss", "hit", "partial")]
    assert asked.cache.statistics.questions == {"miss": 1, "hit": 1, "partial": 1}


def test_a_class_counts_its_own_questions_and_cells() -> None:
    asked = Asked()
    for name in "aba":
        asked.ask(name)

    figures = {entry.first_pod: (entry.questions, entry.hits, entry.misses) for entry in asked.cache}
    assert figures == {"default/b": (1, 0, 3), "default/a": (2, 3, 3)}


def test_clearing_drops_all_classes_and_keeps_the_totals() -> None:
    asked = Asked()
    asked.ask("a")
    asked.cache.clear()
    assert (len(asked.cache), asked.cache.nbytes) == (0, 0)

    asked.plugin.said = {"a": FULL}
    assert asked.ask("a") == [FULL, SUCCESS, SUCCESS]
    assert asked.cache.statistics.misses == {"NEW_CLASS": 6}
    assert asked.cache.statistics.evictions == 0


def test_a_class_that_was_cleared_away_does_not_weigh_any_more() -> None:
    asked = Asked()
    evaluation = asked.cache.evaluation(of_class("a"))
    asked.cache.clear()
    statuses(evaluation, asked.plugin, whole(asked.mirror))

    assert (len(asked.cache), asked.cache.nbytes) == (0, 0)
