"""A rule that is left out makes the cache wrong, which the property test and the shadow check both find."""

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test as run_machine

from core.equivalence.cache import CacheOptions, EquivalenceCache, Mismatch
from core.events import ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import AnyFilter, AnyScore, FilterPlugin, ScorePlugin
from core.mirror.cluster import ClusterMirror
from core.plugins.nodename import NodeName
from core.profile import PLUGINS, Profile
from core.releases import RELEASES, rules_of
from tests.core.equivalence.planted_faults import COUNTERS, FAULTS, Row, plugin_of, rule_names, tell, without
from tests.core.equivalence.said_plugin import whole
from tests.properties.equivalence_machine import EquivalenceMachine, Shown, shown

NEWEST = rules_of(RELEASES[-1])
"""Every rule has a part in its answers."""
ROWS = [pytest.param(row, id=f"{row[0]}-{row[1].replace(' ', '-')}") for row in FAULTS]


def profile_of(plugin: AnyFilter | AnyScore) -> Profile:
    """Enable every side that a plugin has, and another filter, so that there is a chain of them."""
    filters = (NodeName(), plugin) if isinstance(plugin, FilterPlugin) else (NodeName(),)
    scores = ((plugin, 1),) if isinstance(plugin, ScorePlugin) else ()
    return Profile(filters=filters, scores=scores)


class Life:
    """The life of a cluster that shows a fault, told to a cache that has the fault, or not."""

    def __init__(self, row: Row, *, faulty: bool, shadow_share: float = 0.0) -> None:
        self.fault = FAULTS[row]
        plugin = plugin_of(row[0])
        self.profile = profile_of(without(plugin, row[1], self.fault.too) if faulty else without(plugin))
        self.mirror = ClusterMirror(rules=NEWEST)
        self.told: list[Mismatch] = []
        options = CacheOptions(mode="spec", shadow_share=shadow_share)
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins, options, self.told.append)
        tell(self.mirror, [ClusterEvent("Add", each) for each in self.fault.before])

    def goes_on(self) -> None:
        tell(self.mirror, self.fault.then)

    def cached(self) -> Shown:
        return self._shown(self.cache.evaluation(self.fault.asks))

    def fresh(self) -> Shown:
        return self._shown(FreshEvaluation(self.mirror, self.fault.asks))

    def _shown(self, evaluation: Evaluation) -> Shown:
        return shown(self.profile, evaluation, whole(self.mirror))


def test_every_rule_of_every_plugin_is_left_out_once() -> None:
    rules = {(name, rule) for name in PLUGINS for rule in rule_names(plugin_of(name))}

    assert set(FAULTS) == rules


@pytest.mark.parametrize("row", ROWS)
def test_with_all_rules_the_cache_is_right(row: Row) -> None:
    life = Life(row, faulty=False)
    before = life.cached()
    assert before == life.fresh()

    life.goes_on()
    assert life.cached() == life.fresh() != before
    assert life.cached() == life.fresh()


@pytest.mark.parametrize("row", ROWS)
def test_without_the_rule_the_cache_is_wrong(row: Row) -> None:
    life = Life(row, faulty=True)
    assert life.cached() == life.fresh()

    life.goes_on()
    assert life.cached() != life.fresh()


@pytest.mark.parametrize("row", ROWS)
def test_the_shadow_check_finds_that_the_rule_is_left_out(row: Row) -> None:
    life = Life(row, faulty=True, shadow_share=1.0)
    life.cached()
    assert life.cache.statistics.checks
    assert life.told == []

    life.goes_on()
    assert life.cached() == life.fresh(), "the answer is the fresh one"
    assert life.told
    found = [difference for mismatch in life.told for difference in mismatch.differences]
    assert {difference.plugin for difference in found} in ({row[0]}, {row[0], "first failing filter"})
    assert len(life.cache) == 0, "nothing is trusted any more"

    mismatches = life.cache.statistics.mismatches
    assert mismatches == len(found)
    life.cached()
    assert life.cache.statistics.mismatches == mismatches, "told once"


@pytest.mark.parametrize("row", ROWS)
def test_the_shadow_check_has_nothing_to_say_where_all_rules_are_there(row: Row) -> None:
    life = Life(row, faulty=False, shadow_share=1.0)
    life.cached()
    life.goes_on()
    life.cached()

    assert life.cache.statistics.checks
    assert life.cache.statistics.mismatches == 0


# The machine of the property test, on a few plugins with a fault each.

FOUND_BY_MACHINE = [
    ("InterPodAffinity", COUNTERS),
    ("InterPodAffinity", "Node NODE"),
    ("NodeResourcesFit", "Pod NODE"),
    ("TaintToleration", "Node NODE"),
    ("ImageLocality", "Node ALL UPDATE"),
]
QUICKLY = settings(
    max_examples=100,
    stateful_step_count=100,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    report_multiple_bugs=False,
)


@pytest.mark.parametrize("row", FOUND_BY_MACHINE, ids=lambda row: f"{row[0]}-{row[1].replace(' ', '-')}")
def test_the_property_test_finds_that_the_rule_is_left_out(row: Row) -> None:
    class Faulty(EquivalenceMachine):
        profile = profile_of(without(plugin_of(row[0]), row[1]))

    with pytest.raises(AssertionError, match=row[0]):
        run_machine(seed(1)(Faulty), settings=QUICKLY)
