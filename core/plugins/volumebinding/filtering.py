"""Whether a node can reach the volumes of a pod, judged once for all equal nodes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (FindPodVolumes, checkBoundClaims,
findMatchingVolumes, checkVolumeProvisions, tryTranslatePVToCSI).
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from core.framework.interface import SUCCESS, Code, Status, text_of
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, labels_of
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.mirror.work import Work
from core.objects.csi_migration import TranslationError, is_migratable, translate_affinity
from core.objects.volumes import (
    NO_PROVISIONER,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.claims import (
    Claims,
    FreeVolumes,
    MigratedPlugins,
    Offers,
    Room,
    Storage,
    label_keys,
    score_of,
)

# For one claim without a volume: the volumes that it could take (k8s.io/component-helpers storage/volume/pv_helpers.go:
# FindMatchingVolume), and where one could be created for it (binder.go: checkVolumeProvisions, hasEnoughCapacity).

NAME: Final = "VolumeBinding"
BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"

UNITS: Final = 700
"""Work of a check of one volume, see core.mirror.work."""
FIELD: Final = "spec.volumes"


class Wish:
    """The requirements of a claim on a volume, except for its size. Claims with equal requirements share a wish."""

    def __init__(self, free: FreeVolumes, claim: PersistentVolumeClaim, work: Work) -> None:
        self._claim = claim
        self.free = free
        # Volumes that no label excludes are checked once, not for every node.
        work.spend(UNITS * free.by_topology.loose, FIELD, free.by_topology.loose)
        self.anywhere = free.by_topology.anywhere(self.accepts)

    def accepts(self, volume: PersistentVolume) -> bool:
        """Return whether a free volume is suitable, apart from its size."""
        claim = self._claim
        return (
            volume.is_alike(claim)
            and claim.access_modes <= volume.access_modes
            and claim.selector.matches(volume.labels)
        )


class MatchingVolumes:
    """The volumes that a claim could take, best first."""

    def __init__(self, offers: Offers, wish: Wish, claim: PersistentVolumeClaim) -> None:
        # Upstream takes volumes of one size in the order of a map.
        self._reserved = sorted(
            (
                each
                for each in offers.reserved(claim)
                if each.capacity >= (claim.requested or 0)
                and each.is_alike(claim)
                and each.storage_class == claim.storage_class
            ),
            key=lambda volume: volume.name,
        )
        self._wish = wish
        self._start = wish.free.first_of(claim.requested or 0)

    @property
    def none(self) -> bool:
        """Whether the claim has no volume on any node."""
        return not self._reserved and self._start >= len(self._wish.free)

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return self._wish.free.by_topology.keys.union(*(label_keys(volume.node_affinity) for volume in self._reserved))

    def find(self, labels: Mapping[str, str], taken: Collection[str], work: Work) -> PersistentVolume | None:
        """Return the volume for a node, or None if each is taken.

        If a volume is reserved for the claim, no other volume is returned, even if the node cannot reach the reserved
        one.
        """
        for volume in self._reserved:
            if volume.name not in taken:
                reached = volume.node_affinity is None or volume.node_affinity.matches(labels)
                return volume if reached else None
        wish, looks = self._wish, 1
        try:
            for volume in wish.free.by_topology.reached(labels, start=self._start, anywhere=wish.anywhere):
                looks += 1
                if volume.name not in taken and wish.accepts(volume):
                    return volume
            return None
        finally:
            work.spend(UNITS * looks, FIELD, len(taken) + 1)


class Provisioning:
    """Where volumes of a class could be created."""

    def __init__(self, mirror: ClusterMirror, offers: Offers, storage_class: StorageClass) -> None:
        self._possible = storage_class.provisioner not in NO_PROVISIONER
        self._topologies = storage_class.allowed_topologies
        self._room: Room | None = None  # None: capacity is not limited
        driver = mirror.objects(CSIDriver).get(storage_class.provisioner)
        if driver is not None and driver.storage_capacity:
            self._room = offers.room(storage_class.name)

    @property
    def by_size(self) -> bool:
        """Whether the result depends on the size of the volume."""
        return self._room is not None

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return label_keys(self._topologies) | (set() if self._room is None else self._room.keys)

    def conflict(self, labels: Mapping[str, str], requested: int | None) -> str:
        """Return why no volume of the size (None: any) can be created for a node, or the empty text if one can."""
        if not self._possible or (self._topologies is not None and not self._topologies.matches(labels)):
            return BIND_CONFLICT
        if self._room is None or requested is None:
            return ""
        largest = self.capacity(labels)
        return NOT_ENOUGH_SPACE if largest is None or (largest.limit or 0) < requested else ""

    def capacity(self, labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        """Return the largest published capacity for a volume on a node, or None if none is published or needed.

        Upstream takes the first sufficient capacity, in the order of a map.
        """
        return None if self._room is None else self._room.largest(labels)


NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

_REASONS: Final = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING)
"""In the order of the reasons."""


class NodeView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node that the plugin reads.

    `migrated_plugins` are the in-tree plugins whose volumes the node attaches by CSI. `selected` is true if claims of
    the pod are being provisioned for the node.
    """

    labels: Mapping[str, str]
    migrated_plugins: AbstractSet[str] = frozenset()
    selected: bool = False


class BoundVolume:
    """The volume of a bound claim, with its own affinity and the affinity that its CSI driver gives it."""

    def __init__(self, volume: PersistentVolume) -> None:
        self._affinity = volume.node_affinity
        self._translated = volume.node_affinity
        self._error = ""
        self.plugin = ""
        """The in-tree plugin whose migration affects the result. Empty for none."""
        if volume.source is not None and is_migratable(volume.source):
            self.plugin = volume.source.plugin
            try:
                self._translated = translate_affinity(volume)
            except TranslationError as error:
                self._error = f"could not translate pv: {error}"

    @property
    def reach(self) -> Hashable:
        """The affinity that decides which nodes can reach the volume."""
        return self._affinity, self._translated, self._error, self.plugin

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return label_keys(self._affinity) | label_keys(self._translated)

    def reached_from(self, node: NodeView) -> bool:
        """Return whether a node can reach the volume. Raises TranslationError."""
        affinity = self._affinity
        if self.plugin in node.migrated_plugins:
            if self._error:
                raise TranslationError(self._error)
            affinity = self._translated
        return affinity is None or affinity.matches(node.labels)


class Step(msgspec.Struct, frozen=True):
    """One waiting claim: the volumes that it could take (None: none), or how one could be created."""

    storage_class: str
    volumes: MatchingVolumes | None
    provisioning: Provisioning
    requested: int | None


class UnboundClaims:
    """The claims of a pod that wait for it, with volumes and capacity for them."""

    def __init__(self, mirror: ClusterMirror, claims: Claims) -> None:
        self._work = mirror.work
        self._selected = [claim for claim in claims if claim.selected_node is not None]
        # The smallest claim first, so that each takes the smallest volume. Claims of one size stay in the pod's order.
        self._wanting = sorted(
            (claim for claim in claims if claim.selected_node is None), key=lambda claim: claim.requested or 0
        )
        self._steps = [*self._made(mirror, set())]
        self._mirror = mirror

    @property
    def selected_nodes(self) -> set[str | None]:
        """The names of the nodes for which claims are being provisioned. The pod fits no other node."""
        return {claim.selected_node for claim in self._selected}

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        volumes = [step.volumes.keys for step in self._steps if step.volumes is not None]
        provisioning = {id(step.provisioning): step.provisioning for step in self._steps}
        return set[str]().union(*volumes, *(each.keys for each in provisioning.values()))

    @property
    def error(self) -> str:
        """Why no volume can be looked for. Empty if there is no error."""
        for claim in self._wanting:
            if claim.volume_attributes_class and not self._mirror.rules.volume_attributes_classes:
                unsupported = f"unsupported volumeAttributesClassName is set on claim {claim.full_name}"
                return f"{unsupported} when the feature-gate VolumeAttributesClass is disabled"
            if claim.selector_error:
                problem = text_of(self._mirror, claim.selector_error)
                return f"error creating internal label selector for claim: {claim.full_name}: {problem}"
        return ""

    def conflict(self, node: NodeView) -> str:
        """Return why a node has no volumes for the claims, or the empty text if it has."""
        if self._selected and not node.selected:
            return BIND_CONFLICT
        taken: set[str] = set()
        self._work.spend(UNITS * len(self._steps), FIELD, len(self._steps))
        for step in self._steps:
            volume = None if step.volumes is None else step.volumes.find(node.labels, taken, self._work)
            if volume is not None:
                taken.add(volume.name)
            elif conflict := step.provisioning.conflict(node.labels, step.requested):
                return conflict
        return ""

    def storage_on(self, node: NodeView) -> Mapping[str, Storage]:
        """Return by class the storage that the claims would take of a node that fits.

        If any claim takes an existing volume, only such claims count. Else the claims with a new volume count.
        """
        taken: set[str] = set()
        there: defaultdict[str, Storage] = defaultdict(Storage)
        made: defaultdict[str, Storage] = defaultdict(Storage)
        self._work.spend(UNITS * len(self._all_steps), FIELD, len(self._all_steps))
        for step in self._all_steps:
            volume = None if step.volumes is None else step.volumes.find(node.labels, taken, self._work)
            if volume is not None:
                taken.add(volume.name)
                there[volume.storage_class].add(step.requested or 0, volume.capacity)
            elif step.requested is not None and (room := step.provisioning.capacity(node.labels)) is not None:
                made[step.storage_class].take_from(step.requested, room.capacity)
        return there or made

    def taken_on(self, node: NodeView) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume | None]]:
        """Yield each claim with the volume that it takes on a node that fits, or None if one is created for it."""
        taken: set[str] = set()
        for claim, step in zip((*self._selected, *self._wanting), self._all_steps, strict=True):
            volume = None if step.volumes is None else step.volumes.find(node.labels, taken, self._work)
            if volume is not None:
                taken.add(volume.name)
            yield claim, volume

    @cached_property
    def _all_steps(self) -> Sequence[Step]:
        """The step for each claim, including equal ones."""
        return [*self._made(self._mirror, None)]

    def _made(self, mirror: ClusterMirror, seen: set[tuple[str, int | None]] | None) -> Iterator[Step]:
        """Yield the steps for the claims, in their order.

        With `seen`, steps with an equal result are yielded once, and `seen` records them.
        """
        offers = mirror.derived(Offers)
        classes = mirror.objects(StorageClass)  # each claim has one, else it would not wait for a consumer
        of_classes: dict[str, Provisioning] = {}
        wishes: dict[Hashable, Wish] = {}
        for claim in (*self._selected, *self._wanting):
            name = claim.storage_class
            if name not in of_classes:
                of_classes[name] = Provisioning(mirror, offers, classes[name])
            provisioning, volumes = of_classes[name], None
            if claim.selected_node is None:
                modes = claim.volume_mode, claim.access_modes, claim.volume_attributes_class
                facts = name, modes, claim.selector
                if facts not in wishes:
                    wishes[facts] = Wish(offers.free(name), claim, self._work)
                volumes = MatchingVolumes(offers, wishes[facts], claim)
            if volumes is not None and not volumes.none:
                yield Step(name, volumes, provisioning, claim.requested)
                continue
            to_make = name, claim.requested if provisioning.by_size else None
            if seen is None or to_make not in seen:
                yield Step(name, None, provisioning, claim.requested)
            if seen is not None:
                seen.add(to_make)


class PodVolumes:
    """The volumes of one incoming pod, as requirements on a node. Stale after the next event."""

    def __init__(self, mirror: ClusterMirror, bound_claims: Claims, unbound: Claims) -> None:
        volumes = mirror.objects(PersistentVolume)
        found = [volumes.get(claim.volume) for claim in bound_claims]
        bound = [None if volume is None else BoundVolume(volume) for volume in found]
        # In the order of the pod. Volumes that the same nodes can reach occur once.
        self._bound = [*{None if each is None else each.reach: each for each in bound}.values()]
        self._work = mirror.work
        self._unbound = UnboundClaims(mirror, unbound) if unbound else None

    @property
    def selected_nodes(self) -> set[str | None]:
        """The names of the nodes for which claims are being provisioned."""
        return set() if self._unbound is None else self._unbound.selected_nodes

    @property
    def keys(self) -> tuple[str, ...]:
        """The node labels, by key, that decide."""
        bound = [volume.keys for volume in self._bound if volume is not None]
        return tuple(sorted(set[str]().union(*bound, () if self._unbound is None else self._unbound.keys)))

    @property
    def reads_migration(self) -> bool:
        """Whether the result depends on the in-tree plugins that a node attaches by CSI."""
        return any(volume is not None and volume.plugin for volume in self._bound)

    def judge(self, node: NodeView) -> Status:
        """Return the verdict on a node."""
        try:
            conflicts = {self._bound_conflict(node)}
        except TranslationError as error:
            return Status(Code.ERROR, (str(error),))
        if self._unbound is not None:
            # Upstream searches for volumes only on the selected nodes, so on other nodes it does not see the error.
            elsewhere = bool(self.selected_nodes) and not node.selected
            if self._unbound.error and not elsewhere:
                return Status(Code.ERROR, (self._unbound.error,))
            conflicts.add(self._unbound.conflict(node))
        reasons = tuple(reason for reason in _REASONS if reason in conflicts)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons) if reasons else SUCCESS

    def taken_on(self, node: NodeView) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume | None]]:
        """Yield each claim that waits for the pod, as `UnboundClaims.taken_on` does."""
        if self._unbound is not None:
            yield from self._unbound.taken_on(node)

    def score(self, node: NodeView) -> int:
        """Return how little of its storage a node would give to the pod, 0 to 100, or 0 if the node does not fit."""
        if self._unbound is None or self.judge(node) is not SUCCESS:
            return 0
        return score_of(self._unbound.storage_on(node))

    def _bound_conflict(self, node: NodeView) -> str:
        self._work.spend(UNITS * len(self._bound), FIELD, len(self._bound))
        for volume in self._bound:
            if volume is None:
                return VOLUME_MISSING
            if not volume.reached_from(node):
                return NODE_CONFLICT
        return ""


def node_views(mirror: ClusterMirror, volumes: PodVolumes, batch: NodeBatch) -> tuple[IntpArray, Sequence[NodeView]]:
    """Return for each node the index of its view in the returned list of distinct views."""
    keys = volumes.keys
    combined, labels = _label_values(mirror, keys, batch)
    plugins = [frozenset[str]()]
    if volumes.reads_migration:
        places, plugins = mirror.derived(MigratedPlugins).of(batch)
        combined = combined * len(plugins) + places
    selected = volumes.selected_nodes
    combined = combined * 2 + (_named(mirror, selected, batch) if selected else 0)
    distinct, places_of_views = np.unique(combined, return_inverse=True)
    views = [
        NodeView(labels_of(keys, labels[each // 2 // len(plugins)]), plugins[each // 2 % len(plugins)], bool(each % 2))
        for each in distinct.tolist()
    ]
    return places_of_views, views


def _label_values(
    mirror: ClusterMirror, keys: tuple[str, ...], batch: NodeBatch
) -> tuple[Int64Array, list[LabelValues | None]]:
    values: list[LabelValues | None] = []

    def number(each: LabelValues | None) -> int:
        values.append(each)
        return len(values) - 1

    return mirror.derived(LabelProjections).of(keys).judged(batch, number), values


def _named(mirror: ClusterMirror, names: set[str | None], batch: NodeBatch) -> BoolArray:
    """Return for each node whether `names` has its name and no other."""
    if len(names) > 1:
        return np.zeros(len(batch), np.bool_)
    (name,) = names
    named: BoolArray = batch.slots == mirror.nodes.slots.get(name or "", NO_SLOT)  # NO_SLOT is corrected below
    for position in batch.unmirrored:
        named[position] = batch.names[position] == name
    return named


class BindingState(msgspec.Struct, frozen=True):
    """A pod's volumes, with the mirror. Stale after the next event."""

    mirror: ClusterMirror
    volumes: PodVolumes
