"""The objects in the mirror, read at each scrape."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.mirror.cluster import ClusterMirror


class MirrorCollector:
    """Sizes and pod states."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        mirror = self._mirror
        unplaced = sum(len(info.rows) for info in mirror.nodes.infos.values() if info.node is None)
        yield GaugeMetricFamily("kindred_mirror_nodes", "Nodes in the mirror.", len(mirror.nodes.slots))
        yield GaugeMetricFamily(
            "kindred_mirror_pods", "Placed pods in the mirror, including assumed ones.", mirror.pod_count()
        )
        yield GaugeMetricFamily("kindred_mirror_namespaces", "Namespaces in the mirror.", len(mirror.namespaces))
        yield GaugeMetricFamily(
            "kindred_mirror_assumed_pods",
            "Assumed pods: bound or decided, not yet seen in the watch.",
            len(mirror.assumed),
        )
        yield GaugeMetricFamily(
            "kindred_mirror_pods_on_unknown_nodes",
            "Pods whose node is not in the mirror. They do not count for any node.",
            unplaced,
        )
        yield GaugeMetricFamily(
            "kindred_mirror_generation", "Generation of the mirror: the number of its last change.", mirror.generation
        )
        yield self._transitions()

    def _transitions(self) -> Metric:
        counts = self._mirror.pod_states
        family = CounterMetricFamily(
            "kindred_mirror_pod_transitions",
            "Changes of a pod's state. mismatched: the watch has the pod on another node than the assumed one.",
            labels=["transition"],
        )
        for transition, count in (
            ("assumed", counts.assumed),
            ("confirmed", counts.confirmed),
            ("mismatched", counts.mismatches),
            ("forgotten", counts.forgotten),
            ("expired", counts.expired),
            ("deleted_while_assumed", counts.deleted_while_assumed),
            ("moved", counts.moves),
            ("deleted_while_unknown", counts.unknown_deletes),
        ):
            family.add_metric([transition], count)
        return family
