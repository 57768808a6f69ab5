"""The law of suppositions: plugins answer as over a mirror that is really so, and afterwards as if nobody had asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from core.diagnosis.diagnosis import Diagnosis
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Object
from core.framework.evaluation import Evaluation
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.labels import EVERYTHING, Selector, parse_selector
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins import PLUGINS
from core.profile import Profile, full_profile, parse_profile
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.core.mirror.audit import audit, match_counts, node_generations, owner_counts
from tests.depth import tries
from tests.properties import scheduling_pool as pool
from tests.properties.equivalence_machine import Afresh, Rendered, rendered

FULL: Final[Profile] = full_profile()
EVERY_PLUGIN: Final[Profile] = parse_profile(",".join(PLUGINS), {"ServiceAffinity": {"affinity_labels": (pool.ZONE,)}})
_NAMES: Final = (*pool.NODE_NAMES, pool.FOREIGN)
_ZONE_A: Final = parse_selector({pool.ZONE: "a"}, ())
templates = st.sampled_from(pool.PODS)
phases = st.sampled_from(("Running", "Running", "Terminating"))


@dataclass(frozen=True)
class World:
    """A small cluster of which some nodes are not known, and two pods that are asked about."""

    objects: Sequence[Object]
    watched: Sequence[Pod]
    assumed: Sequence[Pod]
    partition: Selector
    incoming: Sequence[Pod]

    def mirror(self) -> ClusterMirror:
        """Make the cluster."""
        mirror = ClusterMirror()
        mirror.set_partition_selector(self.partition)
        for each in (*self.objects, *self.watched):
            mirror.apply(ClusterEvent("Add", each))
        for pod in self.assumed:
            mirror.assume(pod, pod.node_name, 0.0)
        return mirror


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a cluster; some pods wait for nodes that are not known."""
    known = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4, unique=True))
    objects: list[Object] = [*pool.NAMESPACE_STATES[:2], *(draw(nodes_named(name)) for name in known)]
    objects += draw(st.lists(st.sampled_from(pool.OTHERS), max_size=12))
    pods = []
    for number in range(draw(st.integers(0, 8))):
        node = draw(st.sampled_from((*known, *known, *_NAMES)))
        pods.append(pool.placed(draw(templates), (f"p{number}", f"p{number}"), node, draw(phases)))
    seen = draw(st.integers(0, len(pods)))
    incoming = [pool.incoming(draw(templates), name, draw(st.sampled_from(("", "rs-1")))) for name in ("q", "r")]
    return World(objects, pods[:seen], pods[seen:], draw(st.sampled_from((EVERYTHING, EVERYTHING, _ZONE_A))), incoming)


def nodes_named(name: str) -> st.SearchStrategy[Node]:
    """Draw a state of a node."""
    return st.sampled_from([node for node in pool.NODES if node.name == name])


class Twin:
    """A mirror to which everything really happens that is supposed of another."""

    def __init__(self, mirror: ClusterMirror, forked: Fork, data: st.DataObject) -> None:
        self.mirror = mirror
        self._forked = forked
        self._data = data
        self._gone: dict[str, Pod] = {}
        self._lost: set[str] = set()  # nodes
        self._placed = 0

    def savepoint(self) -> int:
        """Set a savepoint in the supposition."""
        self._gone.clear()  # for they cannot be put back
        return self._forked.savepoint()

    def step(self) -> None:
        """Suppose one thing, and let it happen here."""
        steps = (self.remove, self.remove, self.put_back, self.place, self.move, self.add, self.change, self.lose)
        self._data.draw(st.sampled_from(steps))()

    def remove(self) -> None:
        """Take away any pod that is on a node, supposed ones as well."""
        there = [pod for _, pod in self.mirror.placed_pods()]
        if there:
            pod = self._data.draw(st.sampled_from(there))
            self._forked.remove(pod)
            self._gone[pod.uid] = pod
            self.mirror.apply(ClusterEvent("Delete", pod))

    def put_back(self) -> None:
        """Let one of those be back that are gone, if its node is not."""
        there = sorted(uid for uid, pod in self._gone.items() if pod.node_name not in self._lost)
        if there:
            pod = self._gone.pop(self._data.draw(st.sampled_from(there)))
            self._forked.put_back(pod.uid)
            self.mirror.apply(ClusterEvent("Add", pod))

    def place(self) -> None:
        """Place a pod that was never there."""
        self._placed += 1
        uid = f"s{self._placed}"
        self._put(pool.placed(self._data.draw(templates), (uid, uid), "", self._data.draw(phases)))

    def move(self) -> None:
        """Place one of those that are gone, as it was or as another one."""
        if self._gone:
            pod = self._gone.pop(self._data.draw(st.sampled_from(sorted(self._gone))))
            if self._data.draw(st.booleans()):
                identity = (pod.name, pod.uid)
                pod = pool.placed(self._data.draw(templates), identity, "", self._data.draw(phases))
            self._put(pod)

    def add(self) -> None:
        """Add a node."""
        unknown = [name for name in _NAMES if name not in self.mirror.nodes.slots and name not in self._lost]
        if unknown:
            node = self._data.draw(nodes_named(self._data.draw(st.sampled_from(unknown))))
            self._forked.add_node(node)
            self.mirror.apply(ClusterEvent("Add", node))

    def lose(self) -> None:
        """Remove a node, supposed ones as well, but not the last one. Its pods wait for it to come back."""
        known = sorted(self.mirror.nodes.slots)
        if len(known) > 1:
            name = self._data.draw(st.sampled_from(known))
            self._forked.remove_node(name)
            self._lost.add(name)
            node = self.mirror.nodes.infos[name].node
            assert node is not None
            self.mirror.apply(ClusterEvent("Delete", node))

    def change(self) -> None:
        """Let a node have another state."""
        name = self._data.draw(st.sampled_from(sorted(self.mirror.nodes.slots)))
        node = self._data.draw(nodes_named(name))
        self._forked.change_node(node)
        self.mirror.apply(ClusterEvent("Add", node))

    def _put(self, pod: Pod) -> None:
        name = self._data.draw(st.sampled_from(sorted(self.mirror.nodes.slots)))
        self.mirror.apply(ClusterEvent("Add", self._forked.place(pod, name)))


def responses(mirror: ClusterMirror, pod: Pod, evaluation: Evaluation | None = None) -> tuple[Rendered, list[object]]:
    """Return what each plugin says afresh, or what an evaluation says, and what filter and prioritize would say."""
    batch = mirror.batch(sorted(mirror.nodes.slots))  # by name, as slots may be others
    requested = evaluation or Afresh(mirror, pod, batch)
    found = filter_nodes(EVERY_PLUGIN, requested, batch)
    statuses = [found.status(at) for at in range(len(batch))]
    return rendered(EVERY_PLUGIN, requested, batch), [
        *batch.names,
        *statuses,
        *score_nodes(FULL, requested, batch).tolist(),
    ]


def counted(mirror: ClusterMirror, pod: Pod) -> list[tuple[str, ...]]:
    """Return who is named as what inter-pod affinity terms count, and where."""
    decision = Diagnosis(FULL, mirror, pod, mirror.batch(sorted(mirror.nodes.slots)))
    found: list[tuple[str, ...]] = []
    for term in decision.terms:
        what = (term.direction.value, term.rule.value, term.topology_key, term.selects)
        for value_id, number in zip(*(each.tolist() for each in term.counts()), strict=True):
            assert term.count(value_id) == number
            named = term.named(value_id, number, decision.search)
            assert named  # fewer than are counted, where a pod has the same term twice
            found += [(*what, term.value(value_id), str(number), each.pod, each.node) for each in named]
    return sorted(found)


def state(mirror: ClusterMirror) -> list[object]:
    """Return all that anybody can see of a mirror, in the order in which it is shown."""
    return [
        mirror.dump(),
        audit(mirror),
        dict(mirror.assumed),
        list(mirror.pods.rows.items()),
        mirror.pods.slot_of_row[list(mirror.pods.rows.values())].tolist(),
        list(mirror.nodes),
        list(mirror.nodes.infos),
        mirror.nodes.extent,
        node_generations(mirror.nodes),
        owner_counts(mirror),
        [[*mirror.objects(kind).items()] for kind in dict.fromkeys(type(each) for each in pool.OTHERS)],
    ]


@settings(max_examples=tries(default=150, full=300))
@given(world=worlds(), data=st.data())
def test_what_is_supposed_is_answered_as_if_it_had_happened_and_leaves_nothing_behind(
    world: World, data: st.DataObject
) -> None:
    mirror, twin = world.mirror(), world.mirror()
    cache = EquivalenceCache(mirror, EVERY_PLUGIN.plugins, CacheOptions(mode="spec"))
    generation = mirror.generation
    if data.draw(st.booleans()):  # else what plugins derive is made of the supposed state
        for pod in world.incoming:
            responses(mirror, pod, cache.evaluation(pod))
    before, counts, changes = state(mirror), match_counts(mirror), cache.validities.now

    with mirror.fork() as forked:
        happening = Twin(twin, forked, data)
        for _ in range(data.draw(st.integers(1, 8))):
            happening.step()
            if data.draw(st.booleans()):
                requested = data.draw(st.sampled_from(world.incoming))
                assert responses(mirror, requested) == responses(twin, requested)
        for pod in world.incoming:
            assert responses(mirror, pod) == responses(twin, pod)
            assert counted(mirror, pod) == counted(twin, pod)

    assert mirror.generation == generation
    assert state(mirror) == before
    assert {name: counted for name, counted in match_counts(mirror).items() if name in counts} == counts
    assert cache.validities.now == changes
    twin = world.mirror()
    for happens in (None, *data.draw(st.lists(st.sampled_from(pool.NODES), max_size=3))):
        if happens is not None:  # a node that comes may have the slot that a supposed one had
            mirror.apply(ClusterEvent("Add", happens))
            twin.apply(ClusterEvent("Add", happens))
        for pod in world.incoming:
            assert responses(mirror, pod) == responses(twin, pod) == responses(mirror, pod, cache.evaluation(pod))


@settings(max_examples=tries(default=100, full=300))
@given(world=worlds(), data=st.data())
def test_a_cache_that_follows_gives_fresh_results_at_every_step_and_after_every_undo(
    world: World, data: st.DataObject
) -> None:
    mirror = world.mirror()
    cache = EquivalenceCache(mirror, EVERY_PLUGIN.plugins, CacheOptions(mode="spec"))

    def now() -> list[object]:
        found = [responses(mirror, pod) for pod in world.incoming]
        assert found == [responses(mirror, pod, cache.evaluation(pod)) for pod in world.incoming]
        return [*found, *([*map(list, mirror.placed_pods())], [*mirror.nodes.slots], owner_counts(mirror))]

    before, generation, stored = now(), mirror.generation, state(mirror)
    with mirror.fork(cache_follows=True) as forked:
        happening = Twin(world.mirror(), forked, data)
        for _ in range(data.draw(st.integers(0, 4))):
            happening.step()
        then, savepoint = now(), happening.savepoint()
        for _ in range(data.draw(st.integers(1, 6))):
            happening.step()
            if data.draw(st.booleans()):
                now()
        forked.revert_to(savepoint)
        assert now() == then
    assert now() == before
    assert state(mirror) == stored
    assert mirror.generation == generation


@settings(max_examples=tries(default=100, full=300))
@given(world=worlds(), data=st.data())
def test_pods_that_are_placed_and_then_assumed_are_as_if_each_was_assumed(world: World, data: st.DataObject) -> None:
    mirror, twin = world.mirror(), world.mirror()
    cache = EquivalenceCache(mirror, EVERY_PLUGIN.plugins, CacheOptions(mode="spec"))
    names = st.sampled_from(sorted(mirror.nodes.slots))
    with mirror.fork(cache_follows=True) as forked:
        for number in range(data.draw(st.integers(0, 6))):
            savepoint, node = forked.savepoint(), data.draw(names)
            placed = forked.place(pool.placed(data.draw(templates), (f"s{number}", f"s{number}"), ""), node)
            for pod in world.incoming:
                assert responses(mirror, pod) == responses(mirror, pod, cache.evaluation(pod))
            if data.draw(st.booleans()):
                forked.revert_to(savepoint)
            else:
                twin.assume(placed, node, 1.0)
        mirror.assume_placed(forked, 1.0)
    assert state(mirror) == state(twin)
    assert mirror.generation == twin.generation
    for pod in world.incoming:
        assert responses(mirror, pod) == responses(twin, pod) == responses(mirror, pod, cache.evaluation(pod))
