"""A consistent view of the mirror for decisions that suppose something, such as preemption."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from core.mirror.disruption_budgets import DisruptionBudgets
from core.mirror.frozen_node_info import FrozenNodeInfo
from core.mirror.node_info import NodeTable
from core.mirror.object_stores import ObjectStores
from core.mirror.pod_columns import PodColumns
from core.objects.disruption import PodDisruptionBudget
from core.objects.pod import Pod

_Infos: TypeAlias = dict[str, FrozenNodeInfo]  # node name -> the node's value


class NodeNotInSnapshotError(KeyError):
    """The snapshot has no node of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"node {self.name} is not in the snapshot"


class WhatIfError(Exception):
    """What was to be supposed, or taken back, cannot be; all was left as it is."""


class _WhatIf(msgspec.Struct, frozen=True, gc=False):
    pod: Pod
    node_name: str
    victims: frozenset[str]


class Snapshot:
    """The known nodes with their pods, the PodDisruptionBudgets and the owners of pods, as of one generation.

    It is made empty and brought up to date by `ClusterMirror.update_snapshot`, at the cost of what has changed; between
    two updates events do not reach it. Snapshots share the values of nodes, and an unchanged node keeps the very same
    one. All that it lists is a copy, in no particular order of the nodes.

    `assume` and `forget` suppose something of the snapshot alone: the mirror never notices, and the next update drops
    what is still supposed then.
    """

    def __init__(self) -> None:
        self.generation = 0
        """The mirror's when it was last updated; what the mirror has changed since then is not in here."""
        self._source: ObjectStores | None = None
        self._infos: _Infos = {}
        self._with_affinity: _Infos = {}
        self._with_required_anti_affinity: _Infos = {}
        self._in_partition: _Infos = {}
        self._out_of_partition: _Infos = {}
        self._budgets = DisruptionBudgets()
        self._what_ifs: dict[str, _WhatIf] = {}  # uid of the supposed pod -> what is supposed with it
        self._real: _Infos = {}  # the values of nodes of which something is supposed

    # Nodes.

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return len(self._infos)

    def list(self) -> tuple[FrozenNodeInfo, ...]:
        """Return every node."""
        return tuple(self._infos.values())

    def get(self, name: str) -> FrozenNodeInfo:
        """Return one node. Raises NodeNotInSnapshotError, a KeyError, where there is none of that name."""
        try:
            return self._infos[name]
        except KeyError:
            raise NodeNotInSnapshotError(name) from None

    def have_pods_with_affinity(self) -> tuple[FrozenNodeInfo, ...]:
        """Return the nodes that have a pod with an inter-pod affinity or anti-affinity term."""
        return tuple(self._with_affinity.values())

    def have_pods_with_required_anti_affinity(self) -> tuple[FrozenNodeInfo, ...]:
        """Return the nodes that have a pod with a required inter-pod anti-affinity term."""
        return tuple(self._with_required_anti_affinity.values())

    def in_partition(self) -> tuple[FrozenNodeInfo, ...]:
        """Return the nodes in the scheduler's partition."""
        return tuple(self._in_partition.values())

    def out_of_partition(self) -> tuple[FrozenNodeInfo, ...]:
        """Return the nodes out of the scheduler's partition."""
        return tuple(self._out_of_partition.values())

    # PodDisruptionBudgets; the rules are DisruptionBudgets'.

    def pdb_items(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every budget, in the order of their full names."""
        return self._budgets.all()

    def pdbs_of_pod(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that cover a pod, in the order of their full names."""
        return self._budgets.of_pod(pod)

    def pdbs_of_owner(self, kind: str, full_name: str) -> tuple[PodDisruptionBudget, ...] | None:
        """Return the budgets that cover pods with an owner's labels; None if no such owner is known."""
        return self._budgets.of_owner(kind, full_name)

    def owners_of_pdb(self, full_name: str, kind: str) -> tuple[str, ...]:
        """Return the full names, sorted, of the owners of a kind that a budget covers; none if it is unknown."""
        return self._budgets.owners_of(full_name, kind)

    def owner_labels(self, kind: str, full_name: str) -> Mapping[str, str] | None:
        """Return the labels of an owner; None if no such owner is known."""
        return self._budgets.owner_labels(kind, full_name)

    # What if.

    def assume(self, pod: Pod, node_name: str, victims: Collection[str] = ()) -> None:
        """Suppose a pod on a node, and that the victims (uids of pods on that node, supposed ones too) are gone.

        Raises NodeNotInSnapshotError, or WhatIfError if the pod is on that node, is a victim there or is supposed
        anywhere, or if a victim is not on the node (any more).
        """
        info = self.get(node_name)
        gone = {uid for what_if in self._what_ifs.values() if what_if.node_name == node_name for uid in what_if.victims}
        if pod.uid in self._what_ifs or pod.uid in info.pods or pod.uid in gone:
            raise WhatIfError(
                f"pod {pod.full_name} ({pod.uid}) is there, or supposed, already: not on {node_name} again"
            )
        missing = [uid for uid in victims if uid not in info.pods]
        if missing:
            raise WhatIfError(f"no pod {', '.join(missing)} on {node_name} that could make room for {pod.full_name}")
        self._what_ifs[pod.uid] = _WhatIf(replace(pod, node_name=node_name), node_name, frozenset(victims))
        self._suppose(node_name)

    def forget(self, uid: str) -> None:
        """Take back what is supposed with a pod: it goes, its victims return. The order of several does not matter.

        Raises WhatIfError if nothing is supposed with it.
        """
        what_if = self._what_ifs.pop(uid, None)
        if what_if is None:
            raise WhatIfError(f"nothing is supposed with pod {uid}")
        self._suppose(what_if.node_name)

    def _suppose(self, node_name: str) -> None:
        what_ifs = [what_if for what_if in self._what_ifs.values() if what_if.node_name == node_name]
        real = self._real.setdefault(node_name, self._infos[node_name])
        if not what_ifs:
            self._put(self._real.pop(node_name))
            return
        victims = frozenset(uid for what_if in what_ifs for uid in what_if.victims)
        self._put(real.supposing([what_if.pod for what_if in what_ifs], victims))

    # Updates.

    def update(self, nodes: NodeTable, pods: PodColumns, objects: ObjectStores, generation: int) -> None:
        """Follow a mirror to its present generation, as ClusterMirror.update_snapshot asks.

        Raises ValueError for another mirror than the one that it followed before.
        """
        if self._source not in (None, objects):
            raise ValueError("a snapshot follows one mirror and no other")
        self._source = objects
        self._what_ifs.clear()
        for real in self._real.values():
            self._put(real)
        self._real.clear()
        for name in nodes.known.deleted_since(self.generation, self._infos):
            self._drop(name)
        for info in nodes.known.changed_since(self.generation):
            self._put(nodes.frozen(info, pods.pods))
        self._budgets.follow(objects, self.generation)
        self.generation = generation

    def _put(self, info: FrozenNodeInfo) -> None:
        self._infos[info.name] = info
        _keep(self._with_affinity, info, belongs=bool(info.pods_with_affinity))
        _keep(self._with_required_anti_affinity, info, belongs=bool(info.pods_with_required_anti_affinity))
        _keep(self._in_partition, info, belongs=info.in_partition)
        _keep(self._out_of_partition, info, belongs=not info.in_partition)

    def _drop(self, name: str) -> None:
        for infos in (
            self._infos,
            self._with_affinity,
            self._with_required_anti_affinity,
            self._in_partition,
            self._out_of_partition,
        ):
            infos.pop(name, None)


def _keep(infos: _Infos, info: FrozenNodeInfo, *, belongs: bool) -> None:
    if belongs:
        infos[info.name] = info
    else:
        infos.pop(info.name, None)
