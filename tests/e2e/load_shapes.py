"""The pods of upstream's scheduler_perf that have inter-pod affinity (test/integration/scheduler_perf/templates).

Namespaces `sched-0` hold what is there before, `sched-1` what is measured; those of the shape with a namespaceSelector
are `init-ns-N` and `measure-ns-0`, with the label that it selects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, ZONE, on, pod, preferred, required, term

NODE: Final = {"cpu": "4", "memory": "32Gi", "pods": "110"}
"""What node-default.yaml has."""
_BEFORE, _MEASURED = "sched-0", "sched-1"
_TEAM: Final = {"team": "devops"}
_SELECTED_NAMESPACES: Final = 10


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of pods; `existing` and `measured` are how many upstream has with 500 nodes."""

    name: str
    labels: Mapping[str, str]
    affinity: Mapping[str, Any]
    existing: int
    measured: int
    before: tuple[str, ...] = (_BEFORE,)
    """The namespaces of the existing pods, in turn."""
    namespace: str = _MEASURED
    """The namespace of the measured pods."""

    def existing_pods(self, number: int, nodes: int, start: int = 0) -> Iterator[tuple[str, Manifest]]:
        """Give namespaces and pods that are bound to nodes in turn, from the node `start` on."""
        for index in range(number):
            namespace = self.before[index % len(self.before)]
            yield namespace, on(self._pod(f"{self.name}-{index}"), f"node-{(start + index) % nodes:04}")

    def measured_pods(self, number: int) -> Iterator[Manifest]:
        """Give pods without nodes."""
        for index in range(number):
            yield self._pod(f"{self.name}-{index}")

    def _pod(self, name: str) -> Manifest:
        return pod(name, self.labels, affinity=self.affinity, cpu="20m")


def _near(color: str, topology_key: str) -> dict[str, Any]:
    return term({"color": color}, topology_key, namespaces=[_MEASURED, _BEFORE])


SHAPES: Final = (
    Shape("anti-affinity", {"color": "green"}, required("podAntiAffinity", _near("green", HOSTNAME)), 100, 400),
    Shape("affinity", {"color": "blue"}, required("podAffinity", _near("blue", ZONE)), 500, 1000),
    Shape("preferred-affinity", {"color": "red"}, preferred("podAffinity", 1, [_near("red", HOSTNAME)]), 500, 1000),
    Shape(
        "preferred-anti-affinity",
        {"color": "yellow"},
        preferred("podAntiAffinity", 1, [_near("yellow", HOSTNAME)]),
        500,
        1000,
    ),
    Shape(
        "namespace-selector",
        {"color": "purple"},  # upstream's are green, too; here one cluster holds all shapes
        required("podAntiAffinity", term({"color": "purple"}, HOSTNAME, namespaceSelector={"matchLabels": _TEAM})),
        40,
        400,  # upstream: 100, which are over too soon to be measured
        tuple(f"init-ns-{number}" for number in range(_SELECTED_NAMESPACES)),
        "measure-ns-0",
    ),
)
PLAIN: Final = Shape("plain", {}, {}, 0, 0)


def namespaces() -> Iterator[Manifest]:
    """Give all namespaces."""
    for name in (_BEFORE, _MEASURED):
        yield {"metadata": {"name": name}}
    for shape in SHAPES[-1:]:
        for name in (*shape.before, shape.namespace):
            yield {"metadata": {"name": name, "labels": _TEAM}}
