"""The laws of placing many: every pod gets the node that a plain loop would give it, and nothing is left of it."""

from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Object
from core.framework.evaluation import Evaluation, FreshEvaluation, best_nodes
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.labels import Selector
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from core.profile import full_profile
from core.scheduling_cycle import choose_nodes, filter_nodes, score_nodes
from core.simulation.facts import leave
from core.simulation.lost_nodes import NodeState, cordoned, dead, lose
from core.simulation.orders import FIRST, arrival, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Fate, Placing, Scheduler, finished
from tests.core.simulation.setting import NOTHING_MORE
from tests.depth import tries
from tests.properties import scheduling_pool as pool
from tests.properties.test_what_if import World, state, worlds

PROFILE: Final = full_profile()


@st.composite
def queues(draw: st.DrawFn) -> list[Pod]:
    """Draw pods that wait, several of which are alike, in the order in which a scheduler takes them."""
    waiting: list[Pod] = []
    for number in range(draw(st.integers(1, 4))):
        template, controller = draw(st.sampled_from(pool.PODS)), draw(st.sampled_from(("", "rs-1")))
        waiting += [pool.incoming(template, f"q{number}-{each}", controller) for each in range(draw(st.integers(1, 3)))]
    return arrival(waiting, draw(st.integers(0, 2)))


def naively(
    mirror: ClusterMirror, objects: Sequence[Object], parts: Sequence[Sequence[Pod]], partition: Selector
) -> dict[str, str]:
    """Return pod -> its node, or nothing, where each pod finds a mirror that was made anew, without a cache or a fork.

    Those of a part that have none are tried again after the others, as long as any of them finds one.
    What a plugin reserves is read off a mirror of its own, and is compared with the real plugins by tests/parity.
    """
    present = {(type(each), each.full_name): each for each in objects}
    pods = [pod for _, pod in mirror.placed_pods()]

    def node_of(pod: Pod) -> str:
        fresh = ClusterMirror()
        fresh.set_partition_selector(partition)
        for each in (*present.values(), *pods):
            fresh.apply(ClusterEvent("Add", each))
        batch = fresh.batch(sorted(fresh.nodes.slots))
        evaluation = FreshEvaluation(fresh, pod)
        fitting = (filter_nodes(PROFILE, evaluation, batch).codes == 0).nonzero()[0]
        if not len(fitting):
            return ""
        best = best_nodes(PROFILE.under(fresh.rules).scores, evaluation, batch, fitting)
        name = batch.names[int(best[0])]
        with fresh.fork() as fork:
            placed = fork.place(pod, name)
            for plugin in PROFILE.plugins:
                plugin.reserve(fresh, fork, placed)
            for kind in (PersistentVolume, PersistentVolumeClaim):
                present.update({(kind, name): each for name, each in fresh.objects(kind).items()})
        pods.append(placed)
        return name

    found = dict[str, str]()
    for part in parts:
        left, tried = [*part], 0
        while len(left) != tried:
            tried = len(left)
            found |= {pod.uid: node_of(pod) for pod in left}
            left = [pod for pod in left if not found[pod.uid]]
    return found


def after(world: World, lost: Mapping[str, Node | None], gone: Sequence[Pod]) -> tuple[ClusterMirror, list[Object]]:
    """Return a cluster in which nodes are really lost, with its objects."""
    mirror = world.mirror()
    for pod in gone:
        mirror.apply(ClusterEvent("Delete", pod))
    for name, node in lost.items():
        mirror.apply(ClusterEvent("Delete", known(mirror, name)) if node is None else ClusterEvent("Add", node))
    others = [each for each in world.objects if not isinstance(each, Node)]
    return mirror, [*others, *(node for _, node in mirror.nodes)]


def known(mirror: ClusterMirror, name: str) -> Node:
    node = mirror.nodes.infos[name].node
    assert node is not None
    return node


@settings(max_examples=tries(default=150, full=400))
@given(world=worlds(), queue=queues(), data=st.data())
def test_each_pod_gets_the_node_that_a_plain_loop_gives_it_and_nothing_is_left(
    world: World, queue: list[Pod], data: st.DataObject
) -> None:
    mirror = world.mirror()
    cache = EquivalenceCache(mirror, PROFILE.plugins, CacheOptions(mode="spec"))
    before = state(mirror)
    names = data.draw(st.lists(st.sampled_from(sorted(mirror.nodes.slots)), unique=True, max_size=2))
    state_of_nodes, change = data.draw(st.sampled_from(NodeState)), data.draw(st.sampled_from((cordoned, dead)))
    with mirror.fork(cache_follows=True) as fork:
        gone = [pod for name in names for pod in mirror.pods_on(name)]
        coming = [pod for each in leave(mirror, fork, gone, NOTHING_MORE) if (pod := each.coming) is not None]
        lose(mirror, fork, names, state_of_nodes, change)
        if not mirror.nodes.slots:
            return
        everything = [*arrival(coming, FIRST), *queue]
        scheduler = Scheduler(PROFILE, cache.evaluation)
        placing = Placing(mirror, fork, {DEFAULT_SCHEDULER: scheduler}, ties(mirror, FIRST))
        size = data.draw(st.sampled_from((1, 2, len(everything))))  # what is known of a class lasts from part to part
        parts = [everything[at : at + size] for at in range(0, len(everything), size)]
        outcomes = [each for part in parts for each in finished(placing.place(part))]
        assert [each.pod.uid for each in outcomes] == [pod.uid for pod in everything]
        ours = {each.pod.uid: each.node if each.is_placed else "" for each in outcomes}
    removed = state_of_nodes is NodeState.REMOVED
    lost = {name: None if removed else change(known(world.mirror(), name)) for name in names}
    really, objects = after(world, lost, gone)
    unknown = {each.pod.uid for each in outcomes if each.fate is Fate.UNKNOWN}
    judged = [[pod for pod in part if pod.uid not in unknown] for part in parts]
    assert ours == {**dict.fromkeys(ours, ""), **naively(really, objects, judged, world.partition)}
    assert state(mirror) == before
    batch = mirror.batch(sorted(mirror.nodes.slots))
    for pod in queue:
        fresh = _responses(FreshEvaluation(mirror, pod), batch)
        assert (
            fresh == _responses(cache.evaluation(pod), batch) == _responses(FreshEvaluation(world.mirror(), pod), batch)
        )


def _responses(evaluation: Evaluation, batch: NodeBatch) -> list[object]:
    batch = evaluation.mirror.batch([*batch.names])
    verdicts = filter_nodes(PROFILE, evaluation, batch)
    return [
        [verdicts.status(at) for at in range(len(batch))],
        score_nodes(PROFILE, evaluation, batch).tolist(),
        sorted(batch.names[at] for at in choose_nodes(PROFILE, evaluation, batch)[0].tolist()),
    ]
