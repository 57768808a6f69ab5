"""The law of the cache: at every moment, for every pod and node, the cached answer is the fresh one."""

from typing import ClassVar, Final

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant
from hypothesis.stateful import run_state_machine_as_test as run_machine

from core.equivalence.cache import CacheOptions
from core.framework.evaluation import FreshEvaluation
from core.objects.pod import Pod
from core.plugins import PLUGINS
from core.plugins.in_tree import DeviceSchedulers
from core.profile import Profile, parse_profile
from core.scheduling_cycle import choose_nodes
from tests.depth import tries
from tests.properties.equivalence_machine import EquivalenceMachine
from tests.properties.scheduling_pool import DEVICE_SCHEDULER, ZONE

STREAMS: Final = tries(default=30, full=100)
"""Random lives of a cluster, of 200 events each; KINDRED_TEST_DEPTH sets many more."""

SETTINGS: Final = settings(
    max_examples=STREAMS, stateful_step_count=200, deadline=None, suppress_health_check=list(HealthCheck)
)


class FullProfile(EquivalenceMachine):
    """Every plugin that there is, and the composite."""

    profile: ClassVar[Profile] = parse_profile(
        ",".join((*PLUGINS, "GeneralPredicates")),
        {
            "ServiceAffinity": {"affinity_labels": (ZONE,)},
            "NodeResourcesFit": {"device_schedulers": DeviceSchedulers(frozenset({DEVICE_SCHEDULER}), others=False)},
        },
    )


class TinyCache(FullProfile):
    """A budget for one or two classes, so that classes are evicted while they are in use."""

    options: ClassVar[CacheOptions] = CacheOptions(mode="controller", max_bytes=30_000)


class Choices(EquivalenceMachine):
    """Chooses among all nodes, as `decide` does, so that rankings and stored verdicts give the result.

    Some classes are not requested after each event, so several nodes change between two of their decisions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events = 0

    @invariant()
    def every_cached_response_is_the_fresh_one(self) -> None:
        self.events += 1
        for number, pod in enumerate(self.questions, 1):
            if self.events % number == 0:
                self.choose(pod)

    def choose(self, pod: Pod) -> None:
        """Compare the best nodes for a pod, or why there are none."""
        batch = self.mirror.all_nodes()
        best, verdicts = choose_nodes(self.profile, self.cache.evaluation(pod), batch)
        fresh, of_fresh = choose_nodes(self.profile, FreshEvaluation(self.mirror, pod), batch)
        assert best.tolist() == fresh.tolist(), pod
        if verdicts is not None and of_fresh is not None:
            assert [verdicts.status(at) for at in range(len(batch))] == [
                of_fresh.status(at) for at in range(len(batch))
            ]


class ChoicesOfAllPlugins(Choices):
    """The same by every plugin."""

    profile: ClassVar[Profile] = FullProfile.profile


def test_cached_answers_of_inter_pod_affinity_are_fresh_ones() -> None:
    run_machine(EquivalenceMachine, settings=SETTINGS)


def test_cached_answers_of_all_plugins_are_fresh_ones() -> None:
    run_machine(FullProfile, settings=SETTINGS)


def test_cached_answers_are_fresh_ones_where_classes_are_evicted() -> None:
    run_machine(TinyCache, settings=settings(SETTINGS, max_examples=max(1, STREAMS // 4)))


def test_choices_by_inter_pod_affinity_are_fresh_ones() -> None:
    run_machine(Choices, settings=SETTINGS)


def test_choices_by_all_plugins_are_fresh_ones() -> None:
    run_machine(ChoicesOfAllPlugins, settings=settings(SETTINGS, max_examples=max(1, STREAMS // 4)))
