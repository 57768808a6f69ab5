"""All members of a gang find a node, or none is assumed."""

import pytest

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.gangs.attempts import Shortfall
from core.gangs.placing import Gang, Placer, steps_for
from core.gangs.unit import PackingStatus
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.groups import Packing, PackingWay
from core.objects.pod import Pod
from core.profile import full_profile, parse_profile
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.gangs.gang_setting import HOSTNAME, ZONE, GangSetting, member, node, place_gang, placer
from tests.core.mirror.audit import audit


def place(mirror: ClusterMirror, *pods: PodBuilder, max_steps: int = 1000) -> dict[str, str] | Shortfall:
    found = place_gang(placer(mirror), Gang([pod_of(pod) for pod in pods], max_steps=max_steps))
    if isinstance(found, Shortfall):
        assert not mirror.assumed
    assert audit(mirror) == []
    return found if isinstance(found, Shortfall) else {uid.partition("/")[2]: name for uid, name in found.items()}


def shortfall(mirror: ClusterMirror, *pods: PodBuilder, max_steps: int = 1000) -> Shortfall:
    found = place(mirror, *pods, max_steps=max_steps)
    assert isinstance(found, Shortfall)
    return found


def nodes(*cpus: int) -> list[NodeBuilder]:
    return [node(f"n{number}", cpu) for number, cpu in enumerate(cpus)]


def test_one_member_too_many_leaves_nothing() -> None:
    found = shortfall(mirror_of(*nodes(2, 2)), *(member(name) for name in "abcde"))
    assert (found.placed, found.needed, found.pod.name, found.is_proved) == (4, 5, "e", True)
    assert found.verdicts.status(0).reasons == ("Insufficient cpu",)


def test_an_attempt_that_fails_takes_no_generation_and_counts_as_no_assumption() -> None:
    mirror = mirror_of(*nodes(3, 3))
    generation = mirror.generation
    shortfall(mirror, *(member(name, cpu=2) for name in "abc"), member("d"))
    assert (generation, 0) == (mirror.generation, len(mirror.assumed))
    assert isinstance(place(mirror, member("a"), member("b")), dict)
    assert (generation + 2, 2) == (mirror.generation, len(mirror.assumed))


def test_the_most_constrained_member_goes_first() -> None:
    picky = member("picky").node_selector({HOSTNAME: "n0"})
    found = place(mirror_of(*nodes(1, 1)), member("any"), picky, max_steps=0)
    assert found == {"picky": "n0", "any": "n1"}


def test_a_search_that_may_take_no_step_proves_nothing() -> None:
    mirror = mirror_of(*nodes(3, 3))
    gang = [member("a", cpu=2), member("b", cpu=2), member("c", cpu=1), member("d", cpu=2)]
    assert not shortfall(mirror, *gang, max_steps=0).is_proved
    assert not shortfall(mirror, *gang, max_steps=1).is_proved
    assert shortfall(mirror, *gang).is_proved


def test_the_first_member_goes_where_it_was_asked_for() -> None:
    mirror = mirror_of(*nodes(4, 4))
    found = place_gang(placer(mirror), Gang([pod_of(member("a")), pod_of(member("b"))], mirror.batch(["n1"])))
    assert not isinstance(found, Shortfall)
    assert found["default/a"] == "n1"


def test_a_member_goes_where_it_is_nominated_if_it_may() -> None:
    for only, expected in ((None, "n1"), ("n0", "n0")):
        mirror = mirror_of(*nodes(4, 4))
        member_of_n1 = pod_of(member("a").nominated("n1"))
        found = place_gang(placer(mirror), Gang([member_of_n1], None if only is None else mirror.batch([only])))
        assert found == {"default/a": expected}


def test_a_member_that_takes_too_much_work_leaves_nothing() -> None:
    mirror = mirror_of(*nodes(2, 2))
    heavy = make_pod("heavy").required_anti_affinity(*(term(ZONE, labelled(app=f"a{number}")) for number in range(50)))
    mirror.work.limit = 1
    with pytest.raises(WorkLimitError):
        place(mirror, member("a"), heavy)
    assert not mirror.assumed
    assert audit(mirror) == []


@pytest.mark.parametrize(
    ("known", "steps"), [(0, 2000), (6, 2000), (250, 2000), (1000, 500), (5000, 100), (20000, 100)]
)
def test_the_search_takes_fewer_steps_among_more_nodes(known: int, steps: int) -> None:
    assert steps == steps_for(known)


PACK = Packing(PackingWay.PACK)
NEAR = Packing(PackingWay.NEAR, ZONE)


def placed(
    mirror: ClusterMirror, packing: Packing, *pods: PodBuilder, max_steps: int = 1000, others_on: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return pod -> node."""
    gang = Gang([pod_of(pod) for pod in pods], None, max_steps, packing, others_on)
    found = place_gang(placer(mirror), gang)
    assert not isinstance(found, Shortfall)
    assert audit(mirror) == []
    return {uid.partition("/")[2]: name for uid, name in found.items()}


def gang(number: int, cpu: int = 1) -> list[PodBuilder]:
    return [member(f"m{at}", number, cpu=cpu) for at in range(number)]


def zones(**cpus: list[int]) -> list[NodeBuilder]:
    return [node(f"{zone}{at}", cpu, zone) for zone, each in cpus.items() for at, cpu in enumerate(each)]


@pytest.mark.parametrize("steps", [0, 1000])
def test_pack_fills_the_roomiest_nodes(steps: int) -> None:
    mirror = mirror_of(node("n0", 2), node("n1", 4), node("n2", 2), node("n3", 4))
    found = placed(mirror, PACK, *gang(8), max_steps=steps)
    assert set(found.values()) == {"n1", "n3"}


def test_sets_of_domains_are_tried_where_filling_one_after_another_takes_too_many() -> None:
    """One after another, 1 and 2 CPUs take the first node, and 3 CPUs have no room beside the other 2."""
    sizes = [member(f"m{at}", 4, cpu=cpu) for at, cpu in enumerate((1, 2, 2, 3))]
    nodes = [node(name, 4) for name in ("n0", "n1", "n2")]
    assert len(set(placed(mirror_of(*nodes), PACK, *sizes, max_steps=0).values())) == 3
    assert len(set(placed(mirror_of(*nodes), PACK, *sizes).values())) == 2


class Counted:
    """Counts the evaluations of many nodes."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.evaluations = 0
        self._mirror = mirror
        self.placer = Placer(mirror, full_profile(), self._evaluate, lambda _, best: int(best[0]))

    def pack(self, *cpus: int) -> int:
        """Place members of these sizes; return the number of nodes."""
        members = [pod_of(member(f"m{at}", len(cpus), cpu=cpu)) for at, cpu in enumerate(cpus)]
        found = place_gang(self.placer, Gang(members, max_steps=1000, packing=PACK))
        assert not isinstance(found, Shortfall)
        return len(set(found.values()))

    def _evaluate(self, pod: Pod) -> Evaluation:
        self.evaluations += 1
        return FreshEvaluation(self._mirror, pod)


def test_no_other_way_is_tried_where_the_sum_of_the_requests_allows_no_fewer_nodes() -> None:
    """By their number alone, two nodes could hold them: four of the smallest have room on one."""
    counted = Counted(mirror_of(*(node(f"n{number:02}", 4) for number in range(40))))
    assert counted.pack(1, 1, 1, 1, 4, 4) == 3
    assert counted.evaluations == 2 + 3  # a look at all nodes for each size, and for each node that is used


def test_spreading_ends_when_it_has_used_as_many_nodes_if_it_cannot_fail() -> None:
    counted = Counted(mirror_of(*(node(f"n{number:02}", 4) for number in range(40))))
    assert counted.pack(1, 2, 2, 3) == 2
    assert counted.evaluations == 3 + 3 + 3  # and for each member that is spread, until three nodes are used


@pytest.mark.parametrize(("packing", "expected"), [(PACK, {"b1"}), (NEAR, {"b0", "b1"})])
def test_domains_of_members_that_have_a_node_come_first(packing: Packing, expected: set[str]) -> None:
    mirror = mirror_of(*zones(a=[2], b=[4, 4], c=[2]))
    assert set(placed(mirror, packing, *gang(2), others_on=("b1", "gone")).values()) == expected


def test_what_does_not_fit_is_refused_as_if_it_were_spread_and_leaves_nothing() -> None:
    for packing in (Packing(), PACK, NEAR):
        mirror = mirror_of(*zones(a=[2], b=[2]))
        found = place_gang(placer(mirror), Gang([pod_of(pod) for pod in gang(5)], max_steps=1000, packing=packing))
        assert isinstance(found, Shortfall)
        assert (found.placed, found.needed, found.is_proved) == (4, 5, True)
        assert not mirror.assumed
        assert audit(mirror) == []


def test_the_first_member_stays_on_the_nodes_of_its_request() -> None:
    mirror = mirror_of(*zones(a=[4], b=[4]))
    members = [pod_of(pod) for pod in gang(3)]
    found = place_gang(placer(mirror), Gang(members, mirror.batch(["b0"]), 1000, NEAR))
    assert not isinstance(found, Shortfall)
    assert set(found.values()) == {"b0"}


def test_without_the_filter_of_resources_room_is_no_bound() -> None:
    mirror = mirror_of(node("n0", 1), node("n1", 1))
    profile = parse_profile("NodeName,NodeAffinity")
    bare = Placer(mirror, profile, lambda pod: FreshEvaluation(mirror, pod), lambda _, best: int(best[0]))
    found = place_gang(bare, Gang([pod_of(pod) for pod in gang(4)], max_steps=1000, packing=PACK))
    assert not isinstance(found, Shortfall)
    assert len(set(found.values())) == 1


# As a group asks for it.


def packing_of(setting: GangSetting) -> PackingStatus:
    packing = setting.status().packing
    assert packing is not None
    return packing


def test_members_are_packed_as_their_group_says_and_the_rest_beside_those_that_run() -> None:
    setting = GangSetting(*(node(f"n{number}", 4) for number in range(3)))
    gang = [member(name, 4).packed("pack") for name in "abcd"]
    setting.see(make_pod("busy").requests(cpu=3).on("n0"), *gang)
    first = setting.ask(gang[0])
    assert {setting.ask(pod) for pod in gang} == {first}
    packing = packing_of(setting)
    assert (packing.way, packing.nodes, packing.domains) == (PackingWay.PACK, 1, None)
    for pod in gang[:2]:
        setting.bind(pod)
    setting.delete(*gang[2:])
    setting.see(member("e", 4).packed("pack"))
    assert setting.ask(member("e", 4).packed("pack")) == first


def test_the_domains_of_a_unit_are_those_of_its_members() -> None:
    setting = GangSetting(node("n0", 1, "a"), node("n1", 1, "b"), node("n2", 1, "b"))
    gang = [member(name).packed("near", ZONE) for name in "ab"]
    setting.see(*gang)
    assert {setting.ask(pod) for pod in gang} == {"on n1", "on n2"}
    packing = packing_of(setting)
    assert (packing.way, packing.topology_key, packing.nodes, packing.domains) == (PackingWay.NEAR, ZONE, 2, 1)


def test_a_wrong_packing_is_taken_for_spread_and_said_once() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    wrong = [member(name).packed("dense") for name in "ab"]
    setting.see(*wrong)
    assert {setting.ask(pod) for pod in wrong} == {"on n0", "on n1"}
    problem = "metadata.annotations[kindred.dev/group-packing]: expected spread, pack or near, got 'dense'"
    assert packing_of(setting).problem == problem
    assert setting.gangs.take_packing_problems() == {"default/train": problem}
    setting.mirror.forget("default/a")
    setting.ask(wrong[0])
    assert setting.gangs.take_packing_problems() == {}
