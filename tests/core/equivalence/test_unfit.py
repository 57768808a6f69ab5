"""A class that fits nowhere: what is judged again, and which verdicts are kept."""

from collections.abc import Collection

import pytest

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.equivalence.rows import STATUS_BYTES
from core.framework.interface import SKIP, SUCCESS, AnyFilter, Code, Status, Verdicts, Versions
from core.framework.invalidation import Scope
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace, Service
from core.objects.node import Node
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes
from tests.core.equivalence.said_plugin import StatedPlugin, failing, when
from tests.core.mirror.values import mirror_of, node, pod, tell

FULL, AWAY, LATE = failing("full"), failing("away"), failing("late")
BROKEN = failing("broken", code=Code.ERROR)
_MANY = 300  # more changes than the cache remembers


class _Counting(StatedPlugin):
    """Reads counters, and says whether only the nodes of changed pods have other verdicts."""

    alike = True

    def __init__(self) -> None:
        rules = (when(Pod, Scope.COUNTERS), when(Namespace, Scope.COUNTERS), when(Node, Scope.NODE))
        super().__init__("Counting", invalidated_by=rules)

    def passes_alike(self, _state: Pod, _before: Versions, _slots: Collection[int]) -> bool:
        """Return what the test says."""
        return self.alike


class _Rejected:
    """Nodes `a`, `b` and `c`, which a plugin says are full. A second one has nothing to say yet."""

    def __init__(self) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.first = StatedPlugin("First", invalidated_by=rules)
        self.second = StatedPlugin("Second", invalidated_by=(when(Node, Scope.NODE),))  # pods do not concern it
        self.first.stated = dict.fromkeys("abc", FULL)
        self.profile = Profile((self.first, self.second), ((self.first, 1),))
        self.cache = EquivalenceCache(self.mirror, (self.first, self.second), CacheOptions(mode="spec"))

    def judged_by(self, *filters: AnyFilter) -> None:
        """Judge by these filters from now on."""
        self.profile = Profile(filters, ())
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins, CacheOptions(mode="spec"))

    def decided(self, batch: NodeBatch | None = None) -> tuple[list[str], Verdicts | None]:
        """Decide for a pod of the class, with the names of the best nodes."""
        for plugin in (self.first, self.second):
            plugin.requested.clear()
        batch = self.mirror.all_nodes() if batch is None else batch
        best, verdicts = choose_nodes(self.profile, self.cache.evaluation(pod("p")), batch)
        return [batch.names[position] for position in best.tolist()], verdicts

    def known(self) -> Verdicts:
        """Decide until nothing is missing, with other pods in between, and once more."""
        for _ in range(3):
            self.mirror.assume(pod(f"known-{len(self.mirror.pods.rows)}"), "a", 0.0)
            self.decided()
        best, verdicts = self.decided()
        assert (best, self.requested) == ([], ([], []))
        assert verdicts is not None
        return verdicts

    @property
    def judged(self) -> list[str]:
        """The nodes that the first plugin judged in the last decision, each once."""
        return [*dict.fromkeys(name for names in self.first.requested for name in names)]

    @property
    def requested(self) -> tuple[list[list[str]], list[list[str]]]:
        """The batches of the last decision, by plugin."""
        return self.first.requested, self.second.requested


def statuses(verdicts: Verdicts | None) -> list[Status]:
    assert verdicts is not None
    return [verdicts.statuses[code] for code in verdicts.codes.tolist()]


@pytest.mark.parametrize("filters", [1, 2])
def test_nodes_that_are_full_are_not_chosen_at_the_next_request_either(filters: int) -> None:
    rejected = _Rejected()
    rejected.profile = Profile((rejected.first, rejected.second)[:filters], ((rejected.first, 1),))
    rejected.first.stated = {}
    for _ in range(3):
        assert rejected.decided()[0] == ["a", "b", "c"]
    rejected.first.stated = dict.fromkeys("abc", FULL)
    for name in "abc":
        rejected.mirror.assume(pod(f"on-{name}"), name, 0.0)
    assert [rejected.decided()[0] for _ in range(3)] == [[]] * 3
    evaluation, batch = rejected.cache.evaluation(pod("p")), rejected.mirror.all_nodes()
    assert evaluation.best(rejected.profile.filters, rejected.profile.scores, batch) is None


def test_while_nothing_changes_the_verdicts_are_the_same_object() -> None:
    rejected = _Rejected()
    first = rejected.known()
    assert statuses(first) == [FULL] * 3
    assert rejected.decided()[1] is first


def test_only_the_node_that_has_changed_is_judged_again_by_the_filters_that_it_concerns() -> None:
    rejected = _Rejected()
    rejected.known()
    rejected.first.stated |= {"b": AWAY, "c": AWAY}  # nobody hears of c
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [FULL, AWAY, FULL]
    assert rejected.requested[1] == []
    assert rejected.judged == ["b"]
    rejected.second.stated["a"] = LATE
    del rejected.first.stated["a"]
    tell(rejected.mirror, "Update", node("a", labels={"now": "here"}))
    rejected.mirror.assume(pod("r"), "a", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, AWAY, FULL]
    assert rejected.judged == ["a", "b"], "b changed before, and its row is brought up to date"
    rejected.second.stated["b"] = LATE  # it fails after the first one there
    tell(rejected.mirror, "Update", node("b", labels={"now": "here"}))
    assert statuses(rejected.decided()[1]) == [LATE, AWAY, FULL]


def test_what_concerns_all_nodes_is_judged_again_on_all() -> None:
    rejected = _Rejected()
    rejected.known()
    rejected.first.stated = dict.fromkeys("abc", AWAY)
    tell(rejected.mirror, "Add", Namespace("new"))
    assert statuses(rejected.decided()[1]) == [AWAY] * 3


def test_a_node_that_fits_at_last_is_chosen_and_the_ranking_is_used_again() -> None:
    rejected = _Rejected()
    rejected.known()
    del rejected.first.stated["c"]
    rejected.mirror.assume(pod("q"), "c", 0.0)
    assert rejected.decided()[0] == ["c"]
    rejected.first.stated["c"] = FULL
    del rejected.first.stated["b"]
    rejected.mirror.assume(pod("r"), "b", 0.0)
    rejected.mirror.forget(pod("q").uid)
    assert rejected.decided() == (["b"], None), "by the ranking"


def test_an_error_is_not_kept() -> None:
    rejected = _Rejected()
    rejected.known()
    rejected.first.stated["b"] = BROKEN
    rejected.mirror.assume(pod("q"), "b", 0.0)
    for _ in range(2):
        assert statuses(rejected.decided()[1]) == [FULL, BROKEN, FULL]
        assert "b" in rejected.judged
        assert "c" not in rejected.judged
    rejected.first.stated["b"] = AWAY
    assert statuses(rejected.decided()[1]) == [FULL, AWAY, FULL]


def test_verdicts_of_other_nodes_are_not_taken_for_those_of_all() -> None:
    rejected = _Rejected()
    rejected.first.stated["b"] = AWAY
    rejected.known()
    assert statuses(rejected.decided(rejected.mirror.batch(["b", "a"]))[1]) == [AWAY, FULL]
    assert statuses(rejected.decided()[1]) == [FULL, AWAY, FULL]
    assert len(statuses(rejected.decided(rejected.mirror.batch(["b", "stranger"]))[1])) == 2


def test_a_class_that_fits_nowhere_counts_with_its_verdicts() -> None:
    rejected = _Rejected()
    rejected.known()
    (entry,) = rejected.cache
    assert entry.unfit is not None
    before = entry.update_size()
    entry.unfit = None
    assert before == rejected.cache.nbytes
    of_nodes, of_text = 3 * (1 + 1), 2 * STATUS_BYTES
    assert before - entry.update_size() == of_nodes + of_text, "a code and the place of a filter by node"


def test_a_changed_node_that_fails_as_before_leaves_the_verdicts_as_they_are() -> None:
    rejected = _Rejected()
    verdicts = rejected.known()
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert rejected.decided()[1] is verdicts
    assert rejected.requested == ([["b"]], [])
    tell(rejected.mirror, "Update", node("c", labels={"now": "here"}))
    assert rejected.decided()[1] is verdicts
    assert rejected.requested == ([], []), "the second one comes after the one that fails"


def test_a_filter_that_fails_before_the_one_that_failed_first_is_seen() -> None:
    rejected = _Rejected()
    rejected.first.stated, rejected.second.stated = {}, dict.fromkeys("abc", LATE)
    assert statuses(rejected.known()) == [LATE] * 3
    rejected.first.stated["b"] = FULL
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, FULL, LATE]
    del rejected.first.stated["b"]
    rejected.mirror.assume(pod("r"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, LATE, LATE]


def test_a_node_that_fails_otherwise_has_its_new_reason_in_verdicts_of_their_own() -> None:
    rejected = _Rejected()
    rejected.first.stated["c"] = AWAY
    before = rejected.known()
    before.text, before.stored = "away, full", (b"first", b"response")
    rejected.first.stated["b"] = AWAY
    rejected.mirror.assume(pod("q"), "b", 0.0)
    after = rejected.decided()[1]
    assert after is not None
    assert (statuses(before), statuses(after)) == ([FULL, FULL, AWAY], [FULL, AWAY, AWAY])
    assert (rejected.judged, rejected.requested[1]) == (["b"], [])
    assert (after.text, after.stored) == (before.text, before.stored), "no reason came or went"
    assert rejected.cache.nbytes == sum(entry.update_size() for entry in rejected.cache)
    rejected.first.stated["a"] = AWAY
    rejected.mirror.assume(pod("r"), "a", 0.0)
    last = rejected.decided()[1]
    assert statuses(last) == [AWAY] * 3
    assert last is not None
    assert (last.text, last.stored) == (None, None)


def test_reasons_that_no_node_has_any_more_are_dropped_at_times() -> None:
    rejected = _Rejected()
    rejected.known()
    for number in range(_MANY):
        rejected.first.stated["b"] = failing(f"reason {number}")
        rejected.mirror.assume(pod(f"q{number}"), "b", 0.0)
        verdicts = rejected.decided()[1]
        assert statuses(verdicts) == [FULL, failing(f"reason {number}"), FULL]
        assert verdicts is not None
        assert len(verdicts.statuses) < _MANY


def test_a_pod_that_every_node_rejects_in_pre_filter_gets_that_reason() -> None:
    rejected = _Rejected()
    counting = StatedPlugin("Counting", invalidated_by=(when(Service, Scope.COUNTERS),))
    counting.pre_filter_rejects = True
    rejected.judged_by(rejected.first, rejected.second, counting)
    rejected.known()
    counting.outcome = AWAY
    tell(rejected.mirror, "Add", Service("m", "new"))
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [AWAY] * 3


def test_a_filter_with_counters_before_the_one_that_fails_is_asked_again() -> None:
    rejected = _Rejected()
    counting = StatedPlugin("Counting", invalidated_by=(when(Pod, Scope.COUNTERS),))
    rejected.judged_by(counting, rejected.first, rejected.second)
    rejected.known()
    counting.version, counting.stated["a"] = 1, LATE
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, FULL, FULL]


def test_the_first_node_that_is_judged_again_between_decisions_is_enough() -> None:
    """Between its requests other pods are placed, and the class is judged in full only at first."""
    rejected = _Rejected()
    rejected.first.stated = dict.fromkeys("abc", FULL)
    for number in range(5):
        rejected.mirror.assume(pod(f"q{number}"), "abc"[number % 3], 0.0)
        rejected.decided()
    assert rejected.requested == ([["b"]], [])


def _rejected_by_counts() -> tuple[_Rejected, _Counting]:
    """Return nodes of which a filter with counters says that pods repel the class."""
    rejected, counting = _Rejected(), _Counting()
    rejected.first.stated, counting.stated = {}, dict.fromkeys("abc", LATE)
    rejected.judged_by(rejected.first, counting)
    assert statuses(rejected.known()) == [LATE] * 3
    counting.requested.clear()
    return rejected, counting


def test_while_counters_are_the_same_the_verdicts_stay() -> None:
    rejected, counting = _rejected_by_counts()
    verdicts = rejected.decided()[1]
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert rejected.decided()[1] is verdicts
    assert counting.requested == []


def test_where_counters_changed_one_node_alone_it_is_judged_again() -> None:
    rejected, counting = _rejected_by_counts()
    verdicts = rejected.decided()[1]
    counting.version = 1
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert rejected.decided()[1] is verdicts
    assert counting.requested == [["b"]]
    rejected.mirror.assume(pod("r"), "a", 0.0)
    assert rejected.decided()[1] is verdicts, "the versions are those of the last time"
    assert counting.requested == [["b"]]
    counting.version, counting.stated["b"] = 2, AWAY
    rejected.mirror.assume(pod("s"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, AWAY, LATE]


def test_where_counters_may_have_changed_any_node_all_are_judged_again() -> None:
    rejected, counting = _rejected_by_counts()
    counting.alike, counting.version, counting.stated["c"] = False, 1, AWAY
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, LATE, AWAY]
    rejected.judged_by(rejected.second, counting)  # the first one has a rule for namespaces, too
    rejected.known()
    counting.alike, counting.version, counting.stated["a"] = True, 2, AWAY
    tell(rejected.mirror, "Add", Namespace("new"))
    assert statuses(rejected.decided()[1]) == [AWAY, LATE, AWAY], "by more than pods"
    rejected.known()
    counting.stated["c"] = LATE
    tell(rejected.mirror, "Update", node("c", labels={"now": "here"}))
    assert statuses(rejected.decided()[1]) == [AWAY, LATE, LATE], "by the node itself"


def test_nodes_keep_a_reason_that_two_filters_give() -> None:
    rejected, counting = _rejected_by_counts()
    rejected.first.stated, counting.stated = {"a": FULL}, {"b": FULL, "c": LATE}
    for number in (1, 2):  # the verdicts are not in the chain, because counters change all the time
        counting.alike, counting.version = False, number
        for name in "abc":
            rejected.mirror.assume(pod(f"{name}{number}"), name, 0.0)
        assert statuses(rejected.decided()[1]) == [FULL, FULL, LATE]
    rejected.first.stated["a"] = AWAY
    rejected.mirror.assume(pod("q"), "a", 0.0)
    assert statuses(rejected.decided()[1]) == [AWAY, FULL, LATE]


def test_a_filter_with_counters_that_had_nothing_to_say_is_asked_again() -> None:
    rejected, counting = _Rejected(), _Counting()
    rejected.judged_by(counting, rejected.first)
    counting.outcome = SKIP
    verdicts = rejected.known()
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert rejected.decided()[1] is verdicts
    counting.outcome, counting.stated["a"] = None, LATE
    rejected.mirror.assume(pod("r"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [LATE, FULL, FULL]
    rejected.known()
    counting.outcome, counting.stated = SKIP, {}
    rejected.mirror.assume(pod("s"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [FULL] * 3


def test_a_node_is_judged_again_if_a_filter_has_raised_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rejected, counting = _rejected_by_counts()
    counting.version, counting.stated["b"] = 1, AWAY
    rejected.mirror.assume(pod("q"), "b", 0.0)
    monkeypatch.setattr(counting, "filter", _raises)
    with pytest.raises(RuntimeError):
        rejected.decided()
    monkeypatch.undo()
    assert statuses(rejected.decided()[1]) == [LATE, AWAY, LATE]


def _raises(*_: object) -> Verdicts:
    raise RuntimeError


def test_work_is_charged_once_if_all_nodes_are_judged_again() -> None:
    class Heavy(_Counting):
        def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Pod | None]:
            mirror.work.spend(60, "spec.affinity", 1)
            return super().pre_filter(mirror, pod)

    rejected, heavy = _Rejected(), Heavy()
    rejected.judged_by(heavy, rejected.first)
    rejected.mirror.work.limit = 100
    rejected.known()
    heavy.alike, heavy.version = False, 1
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [FULL] * 3


def test_to_note_which_filter_fails_first_is_charged_for_nothing() -> None:
    class Heavy(StatedPlugin):
        def filter(self, state: Pod, batch: NodeBatch) -> Verdicts:
            rejected.mirror.work.spend(60, "spec.volumes", 1)
            return super().filter(state, batch)

    rejected, heavy = _Rejected(), Heavy("Heavy", invalidated_by=(when(Pod, Scope.NODE),))
    rejected.first.stated, heavy.stated = {}, dict.fromkeys("abc", FULL)
    rejected.judged_by(heavy, rejected.first)
    rejected.mirror.work.limit = 100
    rejected.known()
    for number, verdict in enumerate((SUCCESS, FULL, FULL)):  # a node fits for a while
        heavy.stated["c"] = verdict
        rejected.mirror.assume(pod(f"q{number}"), "c", 0.0)
        assert bool(rejected.decided()[0]) is (verdict is SUCCESS)


@pytest.mark.parametrize("lasts", [False, True])
def test_a_state_that_lasts_is_made_once(*, lasts: bool) -> None:
    rejected = _Rejected()
    rejected.first.state_lasts = lasts
    rejected.known()
    rejected.first.prepared.clear()
    for number in range(3):
        rejected.mirror.assume(pod(f"q{number}"), "b", 0.0)
        rejected.decided()
        assert rejected.judged == ["b"]
    assert (len(rejected.first.prepared) <= 1) is lasts


def test_changes_that_concern_no_filter_count_for_nothing() -> None:
    rejected = _Rejected()
    rejected.first.stated, rejected.second.stated = {}, dict.fromkeys("abc", LATE)
    rejected.judged_by(rejected.second, rejected.first)
    verdicts = rejected.known()
    for number in range(_MANY):
        rejected.mirror.assume(pod(f"q{number}"), "b", 0.0)
    assert rejected.decided()[1] is verdicts


def test_after_too_many_changes_all_nodes_are_judged_again() -> None:
    rejected = _Rejected()
    rejected.known()
    for number in range(_MANY):
        rejected.mirror.assume(pod(f"q{number}"), "b", 0.0)
    rejected.first.stated["b"] = AWAY
    assert statuses(rejected.decided()[1]) == [FULL, AWAY, FULL]


def test_a_plugin_may_judge_a_node_by_its_slot() -> None:
    rejected, batches = _Rejected(), list[str]()

    class Numbers(StatedPlugin):
        def status_on(self, _state: Pod, slot: int) -> Status:
            batches.append(rejected.mirror.nodes.name(slot))
            return self.stated.get(batches[-1], SUCCESS)

    numbers = Numbers("Numbers", invalidated_by=(when(Pod, Scope.NODE),))
    numbers.stated = dict.fromkeys("abc", FULL)
    rejected.judged_by(numbers, rejected.second)
    verdicts = rejected.known()
    batches.clear()
    rejected.mirror.assume(pod("q"), "b", 0.0)
    assert rejected.decided()[1] is verdicts
    assert batches == ["b"]
    numbers.stated["b"] = AWAY
    rejected.mirror.assume(pod("r"), "b", 0.0)
    assert statuses(rejected.decided()[1]) == [FULL, AWAY, FULL]
