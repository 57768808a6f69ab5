"""The devices of the cluster and what is allocated of them. Events keep both, so no request counts them.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go, and
k8s.io/dynamic-resource-allocation resourceslice/tracker/tracker.go (applyPatches) for rules of taints.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final

import numpy as np

from core.mirror.changes import NodeChange, ObjectChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import Int64Array, IntpArray
from core.objects.devices import AllocatedDevice, DeviceID, DeviceTaintRule, ResourceClaim, ResourceSlice
from core.objects.kinds import IMPLICIT_PREFIX, DeviceClass
from core.objects.node import Node
from core.objects.pod import Taint
from core.plugins.dynamicresources.alike import Aspect, Likeness, NodeNumbers, Outcomes, What
from core.plugins.dynamicresources.allocated import Shares, devices_had_by
from core.plugins.dynamicresources.claims import Selection
from core.plugins.dynamicresources.gates import Gates, gates_of
from core.plugins.dynamicresources.pools import (
    CounterAmounts,
    Pool,
    PoolDevice,
    PoolError,
    PoolID,
    Slices,
    Usage,
    Whole,
    built,
    in_order,
    shared,
)

_MAX_CONTENTS: Final = 16
_USUAL: Final = (Aspect(What.DEVICES, free=True),)
_FEW_SLICES: Final = 4
_FEW_POOLS: Final = 4
_FEW_DEVICES: Final = 64
"""Up to this many devices, what is in use of a pool is counted with the event, and else by the next request."""


class Inventory:
    """The pools of each node, and which devices are allocated."""

    hears: Final = (NodeChange, ObjectChange, RulesChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._outcomes: OrderedDict[Hashable, Outcomes] = OrderedDict()
        self.now = 1
        """The time of `changed_at`."""
        self.changed_at: Int64Array = np.ones(mirror.nodes.capacity, np.int64)
        """Slot -> when its pools, or what is allocated of them, last changed."""
        self.revision = 0
        """It grows with every change of devices, of what is allocated of them, and of classes."""
        self.nodes: dict[int, Node] = dict(mirror.nodes)
        """Slot -> node."""
        self._reset()

    def _reset(self) -> None:
        mirror = self._mirror
        self.revision += 1
        self.gates: Gates = gates_of(mirror.rules.release)
        self.alike = Likeness(self.gates)
        self._numbers = NodeNumbers(self._number)
        self._rules = [*mirror.objects(DeviceTaintRule).values()]
        self._slices = Slices(mirror.objects(ResourceSlice).values(), self.gates)
        self.taken: Counter[DeviceID] = Counter()
        self.shares: defaultdict[DeviceID, Shares] = defaultdict(Shares)
        self._pools: dict[PoolID, dict[tuple[str, ...], Pool]] = {}
        self._of_node: dict[int, tuple[Pool, ...] | PoolError] = {}
        self._alike: dict[Hashable, tuple[Pool, ...]] = {}
        self._wholes: dict[PoolID, dict[int, Whole | None]] = {}
        self._devices: dict[str, Sequence[PoolDevice]] = {}
        self._odd: set[PoolID] = set()
        self._uncertain = set(self._slices.counted)
        """Pools whose counters may have become odd, or no longer are."""
        self._seen_by: defaultdict[PoolID, set[int]] = defaultdict(set)
        self.extended: dict[str, DeviceClass] | None = None
        self.matching: dict[str, Any] = {}
        """Slice -> its devices that the class of an extended resource selects. See totals.py."""
        self.uses: Counter[PoolID] = Counter()
        """How often what is allocated of a pool with slices has changed. It begins again with the first slice."""
        self.made_for: dict[str, dict[str, ResourceClaim]] = {}
        """UID of a pod -> the claims that kube-scheduler made for its extended resources, by name."""
        self._outcomes.clear()
        self.selection = Selection(mirror.objects(DeviceClass), mirror.rules.release)
        for claim in mirror.objects(ResourceClaim).values():
            self._change_claim(None, claim)

    # Events.

    def changed(self, change: NodeChange | ObjectChange | RulesChange) -> None:
        """Take over a change."""
        if isinstance(change, NodeChange):
            self._change_node(change)
        elif isinstance(change, RulesChange):
            self._reset()
        elif change.kind is ResourceClaim:
            self._change_claim(change.before, change.after)
        elif change.kind is ResourceSlice:
            self._change_slice(change.before, change.after)
        elif change.kind is DeviceTaintRule:
            self.revision += 1
            self._rules = [*self._mirror.objects(DeviceTaintRule).values()]
            self._forget_pools()
        elif change.kind is DeviceClass:
            self._change_classes()

    def _change_node(self, change: NodeChange) -> None:
        before, after = change.before, change.after
        if change.slot >= len(self.changed_at):
            more = np.ones(self._mirror.nodes.capacity - len(self.changed_at), np.int64)
            self.changed_at = np.concatenate((self.changed_at, more))
        if after is None:
            self.nodes.pop(change.slot, None)
        else:
            self.nodes[change.slot] = after
        if before is None or after is None or before.labels != after.labels:
            self._of_node.pop(change.slot, None)
            self._touch((change.slot,))
            if after is not None and self._slices.has_own(after.name):
                self._look(change.slot)

    def _look(self, slot: int) -> None:
        """Read the pools of a node with slices of its own, because 5,000 of them would take the next request 0.3 s."""
        with suppress(PoolError):
            for pool in self.pools_of(slot, self.nodes[slot]):
                self.usage_of(pool)
                self.alike.key_of([pool], _USUAL)

    def _change_classes(self) -> None:
        self.revision += 1
        self.extended = None
        self.selection = Selection(self._mirror.objects(DeviceClass), self._mirror.rules.release)

    def _change_claim(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        for claim, sign in ((before, -1), (after, 1)):
            if claim is not None and claim.for_extended and claim.controller is not None:
                self._make(claim, claim.controller.uid, sign)
        freed, used = devices_had_by(before), devices_had_by(after)
        if freed == used:
            return  # most updates of claims are of statuses, and would make every verdict on devices anew
        self.revision += 1
        for each in freed:
            self._count(each, -1)
        for each in used:
            self._count(each, 1)
        for pool_id in dict.fromkeys((each.device.driver, each.device.pool) for each in (*freed, *used)):
            self._changed_use(pool_id)

    def _make(self, claim: ResourceClaim, pod_uid: str, sign: int) -> None:
        made = self.made_for.setdefault(pod_uid, {})
        if sign > 0:
            made[claim.full_name] = claim
        else:
            made.pop(claim.full_name, None)
        if not made:
            del self.made_for[pod_uid]

    def _count(self, each: AllocatedDevice, sign: int) -> None:
        device = each.device
        if self.gates.shares and each.share is not None:
            self._share(device, each.consumed, sign)
            return
        self.taken[device] += sign
        if not self.taken[device]:
            del self.taken[device]

    def _changed_use(self, pool_id: PoolID) -> None:
        if pool_id in self._slices.of_pool:
            self.uses[pool_id] += 1
        self._touch(self._seen_by.get(pool_id, ()))
        pools = self._pools.get(pool_id, {}).values()
        for pool in pools:
            pool.usage = None
            pool.numbers.clear()
            if pool.whole is not None:
                pool.whole.available = None
        if len(pools) <= _FEW_POOLS:
            for pool in pools:
                if len(pool.devices) <= _FEW_DEVICES:
                    self.usage_of(pool)

    def _share(self, device: DeviceID, consumed: Iterable[tuple[str, int]] | None, sign: int) -> None:
        shares = self.shares[device]
        shares.holders += sign
        if consumed is not None:
            shares.stating += sign
            for name, amount in consumed:
                shares.amounts[name] += sign * amount
        if not shares.holders:
            del self.shares[device]

    def _change_slice(self, before: ResourceSlice | None, after: ResourceSlice | None) -> None:
        self.revision += 1
        self._alike.clear()
        for each in (before, after):
            if each is None:
                continue
            if each is before:
                self._slices.remove(each)
            else:
                self._slices.put(each)
            pool_id = each.driver, each.pool
            if pool_id not in self._slices.of_pool:
                self.uses.pop(pool_id, None)
            self._pools.pop(pool_id, None)
            self._wholes.pop(pool_id, None)
            self._devices.pop(each.name, None)
            self.matching.pop(each.name, None)
            if self._slices.is_counted(each) or pool_id in self._slices.counted:
                self._uncertain.add(pool_id)
            if self._slices.is_shared(each):
                self._forget_what_nodes_see()
                continue
            slot = self._mirror.nodes.slots.get(each.nodes.node_name)
            for seeing in (*self._seen_by.pop(pool_id, ()), *(() if slot is None else (slot,))):
                self._of_node.pop(seeing, None)
                self._touch((seeing,))
            if each is after and each.slice_count <= _FEW_SLICES and slot is not None:
                self._look(slot)

    def _forget_pools(self) -> None:
        self._pools.clear()
        self._wholes.clear()
        self._devices.clear()
        self._uncertain.update(self._slices.counted)
        self._forget_what_nodes_see()

    def _touch(self, slots: Collection[int]) -> None:
        if slots:
            self.now += 1
            self.changed_at[list(slots)] = self.now

    def _forget_what_nodes_see(self) -> None:
        self._of_node.clear()
        self._seen_by.clear()
        self._alike.clear()
        self.now += 1
        self.changed_at[:] = self.now

    # The pools of a node.

    def pools_of(self, slot: int, node: Node) -> tuple[Pool, ...]:
        """Return the pools of a known node, in the order in which they are tried. Raises PoolError."""
        self._odd_pools()
        found = self._of_node.get(slot)
        if found is None:
            try:
                found = self.pools_seen_by(node)
            except PoolError as error:
                found = error
            else:
                for pool in found:
                    self._seen_by[pool.id].add(slot)
            self._of_node[slot] = found
        if isinstance(found, PoolError):
            raise found
        return found

    def has_read(self, slot: int) -> bool:
        """Return whether the pools of a node are known, so that `pools_of` takes no time."""
        return slot in self._of_node

    def pools_seen_by(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools of any node. Raises PoolError."""
        seen, key = self._slices.seen_by(node)
        found = self._alike.get(key)
        if found is None or key is None:
            odd = (pool_id for pool_id in self._odd_pools() if pool_id not in seen)
            listed = [self._pool(*each) for each in seen.items()]
            listed += [self._pool(pool_id, self._slices.only_counted(pool_id)) for pool_id in odd]
            found = in_order(pool for pool in listed if pool is not None)
            if key is not None:
                self._alike[key] = found
        return found

    def _odd_pools(self) -> Collection[PoolID]:
        """Return the pools of whose slices with counters every node is told that they cannot be used, as in 1.36."""
        changes = False
        while self._uncertain:
            pool_id = self._uncertain.pop()
            pool = None
            if pool_id in self._slices.counted:
                pool = self._pool(pool_id, self._slices.only_counted(pool_id))
            is_odd = pool is not None and not pool.can_be_used
            changes |= is_odd is not (pool_id in self._odd)
            (self._odd.add if is_odd else self._odd.discard)(pool_id)
        if changes:
            self._forget_what_nodes_see()
        return self._odd

    def _pool(self, pool_id: PoolID, slices: list[ResourceSlice]) -> Pool | None:
        """Return the pool of some slices, or None if there are newer ones that they do not include."""
        known = self._pools.setdefault(pool_id, {})
        slices = sorted(slices, key=attrgetter("name"))  # the first one says how many there are
        key = tuple([each.name for each in slices])
        pool = known.get(key)
        if pool is None:
            whole = self._whole(pool_id, slices)
            if whole is None:
                return None
            pool = known[key] = built(pool_id, slices, whole, self.gates, self.devices_of)
        return pool

    def _whole(self, pool_id: PoolID, slices: list[ResourceSlice]) -> Whole | None:
        if not self.gates.looks_further or len(slices) == slices[0].slice_count:
            return Whole(slices, self.gates, self.devices_of)
        known, generation = self._wholes.setdefault(pool_id, {}), slices[0].generation
        if generation not in known:
            every = self._slices.all_of(pool_id, generation)
            known[generation] = None if every is None else Whole(every, self.gates, self.devices_of)
        return known[generation]

    def devices_of(self, each: ResourceSlice) -> Sequence[PoolDevice]:
        """Return the devices of a slice, with all their taints."""
        devices = self._devices.get(each.name)
        if devices is None:
            tainted = zip(each.devices, self._taints(each), strict=True)
            devices = self._devices[each.name] = [PoolDevice(device, each, taints) for device, taints in tainted]
        return devices

    def _taints(self, each: ResourceSlice) -> Sequence[tuple[Taint, ...]]:
        if not self.gates.taints:
            return [()] * len(each.devices)
        rules = []
        if self.gates.taint_rules:
            rules = [rule for rule in self._rules if rule.is_for(each.driver, each.pool)]
        if not rules:
            return [device.taints for device in each.devices]
        return [
            (*device.taints, *[rule.taint for rule in rules if rule.device in (None, device.name)])
            for device in each.devices
        ]

    def usage_of(self, pool: Pool) -> Usage:
        """Return what is allocated of a pool."""
        usage = pool.usage
        if usage is None:
            usage = pool.usage = self._usage_of(pool)
            pool.usage_id = self.alike.id_of(usage)
        return usage

    def _usage_of(self, pool: Pool) -> Usage:
        taken = [position for position, each in enumerate(pool.devices) if each.id in self.taken]
        shares = [
            (position, self.shares[each.id].consumed)
            for position, each in enumerate(pool.devices)
            if each.id in self.shares
        ]
        used = frozenset(taken)
        free = tuple([position for position in range(len(pool.devices)) if position not in used])
        return shared(Usage(used, free, tuple(shares), () if pool.whole is None else self._available(pool.whole)))

    def _available(self, whole: Whole) -> CounterAmounts:
        """Return what devices in use, on any node, leave of the counters of a pool."""
        if whole.available is None:
            left = dict(whole.counters)
            for each in (device for devices in whole.devices for device in devices):
                for counter, amount in each.counters if self.is_allocated(each.id) else ():
                    left[counter] = left.get(counter, 0) - amount
            whole.available = shared(tuple(left.items()))
        return whole.available

    def is_allocated(self, device: DeviceID) -> bool:
        """Return whether a claim has the device, alone or with others."""
        return device in self.taken or device in self.shares

    @property
    def slices(self) -> Collection[ResourceSlice]:
        """All slices."""
        return self._mirror.objects(ResourceSlice).values()

    # Nodes that are alike.

    def groups(self, slots: IntpArray, aspects: Sequence[Aspect]) -> Mapping[Hashable | None, Sequence[int]]:
        """Return the nodes with each key, by their positions in `slots`. Those to which no other is alike have None."""
        return self._numbers.groups(slots, aspects, self.changed_at, self.now)

    def _number(self, aspect: Aspect, slot: int) -> int:
        try:
            pools = self.pools_of(slot, self.nodes[slot])
        except PoolError:
            return 0
        for pool in pools:
            self.usage_of(pool)
        return self.alike.number(aspect, pools)

    def outcomes_of(self, content: Hashable) -> Outcomes:
        """Return what is known of some claims."""
        self._odd_pools()  # changes what nodes see, so `changed_at` too
        found = self._outcomes.get(content)
        if found is None:
            found = self._outcomes[content] = Outcomes()
            if len(self._outcomes) > _MAX_CONTENTS:
                self._outcomes.popitem(last=False)
        return found

    def class_for(self, resource: str) -> DeviceClass | None:
        """Return the class that provides an extended resource: of several the newest, else the first by name.

        Source: k8s.io/dynamic-resource-allocation deviceclass/extendedresourcecache/extendedresourcecache.go.
        """
        if self.extended is None:
            self.extended = {}
            classes = sorted(self._mirror.objects(DeviceClass).values(), key=lambda each: each.name, reverse=True)
            for each in sorted(classes, key=lambda each: each.created):
                self.extended[IMPLICIT_PREFIX + each.name] = each
                if each.extended_resource:
                    self.extended[each.extended_resource] = each
        return self.extended.get(resource)
