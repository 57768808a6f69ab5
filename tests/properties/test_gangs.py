"""The laws of gangs: a placement is one that ordinary filters allow, a proved refusal is right, and nothing is left."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import msgspec
from hypothesis import example, given, note
from hypothesis import strategies as st

from core.events import ClusterEvent, Object
from core.framework.evaluation import FreshEvaluation
from core.gangs.attempts import Shortfall
from core.gangs.placing import Gang
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.groups import Packing, PackingWay
from core.objects.kinds import ControllerRef
from core.objects.labels import Operator, Requirement
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim
from core.profile import full_profile
from core.scheduling_cycle import filter_nodes
from core.simulation.one_pod import place_on
from tests.builders import NodeBuilder, PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of, tell
from tests.core.gangs.gang_setting import HOSTNAME, ZONE, place_gang, placer
from tests.core.gangs.test_volumes import STATIC
from tests.core.mirror.audit import audit

PROFILE: Final = full_profile()
_A: Final = labelled(app="a")
_B: Final = labelled(app="b")
_BARE: Final = make_pod("t")
TEMPLATES: Final[Sequence[PodBuilder]] = (
    _BARE.requests(cpu=1),
    _BARE.requests(cpu=2),
    _BARE.requests(cpu=3),
    _BARE.label("app", "a").requests(cpu=1),
    _BARE.label("app", "a").required_anti_affinity(term(HOSTNAME, _A)),
    _BARE.label("app", "a").required_anti_affinity(term(ZONE, _A)),
    _BARE.label("app", "a").required_anti_affinity(term(ZONE, _B), term(HOSTNAME, _A)),
    _BARE.label("app", "b").requests(cpu=2).required_affinity(term(ZONE, _A)),
    _BARE.label("app", "b").required_affinity(term(HOSTNAME, _A)).requests(cpu=1),
    _BARE.label("app", "b").required_affinity(term(ZONE, _B)),
    _BARE.label("app", "a").spread(ZONE, _A).requests(cpu=1),
    _BARE.label("app", "b").spread(HOSTNAME, _B, max_skew=2),
    _BARE.image("i").host_port(80),
    _BARE.node_selector({ZONE: "b"}).requests(cpu=2),
    _BARE.requests(cpu=1).volume({"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}),
    _BARE.node_selector({ZONE: "b"}).volume({"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}),
)
"""What members are made of."""


class World(msgspec.Struct, frozen=True):
    """A small cluster, and a gang: for each member which template it is of."""

    nodes: Sequence[NodeBuilder]
    placed: Sequence[PodBuilder]
    gang: Sequence[int]
    volumes: Sequence[Sequence[str]] = ()
    """Zones from which each volume can be reached, which waits for a member with a claim."""

    def mirror(self) -> ClusterMirror:
        """Make the cluster."""
        mirror = mirror_of(*self.nodes, *self.placed)
        volumes, claims = map(volume, range(len(self.volumes)), self.volumes), map(claim, range(len(self.gang)))
        objects: tuple[Object, ...] = (STATIC, *volumes, *claims)
        for each in objects:
            mirror.apply(ClusterEvent("Add", each))
        return mirror

    def members(self) -> list[Pod]:
        """Make the gang."""
        return [pod_of(named(TEMPLATES[template], f"m{at}")) for at, template in enumerate(self.gang)]


def volume(number: int, zones: Sequence[str]) -> PersistentVolume:
    there = NodeSelector((NodeSelectorTerm((Requirement(ZONE, Operator.IN, tuple(zones)),)),))
    return PersistentVolume(
        name=f"v{number}", storage_class="static", capacity=1 + number, phase="Available", node_affinity=there
    )


def claim(number: int) -> PersistentVolumeClaim:
    owner = ControllerRef("Pod", f"m{number}", f"default/m{number}")
    return PersistentVolumeClaim(
        namespace="default", name=f"m{number}-data", storage_class="static", requested=1, controller=owner
    )


def named(template: PodBuilder, name: str) -> PodBuilder:
    return replace(template, name=name)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a cluster that is small enough to try everything in, and hardly large enough for the gang."""
    nodes = []
    for number in range(draw(st.integers(1, 6))):
        name = f"n{number}"
        made = make_node(name).label(HOSTNAME, name)
        made = made.allocatable(cpu=draw(st.integers(1, 4)), pods=draw(st.integers(1, 3)), memory="8Gi")
        nodes.append(made.label(ZONE, draw(st.sampled_from("abc"))))
    placed = [
        named(draw(st.sampled_from(TEMPLATES)), f"p{number}").on(draw(st.sampled_from(nodes)).name)
        for number in range(draw(st.integers(0, 3)))
    ]
    kinds = draw(st.lists(st.integers(0, len(TEMPLATES) - 1), min_size=1, max_size=3))
    gang = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5))
    zones = st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)
    return World(nodes, placed, gang, draw(st.lists(zones, max_size=4)))


ONE_EACH: Final = tuple(
    make_node(f"n{number}").label(HOSTNAME, f"n{number}").label(ZONE, "ab"[number]).allocatable(cpu=1, pods=1)
    for number in range(2)
)


@given(worlds())
@example(World(ONE_EACH, (), (14, 15), ("ab", "b")))  # the second one, if it goes first, takes the volume of the first
def test_what_is_placed_can_be_placed_one_by_one_and_what_is_refused_not_at_all(world: World) -> None:
    mirror, members = world.mirror(), world.members()
    found = place_gang(placer(mirror), Gang(members, max_steps=2_000))
    assert audit(mirror) == []
    if not isinstance(found, Shortfall):
        assert found == {uid: each.pod.node_name for uid, each in mirror.assumed.items()}
        replay(world.mirror(), members, found)
        return
    assert not mirror.assumed
    assert found.placed < found.needed == len(members)
    if found.is_proved:
        assert not can_be_placed(world.mirror(), world.gang, members)


def replay(mirror: ClusterMirror, members: Sequence[Pod], placement: Mapping[str, str]) -> None:
    """Place members one by one where they were placed, each by the ordinary filters, afresh."""
    by_uid = {pod.uid: pod for pod in members}
    assert placement.keys() == by_uid.keys()
    with mirror.fork() as fork:
        for uid, node in placement.items():
            note(f"{uid} on {node}")
            assert node in fitting(mirror, by_uid[uid])
            place_on(mirror, fork, PROFILE, by_uid[uid], node)


def fitting(mirror: ClusterMirror, pod: Pod) -> list[str]:
    batch = mirror.all_nodes()
    verdicts = filter_nodes(PROFILE, FreshEvaluation(mirror, pod), batch)
    return [batch.names[position] for position in (verdicts.codes == 0).nonzero()[0].tolist()]


@given(worlds(), st.data())
def test_an_attempt_in_parts_is_right_though_the_cluster_changes_between_them(
    world: World, data: st.DataObject
) -> None:
    mirror, members, others = world.mirror(), world.members(), [*world.placed]

    def change() -> None:
        way = data.draw(st.sampled_from(("none", "none", "come", "go")))
        if way == "come":
            template, node = data.draw(st.sampled_from(TEMPLATES)), data.draw(st.sampled_from(world.nodes))
            others.append(named(template, f"o{len(others)}").on(node.name))
            tell(mirror, "Add", others[-1])
        elif way == "go" and others:
            tell(mirror, "Delete", others.pop())

    failed = None
    for _ in range(2):  # the second one begins with the places of the first, if that fails
        attempt = placer(mirror).begin(Gang(members, max_steps=20), failed)
        while (found := attempt.go_on(0.0, lambda: 0.0, 0.0)) is None:
            assert not mirror.assumed
            change()
        assert audit(mirror) == []
        if not isinstance(found, Shortfall):
            replay(msgspec.structs.replace(world, placed=others).mirror(), members, found)
            return
        assert not mirror.assumed
        failed = found
        change()


ALIKE: Final = tuple(
    make_node(f"n{number}").label(HOSTNAME, f"n{number}").label(ZONE, "abc"[number]).allocatable(cpu=4, pods=9)
    for number in range(3)
)


@given(
    worlds(), st.sampled_from((Packing(PackingWay.PACK), Packing(PackingWay.NEAR, ZONE))), st.sampled_from((-1, 0, 1))
)
@example(World(ALIKE, (), (0, 1, 1, 2)), Packing(PackingWay.PACK), -1)  # which takes a search over sets of domains
@example(World(ALIKE, (), (0, 1, 1, 2)), Packing(PackingWay.NEAR, ZONE), -1)
def test_a_packed_gang_has_the_fewest_domains_and_is_refused_only_if_it_is_when_spread(
    world: World, packing: Packing, other: int
) -> None:
    others_on = [node.name for number, node in enumerate(world.nodes) if number == other]
    mirror, members = world.mirror(), world.members()
    found = place_gang(placer(mirror), Gang(members, None, 100_000, packing, others_on))
    assert audit(mirror) == []
    if isinstance(found, Shortfall):
        assert not mirror.assumed
        assert isinstance(place_gang(placer(mirror), Gang(members, max_steps=100_000)), Shortfall)
        return
    assert found == {uid: each.pod.node_name for uid, each in mirror.assumed.items()}
    replay(world.mirror(), members, found)
    domain_of = {node.name: node.labels[ZONE] if packing.topology_key else node.name for node in world.nodes}
    used = {domain_of[name] for name in others_on}
    new = {domain_of[name] for name in found.values()} - used
    for fewer in combinations(sorted({*domain_of.values()} - used), len(new) - 1) if new else ():
        within = {name for name, domain in domain_of.items() if domain in used | {*fewer}}
        assert not can_be_placed(world.mirror(), world.gang, members, within)


@given(worlds(), st.sampled_from((0, 5, 50)))
def test_packing_at_the_bound_of_its_search_has_never_more_nodes_than_spread(world: World, steps: int) -> None:
    spread, packed = (
        place_gang(placer(world.mirror()), Gang(world.members(), max_steps=steps, packing=Packing(way)))
        for way in (PackingWay.SPREAD, PackingWay.PACK)
    )
    if not isinstance(spread, Shortfall):
        assert not isinstance(packed, Shortfall)
        assert len(set(packed.values())) <= len(set(spread.values()))


def can_be_placed(
    mirror: ClusterMirror, kinds: Sequence[int], members: Sequence[Pod], within: Collection[str] | None = None
) -> bool:
    """Try every member on every node in every order; members of one template stand for each other."""
    seen: set[object] = set()

    def tried(fork: Fork) -> bool:
        claims = frozenset((each.name, each.claim is None) for each in mirror.objects(PersistentVolume).values())
        state = frozenset(Counter((kinds[int(pod.name[1:])], pod.node_name) for pod in fork.placed).items()), claims
        if state in seen:
            return False
        seen.add(state)
        left = {kinds[at]: at for at, pod in enumerate(members) if not mirror.is_mirrored(pod.uid)}
        for at in left.values():
            for node in fitting(mirror, members[at]):
                if within is not None and node not in within:
                    continue
                savepoint = fork.savepoint()
                place_on(mirror, fork, PROFILE, members[at], node)
                if tried(fork):
                    return True
                fork.revert_to(savepoint)
        return not left

    with mirror.fork() as fork:
        return tried(fork)
