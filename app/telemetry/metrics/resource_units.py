"""Resource figures in the units of metrics: cores, bytes or pieces, by class and figure.

Units have the names of kube-state-metrics. The unit of each resource is from k8s.io/kubernetes
pkg/scheduler/metrics/resources/resources.go. Resources keep their own names.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from core.mirror.resource_figures import Figures

_BYTES: Final = frozenset({"memory", "storage", "ephemeral-storage"})
_MILLI: Final = 1000
_ENTRIES: Final = 1024  # bounds the memory: a cluster can have any number of extended resources, but few at a time


class Figure(NamedTuple):
    """One sample."""

    qos_class: str
    figure: str
    resource: str
    unit: str
    value: float


def figures_of(figures: Figures) -> Iterator[Figure]:
    """Yield every figure of each resource in a table. Figures of 0 are exported too, or sums would have gaps."""
    tables = (
        ("guaranteed", "allocatable", figures.guaranteed_allocatable),
        ("guaranteed", "requested", figures.guaranteed_requested),
        ("best_effort", "allocatable", figures.best_effort_allocatable),
        ("best_effort", "requested", figures.best_effort_requested),
    )
    for resource in sorted({resource for _, _, amounts in tables for resource in amounts}):
        unit = unit_of(resource)
        for qos_class, figure, amounts in tables:
            amount = amounts.get(resource, 0)
            yield Figure(qos_class, figure, resource, unit, amount / _MILLI if unit == "core" else amount)


@lru_cache(maxsize=_ENTRIES)
def unit_of(resource: str) -> str:
    """Return the unit of a resource in metrics. The mirror has cpu in millicores."""
    if resource == "cpu":
        return "core"
    return "byte" if resource in _BYTES or resource.startswith("hugepages-") else "integer"
