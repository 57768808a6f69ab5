"""The cache: classes by key, bounded by bytes, and what it counts."""

from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from core.equivalence import classes
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.classes import ENTRY_BYTES, Classifier
from core.equivalence.rows import ROW_BYTES
from core.events import Object
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, Status
from core.framework.invalidation import Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import MIN_SLOTS
from core.objects.kinds import Namespace
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import PersistentVolumeClaim
from tests.core.decoded import demanding
from tests.core.equivalence.said_plugin import StatedPlugin, failing, statuses, when, whole
from tests.core.mirror.values import mirror_of, node, tell

FULL: Final = failing("Insufficient cpu")
ONE_CLASS: Final = ENTRY_BYTES + ROW_BYTES + 16
"""A class with one row over the fewest slots that there are."""


def of_class(name: str) -> Pod:
    """Make a pod of the class of this name."""
    return Pod(name, "default", name, labels={"class": name})


class Requested:
    """A cache over three nodes and one plugin, asked by class."""

    def __init__(self, max_bytes: int = 10**6, mirror: ClusterMirror | None = None) -> None:
        self.mirror = mirror or mirror_of(node("a"), node("b"), node("c"))
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.plugin = StatedPlugin(invalidated_by=rules)
        self.cache = EquivalenceCache(self.mirror, [self.plugin], CacheOptions(mode="spec", max_bytes=max_bytes))

    def ask(self, name: str) -> Sequence[Status]:
        found = statuses(self.cache.evaluation(of_class(name)), self.plugin, whole(self.mirror))
        assert self.cache.nbytes <= self.cache.max_bytes
        assert self.cache.nbytes == sum(entry.update_size() for entry in self.cache)
        assert self.cache._of_objects == {tuple(map(id, entry.parts)): entry for entry in self.cache}  # noqa: SLF001
        return found

    def classes(self) -> list[str]:
        """Name the classes that are there, the one asked about least recently first."""
        return [entry.first_pod.removeprefix("default/") for entry in self.cache]


# Bounded by bytes.


def test_the_class_that_was_asked_about_least_recently_goes_first() -> None:
    requested = Requested(max_bytes=3 * ONE_CLASS)
    for name in "abcad":
        requested.ask(name)

    assert requested.classes() == ["c", "a", "d"]
    assert requested.cache.statistics.evictions == 1


def test_one_off_classes_do_not_let_the_cache_grow() -> None:
    requested = Requested(max_bytes=10 * ONE_CLASS)
    for number in range(300):
        requested.ask(f"p{number}")

    assert len(requested.cache) == 10
    assert requested.cache.statistics.evictions == 290


@pytest.mark.parametrize("max_bytes", [0, ONE_CLASS - 1])
def test_a_class_that_is_larger_than_the_budget_is_answered_and_not_kept(max_bytes: int) -> None:
    requested = Requested(max_bytes=max_bytes)
    requested.plugin.stated = {"b": FULL}
    for _ in range(2):
        assert requested.ask("a") == [SUCCESS, FULL, SUCCESS]

    assert (len(requested.cache), requested.cache.nbytes) == (0, 0)
    assert requested.cache.statistics.hits == 0


def test_long_fields_of_a_pod_weigh_as_much_and_make_room_by_evicting_classes() -> None:
    requested = Requested(max_bytes=500_000)
    requested.ask("a")
    for number in range(20):
        before, labels = requested.cache.nbytes, {f"key-{each:04d}": f"{number} {'x' * 20}" for each in range(1000)}
        requested.cache.evaluation(replace(of_class("a"), labels=labels))
        assert number or requested.cache.nbytes - before > 4 * 20_000

    assert 0 < len(requested.cache) < 10
    assert requested.cache.nbytes <= 500_000


def test_a_class_that_comes_back_says_that_it_was_evicted() -> None:
    requested = Requested(max_bytes=ONE_CLASS)
    for name in "aba":
        requested.ask(name)

    assert requested.cache.statistics.misses == {"NEW_CLASS": 6, "EVICTED": 3}
    requested.ask("c")
    assert requested.cache.statistics.misses == {"NEW_CLASS": 9, "EVICTED": 3}


# Pods that share the objects of their fields.


def test_a_pod_with_the_objects_of_another_is_of_its_class_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    requested, pod = Requested(), of_class("a")
    requested.cache.evaluation(pod)
    monkeypatch.delattr(Classifier, "key_of")
    requested.cache.evaluation(replace(pod, uid="b", name="b"))
    (entry,) = requested.cache
    assert (entry.first_pod, entry.questions) == ("default/a", 2)


@pytest.mark.parametrize("other", [node("d"), Namespace("n", {}), PersistentVolumeClaim("default", "data")])
def test_the_same_objects_that_refer_to_something_else_are_of_another_class(other: Object) -> None:
    requested, pod = Requested(), of_class("a")
    requested.cache.evaluation(pod)
    tell(requested.mirror, "Add", other)
    requested.plugin.reference = "other"
    requested.cache.evaluation(pod)
    tell(requested.mirror, "Delete", other)
    requested.plugin.reference = None
    requested.cache.evaluation(pod)
    assert [entry.questions for entry in requested.cache] == [1, 2]


def test_pods_with_the_same_ephemeral_volumes_are_each_of_a_class() -> None:
    mirror, plugin = mirror_of(node("a")), StatedPlugin(class_fields=("namespace", "volumes"))
    cache, pod = EquivalenceCache(mirror, [plugin]), replace(of_class("a"), volumes=(PodClaim("a-v", ephemeral=True),))
    for name in "aba":
        cache.evaluation(replace(pod, uid=name, name=name))
    assert [entry.questions for entry in cache] == [1, 2]


def test_a_pod_that_a_plugin_knows_is_not_of_the_class_of_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StatedPlugin, "knows_each", lambda _, __, pod: pod.name == "b")
    requested, pod = Requested(), of_class("a")
    for name in "aba":
        requested.cache.evaluation(replace(pod, uid=name, name=name))
    assert [entry.questions for entry in requested.cache] == [1, 2]


def test_objects_of_an_evicted_class_make_it_again() -> None:
    requested, pods = Requested(max_bytes=ONE_CLASS), [of_class("a"), of_class("b")]
    for pod in (*pods, pods[0]):
        statuses(requested.cache.evaluation(pod), requested.plugin, whole(requested.mirror))
    assert requested.classes() == ["a"]
    assert requested.cache.statistics.misses == {"NEW_CLASS": 6, "EVICTED": 3}


def test_what_no_plugin_reads_of_a_pod_is_kept_with_its_class_only_if_it_is_small() -> None:
    plugin = StatedPlugin(class_fields=("namespace", "demand.images"))
    cache, pod = EquivalenceCache(mirror_of(node("a")), [plugin]), of_class("a")
    small, large = (demanding(pod, origins=(("cpu", length * "x"),)) for length in (300, 100_000))
    for requested, remains in ((large, False), (small, True), (large, False), (small, True)):
        cache.evaluation(requested)
        (entry,) = cache
        assert (requested.demand in entry.parts) is remains
    assert cache.nbytes < 5_000


# Slots.


def test_the_cache_hears_nothing_before_the_first_class_and_knows_the_nodes_that_came_until_then() -> None:
    requested = Requested(mirror=ClusterMirror())
    tell(requested.mirror, "Add", *(node(f"n{number:02d}") for number in range(MIN_SLOTS + 1)))
    assert requested.cache.validities.now == 1
    for _ in range(2):
        assert requested.ask("a") == [SUCCESS] * (MIN_SLOTS + 1)

    assert requested.cache.statistics.hits == MIN_SLOTS + 1
    tell(requested.mirror, "Add", node("a"))
    assert requested.cache.validities.now > 1


# Which class.


def test_a_pod_without_a_class_is_answered_afresh() -> None:
    mirror = mirror_of(node("a"))
    plugin = StatedPlugin()
    cache = EquivalenceCache(mirror, [plugin], CacheOptions(mode="controller"))
    for stated in ({}, {"a": FULL}):
        plugin.stated = stated
        evaluation = cache.evaluation(of_class("a"))
        assert isinstance(evaluation, FreshEvaluation)
        assert statuses(evaluation, plugin, whole(mirror)) == [stated.get("a", SUCCESS)]
        assert cache.finish(evaluation) == "none"

    assert cache.statistics.questions == {"none": 2}
    assert (len(cache), cache.nbytes, cache.statistics.misses) == (0, 0, {})


def test_classes_whose_hashes_collide_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "equivalence_hash", lambda _key: 0)
    requested = Requested()
    expected = {}
    for name, status in (("a", FULL), ("b", SUCCESS), ("c", failing("tainted"))):
        requested.plugin.stated = {"a": status}
        expected[name] = requested.ask(name)
    requested.plugin.stated = {"a": failing("of no class")}

    assert {name: requested.ask(name) for name in expected} == expected
    assert [entry.hash for entry in requested.cache] == [0, 0, 0]
    assert requested.cache.statistics.hits == 9


# What is counted.


def test_cells_are_counted_by_why_they_were_missing() -> None:
    requested = Requested()
    requested.plugin.invalidated_by += (when(Pod, Scope.COUNTERS),)
    requested.cache = EquivalenceCache(requested.mirror, [requested.plugin], CacheOptions(mode="spec"))
    requested.ask("a")
    assert requested.cache.statistics.misses == {"NEW_CLASS": 3}

    tell(requested.mirror, "Add", Pod("x", "default", "x", node_name="b"))
    requested.ask("a")
    assert requested.cache.statistics.misses == {"NEW_CLASS": 3, "NODE_CHANGED": 1}

    tell(requested.mirror, "Update", Namespace("n", {"a": "b"}))
    requested.ask("a")
    assert requested.cache.statistics.misses == {"NEW_CLASS": 3, "NODE_CHANGED": 1, "CLUSTER_CHANGED": 3}

    tell(requested.mirror, "Delete", Pod("x", "default", "x", node_name="b"))
    requested.plugin.version = 1
    requested.ask("a")
    assert requested.cache.statistics.misses == {
        "NEW_CLASS": 3,
        "NODE_CHANGED": 1,
        "CLUSTER_CHANGED": 3,
        "COUNTERS_CHANGED": 3,
    }
    assert requested.cache.statistics.hits == 2


def test_questions_are_counted_by_how_they_were_answered() -> None:
    requested = Requested()
    sources = []
    for names in (("a",), ("a",), ("a", "b")):
        evaluation = requested.cache.evaluation(of_class("a"))
        statuses(evaluation, requested.plugin, requested.mirror.batch(names))
        sources.append(requested.cache.finish(evaluation))

    (made,) = requested.cache
    assert sources == [f"{word} {made.hash:016x}" for word in ("miss", "hit", "partial")]
    assert requested.cache.statistics.questions == {"miss": 1, "hit": 1, "partial": 1}


def test_a_class_counts_its_own_questions_and_cells() -> None:
    requested = Requested()
    for name in "aba":
        requested.ask(name)

    figures = {entry.first_pod: (entry.questions, entry.hits, entry.misses) for entry in requested.cache}
    assert figures == {"default/b": (1, 0, 3), "default/a": (2, 3, 3)}


def test_clearing_drops_all_classes_and_keeps_the_totals() -> None:
    requested = Requested()
    requested.ask("a")
    requested.cache.clear()
    assert (len(requested.cache), requested.cache.nbytes) == (0, 0)

    requested.plugin.stated = {"a": FULL}
    assert requested.ask("a") == [FULL, SUCCESS, SUCCESS]
    assert requested.cache.statistics.misses == {"NEW_CLASS": 6}
    assert requested.cache.statistics.evictions == 0


def test_a_class_that_was_cleared_away_does_not_weigh_any_more() -> None:
    requested = Requested()
    evaluation = requested.cache.evaluation(of_class("a"))
    requested.cache.clear()
    statuses(evaluation, requested.plugin, whole(requested.mirror))

    assert (len(requested.cache), requested.cache.nbytes) == (0, 0)
