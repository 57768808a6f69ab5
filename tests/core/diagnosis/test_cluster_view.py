"""All nodes as columns: where they are, and what is requested of what they offer."""

from core.diagnosis.cluster_view import ClusterSurvey, ClusterView, ResourceUse
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import ZONE, Node
from core.objects.pod import Pod

RACK = "example.com/rack"
GPU = "nvidia.com/gpu"


def cluster() -> ClusterMirror:
    """Three nodes: two in zones, one of which is over-committed in memory, and one without labels or pods."""
    mirror = ClusterMirror()
    for thing in (
        Node("n1", {ZONE: "a", RACK: "r1"}, {"cpu": 4000, "memory": 1 << 30, "pods": 110, GPU: 8}),
        Node("n2", {ZONE: "b", RACK: "r2"}, {"cpu": 2000, "memory": 1 << 30, "pods": 110}),
        Node("n3", {}, {"cpu": 1000, "pods": 110}),
        Pod("u1", "shop", "web", {}, "n1", requests={"cpu": 250, GPU: 2}, best_effort=False),
        Pod("u2", "shop", "batch", {}, "n1", requests={GPU: 1}),
        Pod("u3", "shop", "large", {}, "n2", requests={"memory": 2 << 30}, best_effort=False),
        Pod("u4", "shop", "lost", {}, "n9", requests={"cpu": 9000}, best_effort=False),
    ):
        mirror.apply(ClusterEvent("Add", thing))
    return mirror


def view(mirror: ClusterMirror, rack_key: str = RACK) -> ClusterView:
    survey = ClusterSurvey(mirror, rack_key)
    for _ in survey.steps():
        pass
    return survey.view()


def used(found: ClusterView) -> dict[str, list[tuple[int, int]]]:
    return {each.resource: list(zip(each.requested, each.allocatable, strict=True)) for each in found.resources}


def test_each_node_has_its_zone_and_rack_by_place_and_those_without_have_place_0() -> None:
    found = view(cluster())
    assert found.names == ["n1", "n2", "n3"]
    assert [found.zones[place] for place in found.zone] == ["a", "b", ""]
    assert [found.racks[place] for place in found.rack] == ["r1", "r2", ""]
    assert (found.zones[0], found.racks[0]) == ("", "")


def test_pods_of_each_node_count_also_assumed_and_best_effort_ones_and_beyond_what_it_offers() -> None:
    mirror = cluster()
    mirror.assume(Pod("u5", "shop", "new", requests={"cpu": 100}, best_effort=False), "n3", 1.0)
    assert used(view(mirror)) == {
        "cpu": [(250, 4000), (0, 2000), (100, 1000)],
        "memory": [(0, 1 << 30), (2 << 30, 1 << 30), (0, 0)],
        "pods": [(2, 110), (1, 110), (1, 110)],
        GPU: [(3, 8), (0, 0), (0, 0)],
    }


def test_cpu_memory_and_pods_come_first_then_five_of_which_the_largest_share_is_requested() -> None:
    mirror = ClusterMirror()
    offers = {f"example.com/r{number}": 100 for number in range(7)}
    mirror.apply(ClusterEvent("Add", Node("n1", {}, {"ephemeral-storage": 100, **offers})))
    requests = {f"example.com/r{number}": 10 * number for number in range(7)}
    mirror.apply(ClusterEvent("Add", Pod("u", "shop", "p", {}, "n1", requests=requests)))
    largest = [f"example.com/r{number}" for number in (6, 5, 4, 3, 2)]
    assert ["cpu", "memory", "pods", *largest] == [each.resource for each in view(mirror).resources]


def test_units_are_millicores_bytes_and_counts() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1", {}, {"ephemeral-storage": 1, "hugepages-2Mi": 1, GPU: 1})))
    assert {each.resource: each.unit for each in view(mirror).resources} == {
        "cpu": "millicores",
        "memory": "bytes",
        "pods": "count",
        "ephemeral-storage": "bytes",
        "hugepages-2Mi": "bytes",
        GPU: "count",
    }


def test_a_node_that_goes_between_two_steps_is_left_out_and_columns_stay_of_one_length() -> None:
    mirror = cluster()
    survey = ClusterSurvey(mirror, "")
    steps = survey.steps()
    next(steps)
    mirror.apply(ClusterEvent("Delete", Node("n2")))
    for _ in steps:
        pass
    found = survey.view()
    assert found.names == ["n1", "n3"]
    assert {2} == {len(each) for use in found.resources for each in (use.requested, use.allocatable)}


def test_a_cluster_without_nodes_is_empty() -> None:
    found = view(ClusterMirror(), "")
    assert (found.names, found.zone, found.zones) == ([], [], [""])
    assert ResourceUse("cpu", "millicores", [], []) == found.resources[0]
