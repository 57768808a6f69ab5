"""A gang on few nodes, or in few domains, as far as a bounded search finds them."""

import pytest

from core.framework.evaluation import Evaluation, FreshEvaluation
from core.gangs.attempts import Shortfall
from core.gangs.placing import Placer
from core.gangs.unit_status import PackingStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import Packing, PackingWay
from core.objects.pod import Pod
from core.profile import full_profile, parse_profile
from tests.builders import NodeBuilder, PodBuilder, labelled, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.gangs.gang_setting import HOSTNAME, ZONE, GangSetting, member, node, placer
from tests.core.mirror.audit import audit

PACK = Packing(PackingWay.PACK)
NEAR = Packing(PackingWay.NEAR, ZONE)
APP_A = labelled(app="a")


def placed(
    mirror: ClusterMirror, packing: Packing, *pods: PodBuilder, max_steps: int = 1000, beside: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return pod -> node."""
    found = placer(mirror).place(
        [pod_of(pod) for pod in pods], 0.0, max_steps=max_steps, packing=packing, beside=beside
    )
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


def test_the_last_node_is_the_one_that_has_the_least_room_to_spare() -> None:
    mirror = mirror_of(node("n0", 4), node("n1", 4), node("n2", 1))
    assert sorted(placed(mirror, PACK, *gang(5)).values()) == ["n0", "n0", "n0", "n0", "n2"]
    assert set(placed(mirror_of(node("n0", 9), node("n1", 3)), PACK, *gang(3)).values()) == {"n1"}


def test_spread_uses_more_nodes_than_pack() -> None:
    nodes = [node(f"n{number}", 8) for number in range(4)]
    assert len(set(placed(mirror_of(*nodes), Packing(), *gang(4)).values())) == 4
    assert len(set(placed(mirror_of(*nodes), PACK, *gang(4)).values())) == 1


def test_near_takes_one_domain_where_all_fit_and_spreads_there() -> None:
    mirror = mirror_of(*zones(a=[4, 1], b=[2, 2], c=[8, 8]))
    found = placed(mirror, NEAR, *gang(4))
    assert sorted(found.values()) == ["b0", "b0", "b1", "b1"]


def test_near_takes_as_few_domains_as_it_must() -> None:
    mirror = mirror_of(*zones(a=[2], b=[3], c=[1, 1], d=[3]))
    assert {name[0] for name in placed(mirror, NEAR, *gang(6)).values()} == {"b", "d"}


def test_the_domain_with_room_by_its_resources_alone_is_passed_over() -> None:
    """Room is a bound: ports in use are seen by the filters, and a port is free on one node of each zone."""
    busy = [make_pod(name).image("i").host_port(80).on(name) for name in ("a0", "b0")]
    mirror = mirror_of(*zones(a=[4, 4], b=[4, 4], c=[4, 4]), *busy)
    ported = [member(f"m{number}").image("i").host_port(80) for number in range(2)]
    assert {name[0] for name in placed(mirror, NEAR, *ported).values()} == {"c"}


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
        found = self.placer.place(members, 0.0, max_steps=1000, packing=PACK)
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


def test_members_that_need_each_other_by_zone_are_packed_too() -> None:
    spread = [make_pod(f"p{number}").label("app", "a").requests(cpu=1).spread(ZONE, APP_A) for number in range(6)]
    mirror = mirror_of(*zones(a=[4, 4], b=[4, 4], c=[4, 4]))
    assert len(set(placed(mirror, PACK, *spread).values())) == 3


def test_members_that_repel_each_other_by_node_have_a_node_each_in_one_domain() -> None:
    loners = [
        make_pod(f"p{number}").label("app", "a").requests(cpu=1).required_anti_affinity(term(HOSTNAME, APP_A))
        for number in range(3)
    ]
    mirror = mirror_of(*zones(a=[9, 9], b=[1, 1, 1]))
    assert sorted(placed(mirror, NEAR, *loners).values()) == ["b0", "b1", "b2"]


@pytest.mark.parametrize(("packing", "expected"), [(PACK, {"b1"}), (NEAR, {"b0", "b1"})])
def test_domains_of_members_that_have_a_node_come_first(packing: Packing, expected: set[str]) -> None:
    mirror = mirror_of(*zones(a=[2], b=[4, 4], c=[2]))
    assert set(placed(mirror, packing, *gang(2), beside=("b1", "gone")).values()) == expected


def test_what_does_not_fit_is_refused_as_if_it_were_spread_and_leaves_nothing() -> None:
    for packing in (Packing(), PACK, NEAR):
        mirror = mirror_of(*zones(a=[2], b=[2]))
        found = placer(mirror).place([pod_of(pod) for pod in gang(5)], 0.0, max_steps=1000, packing=packing)
        assert isinstance(found, Shortfall)
        assert (found.placed, found.wanted, found.is_proved) == (4, 5, True)
        assert not mirror.assumed
        assert audit(mirror) == []


def test_the_first_member_stays_on_the_nodes_of_its_request() -> None:
    mirror = mirror_of(*zones(a=[4], b=[4]))
    members = [pod_of(pod) for pod in gang(3)]
    found = placer(mirror).place(members, 0.0, of_first=mirror.batch(["b0"]), max_steps=1000, packing=NEAR)
    assert not isinstance(found, Shortfall)
    assert set(found.values()) == {"b0"}


def test_without_the_filter_of_resources_room_is_no_bound() -> None:
    mirror = mirror_of(node("n0", 1), node("n1", 1))
    profile = parse_profile("NodeName,NodeAffinity")
    bare = Placer(mirror, profile, lambda pod: FreshEvaluation(mirror, pod), lambda _, best: int(best[0]))
    found = bare.place([pod_of(pod) for pod in gang(4)], 0.0, max_steps=1000, packing=PACK)
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
