"""Measured nodes, and pods before and after they count in a measurement."""

from typing import Any, Final

from core.events import ClusterEvent
from core.framework.interface import SUCCESS
from core.mirror.cluster import ClusterMirror
from core.objects.node import NodeMetrics, Usage
from tests.builders import NodeBuilder, PodBuilder, make_node
from tests.core.decoded import mirror_of, pod_of

BEFORE: Final = "2026-01-01T00:00:00Z"
COVERED: Final = "2026-01-01T00:01:00Z"
"""Pods that started until then are in the measurements of this module."""
AFTER: Final = "2026-01-01T00:01:01Z"
MIB: Final = 2**20
GIB: Final = 2**30

FOUR_CORES: Final = make_node("n1").allocatable(cpu="4", memory="8Gi", pods=110).capacity(cpu="4", memory="8Gi")


def metrics(
    cpu: Usage | None = None, memory: Usage | None = None, *, name: str = "n1", too_old: bool = False
) -> NodeMetrics:
    """Return the measurement of a node."""
    return NodeMetrics(
        name=name, measured_at=1767225720, covers_pods_until=COVERED, cpu=cpu, memory=memory, too_old=too_old
    )


def measured_mirror(node: NodeBuilder, measured: NodeMetrics | None, *pods: PodBuilder) -> ClusterMirror:
    """Return a mirror with one node, its measurement if there is one, and pods on it."""
    mirror = mirror_of(node, *(pod.on(node.name) for pod in pods))
    if measured is not None:
        mirror.apply(ClusterEvent("Add", measured))
    return mirror


def score_of(plugin: Any, mirror: ClusterMirror, pod: PodBuilder, name: str = "n1") -> int:  # noqa: ANN401 - any score
    """Score one node for a pod."""
    batch = mirror.batch([name])
    status, state = plugin.pre_score(mirror, pod_of(pod), batch)
    assert status == SUCCESS
    (found,) = plugin.normalize(plugin.score(state, batch)).tolist()
    assert isinstance(found, int)
    return found
