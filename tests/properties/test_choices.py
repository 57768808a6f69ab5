"""The law of rankings: after whatever changes, a choice for a class that was asked about before is the fresh one."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import Service
from core.objects.labels import parse_selector
from core.objects.node import Node
from core.objects.pod import Pod
from core.profile import full_profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES
from core.scheduling_cycle import choose_nodes
from tests.builders import NodeBuilder, PodBuilder, expressed, labelled, make_node, make_pod, term
from tests.core.decoded import node_of, pod_of
from tests.depth import tries

_SERVICE: Final = Service("default", "web", parse_selector({"app": "web"}, ()))
Step: TypeAlias = tuple[str, int, int]

_NODES: Final = 6
_WEB: Final = labelled(app="web")


def _small(name: str) -> PodBuilder:
    return make_pod(name).label("app", "web").image("web").requests(cpu="300m", memory="100Mi")


def _node(number: int) -> NodeBuilder:
    node = make_node(f"n{number}").label("zone", "ab"[number % 2]).label("kubernetes.io/hostname", f"n{number}")
    return node.allocatable(cpu="2", memory="4Gi", pods=6)


PODS: Final[Sequence[Pod]] = [
    pod_of(each)
    for each in (
        _small("plain"),
        _small("large").requests(cpu="1500m"),
        _small("port").host_port(80),
        _small("apart").required_anti_affinity(term("kubernetes.io/hostname", _WEB)),
        _small("together").required_affinity(term("zone", _WEB)),
        _small("rather apart").preferred_anti_affinity(10, term("zone", _WEB)),
        _small("rather apart by host").preferred_anti_affinity(10, term("kubernetes.io/hostname", _WEB)),
        _small("rather together by host").preferred_affinity(7, term("kubernetes.io/hostname", _WEB)),
        _small("even").spread("zone", _WEB),
        _small("rather even").spread("zone", _WEB, when="ScheduleAnyway"),
        _small("even everywhere")
        .spread("kubernetes.io/hostname", _WEB, when="ScheduleAnyway", max_skew=2)
        .spread("zone", _WEB, when="ScheduleAnyway"),
        _small("of two minds")
        .preferred_affinity(5, term("zone", _WEB))
        .preferred_anti_affinity(8, term("kubernetes.io/hostname", _WEB)),
        _small("picky").preferred_node_affinity(5, expressed("zone", "In", "a")),
        make_pod("nothing").label("app", "db"),
    )
]
"""Pods of different classes, which mostly fit somewhere."""

_DB: Final = labelled(app="db")
UNFIT: Final[Sequence[Pod]] = [
    pod_of(each)
    for each in (
        _small("too large").requests(cpu="100", memory="3800Mi"),
        _small("large and even").requests(cpu="1500m", memory="3800Mi").spread("zone", _WEB),
        _small("apart by zone").required_anti_affinity(term("zone", _WEB)),
        _small("apart from any").required_anti_affinity(term("kubernetes.io/hostname", expressed("app", "Exists"))),
        _small("near one, apart from another")
        .required_affinity(term("kubernetes.io/hostname", _DB))
        .required_anti_affinity(term("zone", _WEB)),
        _small("large port").host_port(80).requests(cpu="100"),
    )
]
"""Pods that mostly fit nowhere, for reasons that other pods change."""

NODES: Final[Sequence[Sequence[Node]]] = [
    [
        node_of(each)
        for each in (
            _node(number),
            _node(number).taint("a", "", "PreferNoSchedule"),
            _node(number).taint("a", "", "NoSchedule"),
            _node(number).unschedulable(),
            _node(number).label("zone", "c"),
            _node(number).label("kubernetes.io/hostname", "n0"),
            _node(number).without_label("zone"),
            _node(number).allocatable(cpu="1"),
            _node(number).image(500 * 2**20, "web"),
        )
    ]
    for number in range(_NODES)
]
"""The states of each node."""

_places: Final = st.integers(0, _NODES - 1)
STEPS: Final = st.one_of(
    st.tuples(st.just("placed"), st.integers(0, len(PODS) - 1), _places),
    st.tuples(st.just("gone"), st.integers(0, 30), _places),
    st.tuples(st.just("node"), st.integers(0, len(NODES[0]) - 1), _places),
    st.tuples(st.just("no node"), st.just(0), _places),
    st.tuples(st.just("upgraded"), st.integers(0, len(RELEASES) - 1), _places),
    st.tuples(st.just("service"), st.integers(0, 1), _places),
)


class _Life:
    """A cluster, the pods that were placed in it, and a cache that every choice is held against."""

    def __init__(self, *, shadow_share: float = 0.0) -> None:
        self.profile = full_profile()
        self.mirror = ClusterMirror()
        for states in NODES:
            self.mirror.apply(ClusterEvent("Add", states[0]))
        options = CacheOptions(shadow_share=shadow_share)
        self.cache = EquivalenceCache(self.mirror, self.profile.plugins, options)
        self.placed: list[str] = []

    def takes(self, step: Step) -> None:
        """Let one thing happen."""
        what, which, number = step
        if what == "placed":
            uid = f"{len(self.placed)}"
            pod = replace(PODS[which], uid=uid, name=uid)
            self.mirror.assume(pod, f"n{number}", 0.0)
            self.placed.append(uid)
        elif what == "gone" and which < len(self.placed) and self.mirror.is_assumed(self.placed[which]):
            self.mirror.forget(self.placed[which])
        elif what == "node":
            self.mirror.apply(ClusterEvent("Update", NODES[number][which]))
        elif what == "no node":
            self.mirror.apply(ClusterEvent("Delete", NODES[number][0]))
        elif what == "service":  # without one, the default spread constraints count no pods
            self.mirror.apply(ClusterEvent("Delete" if which else "Add", _SERVICE))
        elif what == "upgraded":
            self.mirror.change_rules(rules_of(RELEASES[which]))

    def holds(self, pod: Pod) -> None:
        """Compare a choice from the cache with a fresh one, or why there is none."""
        batch = self.mirror.all_nodes()
        cached, of_cached = choose_nodes(self.profile, self.cache.evaluation(pod), batch)
        fresh, verdicts = choose_nodes(self.profile, FreshEvaluation(self.mirror, pod), batch)
        assert cached.tolist() == fresh.tolist(), pod.name
        assert verdicts is not None
        if of_cached is not None:
            assert [*map(of_cached.status, range(len(batch)))] == [*map(verdicts.status, range(len(batch)))], pod.name


@settings(max_examples=tries(default=150, full=600))
@given(
    st.lists(
        st.tuples(st.lists(STEPS, min_size=1, max_size=4), st.integers(0, len(PODS) - 1)), min_size=10, max_size=40
    )
)
def test_a_choice_is_the_fresh_one_after_every_change(lives: Sequence[tuple[Sequence[Step], int]]) -> None:
    life = _Life()
    for pod in (*PODS, *PODS, *PODS):  # asked about three times, so that each class has a ranking with groups
        life.holds(pod)
    for steps, requested in lives:
        for step in steps:
            life.takes(step)
        life.holds(PODS[requested])
    for pod in PODS:
        life.holds(pod)


@settings(max_examples=tries(default=100, full=600))
@given(st.lists(st.lists(STEPS, min_size=1, max_size=3), min_size=5, max_size=30))
def test_why_a_pod_fits_nowhere_is_the_fresh_reason_after_every_change(lives: Sequence[Sequence[Step]]) -> None:
    life = _Life()
    for steps in lives:
        for step in steps:
            life.takes(step)
        for pod in UNFIT:
            life.holds(pod)


@settings(max_examples=tries(default=10, full=100))
@given(st.lists(STEPS, min_size=5, max_size=20))
def test_the_shadow_check_finds_nothing(steps: Sequence[Step]) -> None:
    life = _Life(shadow_share=1.0)
    for step in steps:
        life.takes(step)
        for pod in PODS[:5]:
            life.holds(pod)
    assert life.cache.statistics.checks > 0
    assert life.cache.statistics.mismatches == 0
