"""Preemption over random clusters: suppositions are answered as by mirrors that are really so, and leave no trace."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.framework.evaluation import Failure, FreshEvaluation
from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import PodDisruptionBudget
from core.objects.labels import parse_selector
from core.objects.pod import Pod
from core.preemption import dry_run, most_important_first, split_by_violation
from core.profile import Profile, full_profile
from tests.core.mirror.audit import audit
from tests.depth import tries
from tests.properties import scheduling_pool as pool
from tests.properties.equivalence_machine import Rendered, rendered

PROFILE: Final[Profile] = full_profile()
_NODES: Final = [node for node in pool.NODES if node.name in pool.NODE_NAMES[:3] and not node.unschedulable]
_FITTING: Final = frozenset({Code.SUCCESS, Code.SKIP})
_BUDGETS: Final = tuple(
    PodDisruptionBudget(namespace, app, parse_selector({"app": app}, ()), disruptions_allowed=allowed)
    for namespace, app, allowed in (("a", "x", 0), ("a", "y", 1), ("b", "x", 2))
)
templates = st.sampled_from(pool.PODS)


@dataclass(frozen=True)
class World:
    """A small cluster, what is in it but pods, and a pod that asks for room."""

    others: Sequence[Object]
    pods: Sequence[Pod]
    incoming: Pod

    def mirror(self, gone: Collection[str] = ()) -> ClusterMirror:
        """Make the cluster, some of its pods (uids) never having been there."""
        mirror = ClusterMirror()
        for each in (*self.others, *(pod for pod in self.pods if pod.uid not in gone)):
            mirror.apply(ClusterEvent("Add", each))
        return mirror


@st.composite
def worlds(draw: st.DrawFn, phases: Sequence[str] = ("Running",)) -> World:
    """Draw a cluster whose nodes are rather full."""
    others: list[Object] = [*pool.NAMESPACE_STATES[:2], *_BUDGETS]
    others += draw(st.lists(st.sampled_from(_NODES), min_size=3, max_size=5))
    others += draw(st.lists(st.sampled_from(pool.OTHERS), max_size=12))
    pods = []
    for number in range(draw(st.integers(4, 9))):
        template, node = draw(templates), draw(st.sampled_from(pool.NODE_NAMES[:2]))
        placed = pool.placed(template, (f"p{number}", f"p{number}"), node, draw(st.sampled_from(phases)))
        time = draw(st.sampled_from(("", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")))
        pods.append(replace(placed, priority=draw(st.integers(-1, 4)), start_time=time))
    asking = replace(pool.incoming(draw(templates), "q", ""), priority=3)
    return World(others, pods, asking)


def responses(mirror: ClusterMirror, pod: Pod) -> Rendered:
    """Ask all plugins afresh, about all nodes by name, as slots may be others."""
    return rendered(PROFILE, FreshEvaluation(mirror, pod), mirror.batch(sorted(mirror.nodes.slots)))


@settings(max_examples=tries(default=150, full=300))
@given(world=worlds(phases=("Running", "Terminating")), data=st.data())
def test_a_supposition_is_answered_as_by_a_mirror_without_the_pods_and_leaves_no_trace(
    world: World, data: st.DataObject
) -> None:
    mirror = world.mirror()
    placed = [pod for pod in world.pods if pod.node_name in mirror.nodes.slots]
    if data.draw(st.booleans()):  # else what plugins derive is made of the supposed state
        responses(mirror, world.incoming)
    before = mirror.dump(), list(mirror.placed_pods())
    with mirror.fork() as gone:
        chosen = data.draw(st.permutations(placed)) if placed else []
        for pod in chosen:
            gone.remove(pod)
        away = {pod.uid for pod in chosen}
        for uid in sorted(away)[: data.draw(st.integers(0, len(away)))]:
            gone.put_back(uid)
            away.remove(uid)
        assert responses(mirror, world.incoming) == responses(world.mirror(away), world.incoming)

    assert (mirror.dump(), list(mirror.placed_pods())) == before
    assert not audit(mirror)
    assert responses(mirror, world.incoming) == responses(world.mirror(), world.incoming)


def fits(world: World, node: str, gone: Collection[str]) -> bool:
    """Ask a mirror of its own."""
    mirror = world.mirror(gone)
    found = FreshEvaluation(mirror, world.incoming).filtered(PROFILE.filters, mirror.batch([node]))
    return found.status(0).code in _FITTING


def naive_victims(world: World, node: str) -> list[str] | None:
    """Find the victims with a new mirror at every step. None if there are none that help."""
    potential = [pod for pod in world.pods if pod.node_name == node and pod.priority < world.incoming.priority]
    gone = {pod.uid for pod in potential}
    if not gone or not fits(world, node, gone):
        return None
    violating, others = split_by_violation(
        most_important_first(potential), _BUDGETS, stop_at_violation=world.mirror().rules.budgets_stop_at_violation
    )
    for pod in (*violating, *others):
        if fits(world, node, gone - {pod.uid}):
            gone.remove(pod.uid)
    return [pod.uid for pod in most_important_first([*violating, *others]) if pod.uid in gone] or None


@settings(max_examples=tries(default=100, full=200))
@given(world=worlds())
def test_the_victims_are_those_that_mirrors_made_for_every_step_would_find(world: World) -> None:
    mirror = world.mirror()
    names = sorted(mirror.nodes.slots)
    found = dry_run(mirror, PROFILE.filters, world.incoming, names)
    rendered_victims = [None if isinstance(each, Failure) else [pod.uid for pod in each.pods] for each in found]
    assert rendered_victims == [naive_victims(world, name) for name in names]
