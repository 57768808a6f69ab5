"""What is kept of the usage of nodes through random lives of a cluster is what plain loops count."""

from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant
from hypothesis.stateful import run_state_machine_as_test as run_machine

from core.mirror.node_values import RESOURCES, NodeUsage
from core.objects.node import NodeMetrics
from core.plugins.load.load_plugin import LoadPlugin, PredictedCpu, UnmeasuredBy
from core.plugins.load.loadaware import LoadAware
from core.profile import Profile, parse_profile
from tests.depth import tries
from tests.properties.equivalence_machine import EquivalenceMachine

PREDICTION = PredictedCpu(1.5, 1000)


class MeasuredNodes(EquivalenceMachine):
    """The plugins that follow the load, with one that refuses nodes whose measurement is too old."""

    profile: ClassVar[Profile] = parse_profile(
        "LoadAware=2,TargetLoadPacking,LoadVariationRiskBalancing",
        {"LoadAware": {"enable_schedule_when_node_metrics_expired": False}},
    )

    def __init__(self) -> None:
        super().__init__()
        self.unmeasured = self.mirror.derived(UnmeasuredBy(PREDICTION))
        self.usage = self.mirror.derived(NodeUsage)

    @invariant()
    def predictions_are_those_of_the_pods_that_no_measurement_covers(self) -> None:
        mirror = self.mirror
        batch = mirror.batch(list(mirror.nodes.slots))
        expected = [0] * len(batch)
        measurements = mirror.objects(NodeMetrics)
        for slot, pod in mirror.placed_pods():
            found = measurements.get(mirror.nodes.name(slot))
            if found is not None and (not pod.start_time or pod.start_time > found.covers_pods_until):
                expected[batch.slots.tolist().index(slot)] += PREDICTION(pod)[0]
        assert expected == self.unmeasured.of(0, batch).tolist()

    @invariant()
    def usage_is_what_was_measured_last(self) -> None:
        mirror = self.mirror
        names = list(mirror.nodes.slots)
        batch = mirror.batch(names)
        measurements = mirror.objects(NodeMetrics)
        nodes = [mirror.nodes.infos[name].node for name in names]
        for place, resource in enumerate(RESOURCES):
            found = self.usage.of(place, batch)
            for at, (name, node) in enumerate(zip(names, nodes, strict=True)):
                metrics = measurements.get(name)
                measured = None if metrics is None or metrics.too_old else getattr(metrics, resource)
                assert node is not None
                assert (measured is not None, node.allocatable.get(resource, 0)) == (
                    bool(found.measured[at]),
                    int(found.allocatable[at]),
                )
                if measured is not None:
                    assert (measured.average, measured.deviation or 0) == (found.average[at], found.deviation[at])


def test_what_is_kept_of_the_usage_of_nodes_is_what_a_recount_gives() -> None:
    assert isinstance(MeasuredNodes.profile.filters[0], LoadAware)
    assert all(isinstance(plugin, LoadPlugin) for plugin in MeasuredNodes.profile.plugins)
    few = settings(
        max_examples=tries(default=20, full=100),
        stateful_step_count=100,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_machine(MeasuredNodes, settings=few)
