"""Resource figures in the units of their metrics."""

import pytest

from app.telemetry.metrics.resource_units import figures_of, unit_of
from core.mirror.resource_figures import Figures


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        pytest.param("cpu", "core", id="cpu"),
        pytest.param("memory", "byte", id="memory"),
        pytest.param("ephemeral-storage", "byte", id="ephemeral-storage"),
        pytest.param("storage", "byte", id="storage"),
        pytest.param("hugepages-2Mi", "byte", id="hugepages"),
        pytest.param("pods", "integer", id="pods"),
        pytest.param("example.com/gpu", "integer", id="extended"),
        pytest.param("example.com/hugepages-2Mi", "integer", id="extended-that-looks-like-hugepages"),
        pytest.param("attachable-volumes-csi-disk", "integer", id="attachable-volumes"),
    ],
)
def test_each_resource_is_counted_in_its_unit(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit


def test_cpu_is_told_in_cores_and_all_else_as_it_is_held() -> None:
    figures = Figures({"cpu": 2500, "memory": 2**40 + 1, "pods": 110}, {}, {}, {})
    values = {figure.resource: figure.value for figure in figures_of(figures) if figure.value}
    assert values == {"cpu": 2.5, "memory": 2**40 + 1, "pods": 110}


def test_every_resource_that_any_figure_names_has_all_four_figures() -> None:
    figures = Figures({"cpu": 1000}, {"cpu": 250}, {"cpu": 750, "pods": 4}, {"pods": 1})
    assert [(each.resource, each.qos_class, each.figure, each.value) for each in figures_of(figures)] == [
        ("cpu", "guaranteed", "allocatable", 1.0),
        ("cpu", "guaranteed", "requested", 0.25),
        ("cpu", "best_effort", "allocatable", 0.75),
        ("cpu", "best_effort", "requested", 0.0),
        ("pods", "guaranteed", "allocatable", 0),
        ("pods", "guaranteed", "requested", 0),
        ("pods", "best_effort", "allocatable", 4),
        ("pods", "best_effort", "requested", 1),
    ]
