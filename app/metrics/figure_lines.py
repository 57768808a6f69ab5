"""The resource figures of every node and of the cluster as text, in one pass over the nodes that others can interrupt.

At 5,000 nodes they are 100,000 lines and 14 MB, which the client library would take seconds to make; so the lines of a
node are kept, and made again only when its figures have changed. The cluster's are added up on the way: to follow all
nodes that changed since the last scrape at once, as `ClusterMirror.figures` does, was measured to take 40 ms.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from app.metrics.resource_units import Figure, figures_of
from core.mirror.node_info import NodeInfo, NodeTable
from core.mirror.resource_figures import Amounts, Figures

_NODE: Final = "kindred_node_resource"
_CLUSTER: Final = "kindred_cluster_resource"
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class _Kept(msgspec.Struct, frozen=True, gc=False):
    generation: int
    figures: Figures
    lines: bytes


class FigureLines:
    """Node name -> its figures and lines, as of the last scrape. Memory is bounded by the nodes that are known."""

    def __init__(self, nodes: NodeTable, *, of_nodes: bool) -> None:
        """Tell the figures of every node only if `of_nodes`, those of the cluster always."""
        self._nodes = nodes
        self._of_nodes = of_nodes
        self._kept: dict[str, _Kept] = {}

    def pieces(self) -> Iterator[bytes]:
        """Yield the text, a node at each step, be it empty. Nodes may change, come and go between the steps."""
        known = self._nodes.known.values
        for gone in self._kept.keys() - known.keys():
            del self._kept[gone]
        if self._of_nodes:
            yield _head(_NODE, "What a node offers to and what its pods ask of it, by QoS class.")
        sums = _Sums()
        for name in list(known):
            info = known.get(name)
            if info is not None:
                kept = self._kept_of(info)
                sums.add(kept.figures)
                yield kept.lines
        yield _head(_CLUSTER, "What the known nodes offer to and what their pods ask of them, by QoS class.")
        yield _lines(_CLUSTER, "", figures_of(sums.figures))

    def _kept_of(self, info: NodeInfo) -> _Kept:
        kept = self._kept.get(info.name)
        if kept is not None and kept.generation == info.generation:
            return kept
        figures = info.figures
        if kept is not None and kept.figures == figures:  # a pod's status, as with most changes
            lines = kept.lines
        elif self._of_nodes:
            lines = _lines(_NODE, f',node="{_escaped(info.name)}"', figures_of(figures))
        else:
            lines = b""
        kept = self._kept[info.name] = _Kept(info.generation, figures, lines)
        return kept


class _Sums:
    def __init__(self) -> None:
        self._sums: tuple[Amounts, Amounts, Amounts, Amounts] = ({}, {}, {}, {})

    def add(self, figures: Figures) -> None:
        for sums, amounts in zip(self._sums, msgspec.structs.astuple(figures), strict=True):
            for resource, amount in amounts.items():
                sums[resource] = sums.get(resource, 0) + amount

    @property
    def figures(self) -> Figures:
        return Figures(*self._sums)


def _head(name: str, documentation: str) -> bytes:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()


def _lines(name: str, more_labels: str, figures: Iterable[Figure]) -> bytes:
    return "".join(
        f'{name}{{class="{qos_class}",figure="{figure}"{more_labels},resource="{_escaped(resource)}",unit="{unit}"}} '
        f"{value}\n"
        for qos_class, figure, resource, unit, value in figures
    ).encode()


def _escaped(value: str) -> str:
    """Return a label value as the text format wants it between quotes."""
    return value.translate(_ESCAPES)
