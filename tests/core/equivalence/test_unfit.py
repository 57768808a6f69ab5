"""A class that fits nowhere: what is judged again, and which verdicts are kept."""

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.interface import Code, Status, Verdicts
from core.framework.invalidation import Scope
from core.mirror.node_info import NodeBatch
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes
from tests.core.equivalence.said_plugin import StatedPlugin, failing, when
from tests.core.mirror.values import mirror_of, node, pod, tell

FULL, AWAY, LATE = failing("full"), failing("away"), failing("late")
BROKEN = failing("broken", code=Code.ERROR)


class _Refused:
    """Nodes `a`, `b` and `c`, which a plugin says are full. A second one has nothing to say yet."""

    def __init__(self) -> None:
        self.mirror = mirror_of(node("a"), node("b"), node("c"))
        rules = (when(Pod, Scope.NODE), when(Namespace, Scope.ALL))
        self.first = StatedPlugin("First", invalidated_by=rules)
        self.second = StatedPlugin("Second", invalidated_by=(when(Node, Scope.NODE),))  # pods do not concern it
        self.first.stated = dict.fromkeys("abc", FULL)
        self.profile = Profile((self.first, self.second), ((self.first, 1),))
        self.cache = EquivalenceCache(self.mirror, (self.first, self.second), CacheOptions(mode="spec"))

    def decided(self, batch: NodeBatch | None = None) -> tuple[list[str], Verdicts | None]:
        """Decide for a pod of the class, with the names of the best nodes."""
        for plugin in (self.first, self.second):
            plugin.requested.clear()
        batch = self.mirror.all_nodes() if batch is None else batch
        best, verdicts = choose_nodes(self.profile, self.cache.evaluation(pod("p")), batch)
        return [batch.names[position] for position in best.tolist()], verdicts

    def known(self) -> Verdicts:
        """Decide until nothing is missing, and once more."""
        for _ in range(3):
            self.decided()
        best, verdicts = self.decided()
        assert (best, self.requested) == ([], ([], []))
        assert verdicts is not None
        return verdicts

    @property
    def requested(self) -> tuple[list[list[str]], list[list[str]]]:
        """The batches of the last decision, by plugin."""
        return self.first.requested, self.second.requested


def statuses(verdicts: Verdicts | None) -> list[Status]:
    assert verdicts is not None
    return [verdicts.statuses[code] for code in verdicts.codes.tolist()]


def test_while_nothing_changes_the_verdicts_are_the_same_object() -> None:
    refused = _Refused()
    first = refused.known()
    assert statuses(first) == [FULL] * 3
    assert refused.decided()[1] is first


def test_only_the_node_that_has_changed_is_judged_again_by_the_filters_that_it_concerns() -> None:
    refused = _Refused()
    refused.known()
    refused.first.stated |= {"b": AWAY, "c": AWAY}  # nobody hears of c
    refused.mirror.assume(pod("q"), "b", 0.0)
    assert statuses(refused.decided()[1]) == [FULL, AWAY, FULL]
    assert refused.requested == ([["b"]], [])
    refused.second.stated["a"] = LATE
    del refused.first.stated["a"]
    tell(refused.mirror, "Update", node("a", labels={"now": "here"}))
    refused.mirror.assume(pod("r"), "a", 0.0)
    assert statuses(refused.decided()[1]) == [LATE, AWAY, FULL]
    assert refused.requested == ([["a"]], [["a"]])
    refused.second.stated["b"] = LATE  # it fails after the first one there
    tell(refused.mirror, "Update", node("b", labels={"now": "here"}))
    assert statuses(refused.decided()[1]) == [LATE, AWAY, FULL]


def test_what_concerns_all_nodes_is_judged_again_on_all() -> None:
    refused = _Refused()
    refused.known()
    refused.first.stated = dict.fromkeys("abc", AWAY)
    tell(refused.mirror, "Add", Namespace("new"))
    assert statuses(refused.decided()[1]) == [AWAY] * 3


def test_a_node_that_fits_at_last_is_chosen_and_the_ranking_is_used_again() -> None:
    refused = _Refused()
    refused.known()
    del refused.first.stated["c"]
    refused.mirror.assume(pod("q"), "c", 0.0)
    assert refused.decided()[0] == ["c"]
    refused.first.stated["c"] = FULL
    del refused.first.stated["b"]
    refused.mirror.assume(pod("r"), "b", 0.0)
    refused.mirror.forget(pod("q").uid)
    assert refused.decided() == (["b"], None), "by the ranking"


def test_an_error_is_not_kept() -> None:
    refused = _Refused()
    refused.known()
    refused.first.stated["b"] = BROKEN
    refused.mirror.assume(pod("q"), "b", 0.0)
    for _ in range(2):
        assert statuses(refused.decided()[1]) == [FULL, BROKEN, FULL]
        assert [] != refused.first.requested == [["b"]] * len(refused.first.requested)
    refused.first.stated["b"] = AWAY
    assert statuses(refused.decided()[1]) == [FULL, AWAY, FULL]


def test_verdicts_of_other_nodes_are_not_taken_for_those_of_all() -> None:
    refused = _Refused()
    refused.first.stated["b"] = AWAY
    refused.known()
    assert statuses(refused.decided(refused.mirror.batch(["b", "a"]))[1]) == [AWAY, FULL]
    assert statuses(refused.decided()[1]) == [FULL, AWAY, FULL]
    assert len(statuses(refused.decided(refused.mirror.batch(["b", "stranger"]))[1])) == 2


def test_a_class_that_fits_nowhere_counts_with_its_verdicts() -> None:
    refused = _Refused()
    refused.known()
    (entry,) = refused.cache
    assert entry.unfit is not None
    before = entry.update_size()
    entry.unfit = None
    assert before - entry.update_size() == 3
