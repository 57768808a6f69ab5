"""A decision as plugins see it when they explain their part: the pod, the nodes, and what each plugin said of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from core.explaining.counted_terms import CountedTerm, PodSearch
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, IntpArray
from core.objects.node import Node
from core.objects.pod import Pod


class Decision(Protocol):
    """The results of all plugins for one pod and some nodes. Stale after the next event."""

    @property
    def mirror(self) -> ClusterMirror:
        """The mirror in which the plugins found nodes and pods."""

    @property
    def pod(self) -> Pod:
        """The pod, with all its fields."""

    @property
    def batch(self) -> NodeBatch:
        """The nodes of the request. All positions are places in it."""

    @property
    def known(self) -> IntpArray:
        """Positions of the nodes of the mirror, in the partition."""

    @property
    def fitting(self) -> IntpArray:
        """Positions of the nodes on which the pod fits."""

    @property
    def refusing(self) -> Mapping[str, BoolArray]:
        """Plugin -> the nodes that it fails without nominated pods, regardless of others, if there are any."""

    @property
    def search(self) -> PodSearch:
        """How many pods may still be searched for this decision."""

    @property
    def terms(self) -> Sequence[CountedTerm]:
        """The terms about other pods that take part in the decision, of all plugins."""

    def state_of(self, plugin: str) -> Any:  # noqa: ANN401  # each plugin has a type of its own
        """Return the PreFilter state of a plugin, or None if it is not enabled, skips the pod, or failed."""

    def node(self, position: int) -> Node | None:
        """Return a node of the mirror or of the request, or None if neither has it."""

    def nominated_on(self, position: int) -> Sequence[Pod]:
        """Return the pods nominated for a node that count there when this pod is judged."""
