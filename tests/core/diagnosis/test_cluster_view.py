"""All nodes as columns: where they are, what is requested of what they offer, and what they use."""

from core.diagnosis.cluster_view import ClusterSurvey, ClusterView, MeasuredUse, ResourceUse
from core.diagnosis.summary import ZONE
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.node_metrics import NodeMetrics, Usage
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


def view(mirror: ClusterMirror, rack_key: str = RACK, now: float | None = None) -> ClusterView:
    survey = ClusterSurvey(mirror, rack_key, now)
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


def test_requests_of_best_effort_pods_count_beside_those_of_others() -> None:
    assert used(view(cluster()))[GPU] == [(3, 8), (0, 0), (0, 0)]
    assert used(view(cluster()))["pods"] == [(2, 110), (1, 110), (0, 110)]


def test_a_node_can_be_requested_beyond_what_it_offers_and_can_lack_a_resource() -> None:
    assert used(view(cluster()))["memory"] == [(0, 1 << 30), (2 << 30, 1 << 30), (0, 0)]


def test_assumed_pods_count_and_pods_on_unknown_nodes_do_not() -> None:
    mirror = cluster()
    mirror.assume(Pod("u5", "shop", "new", requests={"cpu": 100}, best_effort=False), "n3", 1.0)
    assert used(view(mirror))["cpu"] == [(250, 4000), (0, 2000), (100, 1000)]


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


def measured(node: str, at: int, cpu: int, memory: int | None = None, *, too_old: bool = False) -> ClusterEvent:
    of_memory = None if memory is None else Usage(memory)
    found = NodeMetrics(
        name=node, measured_at=at, covers_pods_until="", cpu=Usage(cpu), memory=of_memory, too_old=too_old
    )
    return ClusterEvent("Update", found)


def test_a_measurement_has_its_age_and_counts_unless_it_is_too_old() -> None:
    mirror = cluster()
    mirror.apply(measured("n1", 960, 1500, 1 << 29))
    mirror.apply(measured("n2", 100, 700, 1 << 20, too_old=True))
    load = view(mirror, now=1000.4).load
    assert load is not None
    assert load.age == [40, 900, None]
    assert load.too_old == [False, True, False]
    assert load.resources == [
        MeasuredUse("cpu", "millicores", [1500, None, None], [4000, 2000, 1000]),
        MeasuredUse("memory", "bytes", [1 << 29, None, None], [1 << 30, 1 << 30, 0]),
    ]


def test_usage_is_a_part_of_the_capacity_where_the_node_reports_one() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1", {}, {"cpu": 3900}, capacity={"cpu": 4000})))
    load = view(mirror, now=0.0).load
    assert load is not None
    assert load.resources[0].capacity == [4000]


def test_a_resource_without_a_plausible_value_is_not_measured_and_a_node_is_never_measured_in_the_future() -> None:
    mirror = cluster()
    mirror.apply(measured("n3", 1030, 0))
    load = view(mirror, now=1000.0).load
    assert load is not None
    assert load.age == [None, None, 0]
    assert [each.used for each in load.resources] == [[None, None, 0], [None, None, None]]


def test_where_nothing_measures_the_usage_there_is_no_load() -> None:
    assert view(cluster()).load is None


def test_a_node_that_goes_between_two_steps_is_left_out_and_columns_stay_of_one_length() -> None:
    mirror = cluster()
    survey = ClusterSurvey(mirror, "", 0.0)
    steps = survey.steps()
    next(steps)
    mirror.apply(ClusterEvent("Delete", Node("n2")))
    for _ in steps:
        pass
    found = survey.view()
    assert found.names == ["n1", "n3"]
    assert {2} == {len(each) for use in found.resources for each in (use.requested, use.allocatable)}
    assert found.load is not None
    assert {2} == {len(each) for use in found.load.resources for each in (use.used, use.capacity)}


def test_a_cluster_without_nodes_is_empty() -> None:
    found = view(ClusterMirror(), "")
    assert (found.names, found.zone, found.zones) == ([], [], [""])
    assert ResourceUse("cpu", "millicores", [], []) == found.resources[0]
