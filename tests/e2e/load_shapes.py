"""Pods of upstream's scheduler_perf (test/integration/scheduler_perf/templates): inter-pod affinity, plain, spread.

The namespace `sched-0` holds what is there before, `sched-1` what is measured; those of the shape with a
namespaceSelector are `init-ns-N` and `measure-ns-0`, with the label that it selects.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.objects.groups import GROUP_LABEL, MINIMUM_ANNOTATION
from tests.e2e.api import Manifest
from tests.e2e.shapes import HOSTNAME, RACK, ZONE, on, pod, preferred, required, term

NODE: Final = {"cpu": "4", "memory": "32Gi", "pods": "110"}
"""What node-default.yaml has."""
_BEFORE, _MEASURED = "sched-0", "sched-1"
_BOTH: Final = [_MEASURED, _BEFORE]
_TEAM: Final = {"team": "devops"}
_SELECTED_NAMESPACES: Final = tuple(f"init-ns-{number}" for number in range(10))


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of pods; `existing` and `measured` are how many upstream has with 500 nodes."""

    name: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    """Fields of the pod's spec beside its container."""
    existing: int
    measured: int
    before: tuple[str, ...] = (_BEFORE,)
    """The namespaces of the existing pods, in turn."""
    namespace: str = _MEASURED
    """The namespace of the measured pods."""

    def existing_pods(self, number: int, nodes: int, start: int = 0) -> Iterator[tuple[str, Manifest]]:
        """Yield namespaces and pods that are bound to nodes in turn, from the node `start` on."""
        for index in range(number):
            namespace = self.before[index % len(self.before)]
            yield namespace, on(self._pod(f"{self.name}-{index}"), f"node-{(start + index) % nodes:04}")

    def measured_pods(self, number: int, scheduler_name: str) -> Iterator[Manifest]:
        """Yield pods without nodes, for a scheduler profile."""
        for index in range(number):
            yield self._pod(f"{self.name}-{index}", schedulerName=scheduler_name)

    def _pod(self, name: str, **further: object) -> Manifest:
        spec: dict[str, Any] = {**self.spec, **further}
        return pod(name, self.labels, cpu="20m", **spec)


def _near(color: str, topology_key: str) -> dict[str, Any]:
    return term({"color": color}, topology_key, namespaces=_BOTH)


def _apart(color: str, **namespaces: object) -> dict[str, Any]:
    return required("podAntiAffinity", term({"color": color}, HOSTNAME, **namespaces))


AFFINITY_SHAPES: Final = (
    Shape("anti-affinity", {"color": "green"}, {"affinity": _apart("green", namespaces=_BOTH)}, 100, 400),
    Shape("affinity", {"color": "blue"}, {"affinity": required("podAffinity", _near("blue", ZONE))}, 500, 1000),
    Shape(
        "preferred-affinity",
        {"color": "red"},
        {"affinity": preferred("podAffinity", 1, [_near("red", HOSTNAME)])},
        500,
        1000,
    ),
    Shape(
        "preferred-anti-affinity",
        {"color": "yellow"},
        {"affinity": preferred("podAntiAffinity", 1, [_near("yellow", HOSTNAME)])},
        500,
        1000,
    ),
    Shape(
        "namespace-selector",
        {"color": "purple"},  # upstream's are green, too; here one cluster holds all shapes
        {"affinity": _apart("purple", namespaceSelector={"matchLabels": _TEAM})},
        40,
        400,  # upstream: 100, which are over too soon to be measured
        _SELECTED_NAMESPACES,
        "measure-ns-0",
    ),
)
PLAIN: Final = Shape("plain", {}, {}, 0, 1000)
# Upstream spreads over zones. Here all nodes are of one zone, as the shape `affinity` has it upstream; so over racks.
UNFIT: Final = Shape("unfit", {}, {"nodeSelector": {"disk": "none-has-this"}}, 0, 0)
"""Pods that fit on no node; not measured, but in the way of those that are."""
GANG_SIZE: Final = 50
SPREAD: Final = Shape(
    "topology-spread",
    {"color": "orange"},
    {
        "topologySpreadConstraints": [
            {
                "maxSkew": 5,
                "topologyKey": RACK,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"color": "orange"}},
            }
        ]
    },
    0,
    1000,
)
SHAPES: Final = (*AFFINITY_SHAPES, PLAIN, SPREAD)


def gang(number: int, scheduler_name: str) -> Iterator[Manifest]:
    """Give the members of one gang: plain pods that are placed together."""
    for index in range(GANG_SIZE):
        member = pod(f"gang-{number}-{index}", {GROUP_LABEL: f"gang-{number}"}, cpu="20m", schedulerName=scheduler_name)
        member["metadata"]["annotations"] = {MINIMUM_ANNOTATION: str(GANG_SIZE)}
        yield member


def namespaces() -> Iterator[Manifest]:
    """Yield all namespaces."""
    for name in _BOTH:
        yield {"metadata": {"name": name}}
    for name in (*_SELECTED_NAMESPACES, "measure-ns-0"):
        yield {"metadata": {"name": name, "labels": _TEAM}}
