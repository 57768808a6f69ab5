"""Forks: tentative changes of the mirror, which plugins treat as real until they are undone.

Explanations ("what if"), the dry run of preemption and the placing of gangs use them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from core.events import Object
from core.mirror.changes import Change, Listeners, NodeChange, PodChange
from core.mirror.generation_store import ObjectStores
from core.mirror.node_info import NO_SLOT
from core.mirror.placement import Placement
from core.objects.node import Node
from core.objects.pod import NOT_WAITING, Pod, counted


class ForkError(Exception):
    """A change cannot be supposed or undone. The state was not changed."""


class _Removed(msgspec.Struct, frozen=True, gc=False):
    """A pod is gone. The loss of a zone has such a step and a `_Placed` for 50,000 pods, so that both have no pod."""

    row: int
    slot: int
    """The slot of its node."""
    as_running: bool
    """Plugins received a pod that does not terminate."""
    listeners: int
    """How many listeners have heard of it. Later ones come behind them."""


class _Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod is placed."""

    row: int
    covered: int | None
    """The row that it had before, because the mirror also holds it elsewhere."""


class _Other(NamedTuple):
    """A node or an object is there, gone or changed."""

    undo: Callable[[], None]
    changed: tuple[Object, Object] | None = None
    """The object before and after the step."""
    adjust: Callable[[Object], Object] | None = None
    """What the step does to that object, if it does so to any state of it."""


_Step: TypeAlias = _Removed | _Placed | _Other


class Fork:
    """Supposes pods gone or on other nodes, nodes new, gone or in another state, and new objects such as claims.

    A fork holds until the `with` block ends, or until `revert_to` undoes it to a `savepoint`. Plugins that are
    evaluated afresh in the block give the results for the supposed state: term counters, columns and all states derived
    from the mirror follow it, and batches find the nodes by name. The rest of the mirror stays as it is:

    - Removed pods keep their rows, like pods on an unknown node. Placed pods are in no NodeInfo.
    - No generation is taken, so figures and copies do not read any node again.
    - Other listeners, such as the equivalence cache, get no event, so no cell becomes invalid.
    - Dumps in the block show a mixture of both states.

    With `cache_follows`, all listeners get every step as a change, and every undo as another one. Then cached results
    equal fresh ones in the block and after it, at the cost of the cells that become invalid. In such a block,
    `ClusterMirror.assume_placed` assumes the placed pods, so that they stay.

    Two traces remain afterwards:

    - Versions stay advanced. A counter that counted a supposed pod has a new version, so results for the old version
      are computed again. To restore the version would be wrong: a result for the supposed state could be stored under a
      number that a later change reaches. The same applies to `NodeTable.epoch`, if nodes were supposed.
    - Capacity stays grown: of tables and columns, free rows of pods, ids of topology values, and the width of names.
      Counters and derived states that were created in the block stay, and are correct.

    In the block, the mirror must not be changed, except between `suspend` and `resume`. Without `cache_follows`, the
    cache must not be used, because it would store supposed results. Batches stay valid until the next step or undo that
    adds or removes a node. Another Fork may begin in the block, and must end before it. It may have `cache_follows`
    only if the outer one has.

    `after_pre_filter` is for pods that kube-scheduler supposes between PreFilter and Filter. It reports them to plugins
    by AddPod and RemovePod.
    """

    def __init__(
        self,
        placement: Placement,
        objects: ObjectStores,
        followers: Listeners,
        *,
        after_pre_filter: bool = False,
        cache_follows: bool = False,
    ) -> None:
        """Send each step to `followers`: all listeners if `cache_follows`, else the derived states."""
        self._placement = placement
        self._pods = placement.pods.pods
        self._objects = objects
        self._followers = followers
        self._after_pre_filter = after_pre_filter
        self._cache_follows = cache_follows
        self._steps: list[_Step] = []
        self._savepoint = 0  # steps up to the last one
        self._suspended: list[Pod | _Other] = []  # pods with their nodes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.revert_to(0)

    def savepoint(self) -> int:
        """Return a savepoint: the present state, for `revert_to`."""
        self._savepoint = len(self._steps)
        return self._savepoint

    def revert_to(self, savepoint: int) -> None:
        """Undo all steps since a savepoint, and invalidate later ones. 0 is the beginning of the block."""
        while len(self._steps) > savepoint:  # in reverse order: a pod must leave a node before the node is removed
            self._undo(self._steps.pop())
        self._savepoint = min(self._savepoint, savepoint)

    def suspend(self) -> None:
        """Undo all steps until `resume`, so that the mirror may change.

        There must be no steps but of `place`, `change_object` and `adjust_object`.
        """
        self._suspended = [
            self._pods[step.row] if isinstance(step, _Placed) else step
            for step in self._steps
            if not isinstance(step, _Removed)
        ]
        self.revert_to(0)

    def resume(self) -> None:
        """Take the steps again that `suspend` undid. Savepoints are valid again.

        Nothing is judged anew. Raises ForkError if a step is no longer possible, or if an object is not as it was. Then
        the fork is of no use.
        """
        suspended, self._suspended = self._suspended, []
        for step in suspended:
            if isinstance(step, Pod):
                self.place(step, step.node_name)
            elif step.changed is not None and step.adjust is not None:
                self.adjust_object(step.changed[0], step.adjust)
            elif step.changed is not None:
                before, after = step.changed
                if self._object(after) != before:
                    raise ForkError(f"{type(after).__name__} {after.full_name} cannot be changed again: it is another")
                self.change_object(after)

    @property
    def placed(self) -> Sequence[Pod]:
        """The pods of all `place` steps with their nodes, in order, including pods that a later step has removed."""
        return [self._pods[step.row] for step in self._steps if isinstance(step, _Placed)]

    @property
    def filled(self) -> frozenset[str]:
        """The names of the nodes of these pods."""
        return frozenset(self._pods.nodes[step.row] for step in self._steps if isinstance(step, _Placed))

    def commit(self) -> list[Pod]:
        """Add the placed pods to their NodeInfos, undo changes of objects, and forget the steps.

        Called by `ClusterMirror.assume_placed`. Raises ForkError if there are other steps, or without `cache_follows`.
        """
        placed = [*self.placed]
        changed = [step for step in self._steps if isinstance(step, _Other) and step.changed]
        if len(placed) + len(changed) < len(self._steps) or not self._cache_follows:
            raise ForkError("the supposition cannot be kept: it has more than pods, or the cache does not follow")
        for step in reversed(changed):
            step.undo()
        self._steps.clear()
        self._savepoint = 0
        for pod in placed:
            self._placement.join(self._placement.pods.rows[pod.uid], pod)
        return placed

    def remove(self, pod: Pod, *, as_running: bool = False) -> None:
        """Suppose a pod gone. Its UID identifies it, and the mirror's state of the pod applies.

        With `as_running`, derived states receive the change of a pod that does not terminate, even if this pod does.
        Raises ForkError if the pod is on no known node, or is already gone.
        """
        slot = self._slot(pod.uid)
        if slot == NO_SLOT:
            raise ForkError(f"pod {pod.full_name} ({pod.uid}) cannot be removed: {self._whereabouts(pod.uid)}")
        gone = _as_reported(self._stored_pod(pod.uid), as_running=as_running)
        row = self._placement.pods.rows[pod.uid]
        self._placement.displace(row)
        self._steps.append(_Removed(row, slot, as_running, len(self._followers.get(PodChange, ()))))
        self._tell(self._pod_change(slot, gone, None))

    def put_back(self, uid: str) -> None:
        """Restore a pod that is supposed gone.

        Raises ForkError for another pod, if it is placed again or its node is gone, and if it was gone at the last
        savepoint.
        """
        at = self._removal(uid)
        if at is None or self._slot(uid) != NO_SLOT:
            raise ForkError(f"pod {uid} cannot be put back: it is not gone")
        if at < self._savepoint:
            raise ForkError(f"pod {uid} cannot be put back: it was gone at the last mark")
        step = self._steps[at]
        node_name = self._stored_pod(uid).node_name
        if isinstance(step, _Removed) and self._placement.nodes.slots.get(node_name) != step.slot:
            raise ForkError(f"pod {uid} cannot be put back: its node is gone")
        self._undo(self._steps.pop(at))

    def place(self, pod: Pod, node_name: str) -> Pod:
        """Suppose a pod on a known or supposed node, whichever node it names. Return it, counted, as if bound there.

        Raises ForkError for an unknown node and for a pod that has ended. A pod of the mirror must be supposed gone
        first, and not `as_running`.
        """
        why_not = self._why_not_placed(pod, node_name)
        if why_not:
            raise ForkError(f"pod {pod.full_name} ({pod.uid}) cannot be placed on {node_name or 'no node'}: {why_not}")
        name = self._placement.nodes.infos[node_name].name  # one text for all pods of a node
        placed = counted(replace(pod, node_name=name, waiting=NOT_WAITING), self._placement.counting)
        self._steps.append(_Placed(*self._placement.add_tentative_pod(placed)))
        self._tell(self._pod_change(self._placement.nodes.slots[node_name], None, placed))
        return placed

    def add_node(self, node: Node) -> None:
        """Suppose a new node. Pods of the mirror that name it count there.

        Raises ForkError if a node of that name is known or supposed, or supposed gone.
        """
        known = self._placement.nodes.infos.get(node.name)
        if known is not None and (known.node is not None or known.is_withdrawn):
            there = "is one of that name" if known.node is not None else "was one of that name, which is supposed gone"
            raise ForkError(f"node {node.name} cannot be added: there {there}")
        info = self._placement.add_tentative_node(node)
        self._steps.append(_Other(partial(self._take_node, node)))
        pods = [self._pods[row] for row in info.rows]
        self._tell(NodeChange(info.slot, None, node), *(PodChange(info.slot, None, pod) for pod in pods))

    def remove_node(self, name: str) -> None:
        """Suppose that a known or supposed node is gone. Its pods are then like pods on an unknown node.

        Raises ForkError if there is no such node.
        """
        info = self._placement.nodes.infos.get(name)
        if info is None or info.node is None:
            raise ForkError(f"node {name} cannot be removed: there is no such node")
        node, slot, place = info.node, info.slot, [*self._placement.nodes.slots].index(name)
        rows = self._placement.take_out_node(info)
        self._steps.append(_Other(partial(self._bring_node_back, node, slot, rows, place)))
        pods = [self._pods[row] for row in rows]
        self._tell(*(PodChange(slot, pod, None) for pod in pods), NodeChange(slot, node, None))

    def change_node(self, node: Node) -> None:
        """Suppose another state of a known or supposed node. The name of `node` identifies it.

        Raises ForkError if there is no such node.
        """
        info = self._placement.nodes.infos.get(node.name)
        if info is None or info.node is None:
            raise ForkError(f"node {node.name} cannot be changed: there is no such node")
        self._steps.append(_Other(partial(self._change_node, info.node)))
        self._change_node(node)

    def add_object(self, added: Object) -> None:
        """Suppose a new object of a kind without a rule of its own.

        Raises ForkError if there is one of that name.
        """
        if added.full_name in self._objects.of(type(added)).values:
            raise ForkError(f"{type(added).__name__} {added.full_name} cannot be added: there is one of that name")
        self._steps.append(_Other(partial(self._take_object, added)))
        self._put_object(added)

    def change_object(self, changed: Object) -> None:
        """Suppose another state of an object of a kind without a rule of its own. Its name identifies it.

        Raises ForkError if there is no such object.
        """
        before = self._object(changed)
        self._steps.append(_Other(partial(self._put_object, before), changed=(before, changed)))
        self._put_object(changed)

    def adjust_object(self, named: Object, adjust: Callable[[Any], Any]) -> None:
        """Suppose that something is done to an object, whatever its state is. `resume` does it to the state of then.

        Raises ForkError as `change_object`.
        """
        before = self._object(named)
        after = adjust(before)
        self._steps.append(_Other(partial(self._put_object, before), changed=(before, after), adjust=adjust))
        self._put_object(after)

    def remove_object(self, gone: Object) -> None:
        """Suppose that an object of a kind without a rule of its own is gone. Raises ForkError as `change_object`."""
        before = self._object(gone)
        self._steps.append(_Other(partial(self._put_object, before)))
        self._take_object(before)

    def _object(self, named: Object) -> Object:
        found: Object | None = self._objects.of(type(named)).values.get(named.full_name)
        if found is None:
            raise ForkError(f"{type(named).__name__} {named.full_name} cannot be changed: there is none of that name")
        return found

    def _put_object(self, present: Object) -> None:
        store = self._objects.of(type(present))
        before = store.values.get(present.full_name)
        store.set_tentatively(present.full_name, present)
        self._tell(self._placement.object_change(type(present), present.full_name, before, present))

    # Undoing.

    def _undo(self, step: _Step) -> None:
        match step:
            case _Removed():
                self._bring_back(step)
            case _Placed():
                self._take_away(step)
            case _Other():
                step.undo()

    def _take_object(self, added: Object) -> None:
        self._objects.of(type(added)).withdraw(added.full_name)
        self._tell(self._placement.object_change(type(added), added.full_name, added, None))

    def _bring_back(self, step: _Removed) -> None:
        self._placement.place(step.row, step.slot)
        stored, slot = self._pods[step.row], step.slot
        pod = _as_reported(stored, as_running=step.as_running)
        for number, listener in enumerate(self._followers.get(PodChange, ())):
            # One that was made since then has never seen the pod, and will hear of it next as it is held.
            knew = number < step.listeners
            listener.changed(self._pod_change(slot, None, pod if knew else stored))

    def _take_away(self, step: _Placed) -> None:
        placed = self._pods[step.row]
        self._placement.withdraw_pod(placed, step.covered)
        self._tell(self._pod_change(self._placement.nodes.slots[placed.node_name], placed, None))

    def _take_node(self, node: Node) -> None:
        info = self._placement.nodes.infos[node.name]
        slot, pods = info.slot, [self._pods[row] for row in info.rows]
        self._placement.withdraw_node(info)
        self._tell(*(PodChange(slot, pod, None) for pod in pods), NodeChange(slot, node, None))

    def _bring_node_back(self, node: Node, slot: int, rows: Sequence[int], place: int) -> None:
        order = [*self._placement.nodes.slots]
        order.insert(place, node.name)
        self._placement.bring_node_back(node, slot, rows, order)
        pods = [self._pods[row] for row in rows]
        self._tell(NodeChange(slot, None, node), *(PodChange(slot, None, pod) for pod in pods))

    def _change_node(self, node: Node) -> None:
        info = self._placement.nodes.infos[node.name]
        before = self._placement.replace_node(info, node)
        self._tell(NodeChange(info.slot, before, node))

    # Reads.

    def _stored_pod(self, uid: str) -> Pod:
        return self._pods[self._placement.pods.rows[uid]]

    def _slot(self, uid: str) -> int:
        """Return the slot of the node on which a pod is, or is supposed."""
        row = self._placement.pods.rows.get(uid)
        return NO_SLOT if row is None else int(self._placement.pods.slot_of_row[row])

    def _removal(self, uid: str) -> int | None:
        """Return the index of the last step that removed a pod, or None."""
        steps, uids = ((at, self._steps[at]) for at in reversed(range(len(self._steps)))), self._pods.uids
        return next((at for at, step in steps if isinstance(step, _Removed) and uids[step.row] == uid), None)

    def _is_gone(self, stored: Pod) -> bool:
        """Return whether a pod does not count on its node, because of this block or an enclosing one."""
        if self._slot(stored.uid) != NO_SLOT:
            return False
        return stored.node_name in self._placement.nodes.slots or self._removal(stored.uid) is not None

    def _why_not_placed(self, pod: Pod, node_name: str) -> str:
        if pod.terminal:
            return "it has ended"
        stored = self._placement.pods.get(pod.uid)
        if stored is not None:
            if not self._is_gone(stored):
                return self._whereabouts(pod.uid)
            at = self._removal(pod.uid)
            step = None if at is None else self._steps[at]
            if isinstance(step, _Removed) and step.as_running and stored.terminating:
                # Derived states may hold terminating pods by UID, and would confuse the two.
                return "it terminates, and is gone as if it did not"
        return "" if node_name in self._placement.nodes.slots else "there is no such node"

    def _whereabouts(self, uid: str) -> str:
        stored = self._placement.pods.get(uid)
        if stored is None:
            return "there is no such pod on any node"
        if self._is_gone(stored):
            return "it is gone already"
        known = stored.node_name in self._placement.nodes.slots
        return f"it is on {stored.node_name}{' already' if known else ', which is not known'}"

    def _pod_change(self, slot: int, before: Pod | None, after: Pod | None) -> PodChange:
        return PodChange(slot, before, after, self._after_pre_filter)

    def _tell(self, *changes: Change) -> None:
        for change in changes:
            for listener in self._followers.get(type(change), ()):
                listener.changed(change)


def _as_reported(pod: Pod, *, as_running: bool) -> Pod:
    """Return a pod as derived states receive it."""
    return replace(pod, terminating=False) if as_running and pod.terminating else pod
