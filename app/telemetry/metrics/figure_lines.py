"""The resource figures of every node and of the cluster as text, all of one generation, made in steps.

At 5,000 nodes they are 60,000 lines and 9 MB, which would take the client library seconds. So the lines of a node are
kept, and made again only when its figures change. A scrape uses them by reference, without a copy.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from app.telemetry.metrics.resource_units import Figure, figures_of
from core.mirror.node_follower import NodeFollower
from core.mirror.node_info import NodeTable
from core.mirror.resource_figures import Figures

_NODE: Final = "kindred_node_resource"
_CLUSTER: Final = "kindred_cluster_resource"
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class _Kept(msgspec.Struct, frozen=True, gc=False):
    figures: Figures
    lines: bytes


class FigureLines:
    """Node name -> its figures and lines, as of the last scrape. Memory is bounded by the nodes in the mirror."""

    def __init__(self, nodes: NodeTable) -> None:
        self._known = nodes.known
        self._kept: dict[str, _Kept] = {}
        self._follower = NodeFollower(self._kept.keys())

    def steps(self) -> Iterator[None]:
        """Do most of the work of `text` in advance, in steps. Nodes may change between two steps."""
        for name in self._follower.steps(self._known):
            self._look(name)
            yield

    def text(self) -> list[bytes]:
        """Return the text of all nodes as they are now, in pieces."""
        for name in self._follower.rest(self._known):
            self._look(name)
        head = _head(_NODE, "Allocatable resources of a node and requests of its pods, by QoS class.")
        return [head, *(kept.lines for kept in self._kept.values())]

    def _look(self, name: str) -> None:
        info = self._known.values.get(name)
        if info is None:
            self._kept.pop(name, None)
            return
        figures, kept = info.figures, self._kept.get(name)
        if kept is None or kept.figures != figures:  # most events change a pod's status and no figure
            lines = _lines(_NODE, f',node="{_escaped(name)}"', figures_of(figures))
            self._kept[name] = _Kept(figures, lines)


def cluster_text(figures: Figures) -> bytes:
    """Return the text of the cluster's figures."""
    head = _head(_CLUSTER, "Allocatable resources of all nodes and requests of their pods, by QoS class.")
    return head + _lines(_CLUSTER, "", figures_of(figures))


def _head(name: str, documentation: str) -> bytes:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()


def _lines(name: str, more_labels: str, figures: Iterable[Figure]) -> bytes:
    return "".join(
        f'{name}{{class="{qos_class}",figure="{figure}"{more_labels},resource="{_escaped(resource)}",unit="{unit}"}} '
        f"{value}\n"
        for qos_class, figure, resource, unit, value in figures
    ).encode()


def _escaped(value: str) -> str:
    """Escape a label value for the text format."""
    return value.translate(_ESCAPES)
