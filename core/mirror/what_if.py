"""Suppositions: pods, nodes and objects that the mirror does not have, and that plugins then take for real."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

from msgspec.structs import replace

from core.mirror.changes import Change, Listener, NodeChange, ObjectChange, PodChange
from core.mirror.node_info import NO_SLOT
from core.mirror.object_stores import OF_A_NODE, HeldObject, ObjectStores
from core.mirror.placement import Placement
from core.objects.node import Node
from core.objects.pod import Pod, counted


class WhatIfError(Exception):
    """A change cannot be supposed or taken back. Everything was left as it was."""


class _Step(NamedTuple):
    undo: Callable[[], None]
    gone: Pod | None = None
    """The pod that the step takes away, as the change that plugins got shows it."""


class Supposition:
    """Pods that are supposed to be gone or to be elsewhere, and nodes and objects to be there, or in another state.

    All of it is so until the `with` block ends. Plugins that are asked afresh meanwhile answer as if it were so: term
    counters, columns and all states that plugins derive from the mirror follow, and batches know the nodes by their
    names. The rest of the mirror stays as it is: removed pods keep their rows, like pods on an unknown node; placed
    pods are in no NodeInfo; no generation is taken, so figures and copies read no node again; other listeners, such
    as the equivalence cache, get no event, so no cell becomes invalid. Dumps and audits in the block show a mixture of
    both.

    Nothing stays of it but numbers that never come again, and room. The versions of the counters that counted any such
    pod are other ones afterwards, and what was kept under the old ones is asked for once more; to bring versions back
    would be wrong: an answer for the supposed state could stand under a number that a later change reaches. So it is
    with `NodeTable.lives`, if nodes were supposed. What has grown stays so: the capacity of tables and columns, the
    free rows of pods, the ids of topology values, the width of names. Counters and derived states that were first asked
    for in the block stay as well, and are right.

    In the block the mirror must not be changed, and caches must not be asked: they would keep what is only supposed.
    Batches are of no use beyond the step in which they were made. Another Supposition may begin in the block, and has
    to end before it.

    `after_pre_filter` is for what kube-scheduler supposes between PreFilter and Filter, of which it tells plugins by
    AddPod and RemovePod.

    What contradicts the mirror, or what is supposed already, raises WhatIfError, and all is left as it is.
    """

    def __init__(
        self,
        placement: Placement,
        objects: ObjectStores,
        derived: Callable[[], Collection[Listener]],
        *,
        after_pre_filter: bool = False,
    ) -> None:
        self._placement = placement
        self._objects = objects
        self._after_pre_filter = after_pre_filter
        self._derived = derived
        self._steps: list[_Step] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._steps:  # the last one first: a pod has to leave a node before that can go
            self._steps.pop().undo()

    def remove(self, pod: Pod, *, as_running: bool = False) -> None:
        """Suppose that a pod is gone, known by its uid; all else is as it is held.

        `as_running` says that what plugins derive is told of a pod that does not terminate, even if this one does.
        Raises WhatIfError for one that is on no known node, or gone already.
        """
        slot = self._slot(pod.uid)
        if slot == NO_SLOT:
            raise WhatIfError(f"pod {pod.full_name} ({pod.uid}) cannot be removed: {self._whereabouts(pod.uid)}")
        gone = self._held(pod.uid)
        if as_running and gone.terminating:
            gone = replace(gone, terminating=False)
        self._placement.suppose_deleted(pod.uid)
        told = tuple(self._derived())
        self._steps.append(_Step(partial(self._bring_back, gone, slot, told), gone))
        self._tell(self._pod_change(slot, gone, None))

    def put_back(self, uid: str) -> None:
        """Let a pod that is supposed to be gone be back. Raises WhatIfError for any other, or if it is placed again."""
        at = self._removal(uid)
        if at is None or self._slot(uid) != NO_SLOT:
            raise WhatIfError(f"pod {uid} cannot be put back: it is not gone")
        self._steps.pop(at).undo()

    def place(self, pod: Pod, node_name: str) -> Pod:
        """Suppose a pod, whatever node it names, on a known or supposed one; return it as it is counted.

        Raises WhatIfError for a pod that the mirror holds, unless it is supposed to be gone, and not `as_running`; for
        one that has ended; and for an unknown node.
        """
        why_not = self._why_not_placed(pod, node_name)
        if why_not:
            raise WhatIfError(
                f"pod {pod.full_name} ({pod.uid}) cannot be placed on {node_name or 'no node'}: {why_not}"
            )
        placed = counted(replace(pod, node_name=node_name), self._placement.counting)
        row = self._placement.suppose_pod(placed)
        self._steps.append(_Step(partial(self._take_away, placed, row)))
        self._tell(self._pod_change(self._placement.nodes.slots[node_name], None, placed))
        return placed

    def add_node(self, node: Node) -> None:
        """Suppose a node that is not known; pods that the mirror holds for it count there.

        Raises WhatIfError if there is, or is supposed, a node of that name.
        """
        if node.name in self._placement.nodes.slots:
            raise WhatIfError(f"node {node.name} cannot be added: there is one of that name")
        info = self._placement.suppose_node(node)
        self._steps.append(_Step(partial(self._take_node, node)))
        pods = [self._placement.pods.pods[row] for row in info.rows]
        self._tell(NodeChange(info.slot, None, node), *(PodChange(info.slot, None, pod) for pod in pods))

    def change_node(self, node: Node) -> None:
        """Suppose another state of a node that is known, or supposed, by the name of that state.

        Raises WhatIfError if there is none of that name.
        """
        info = self._placement.nodes.infos.get(node.name)
        if info is None or info.node is None:
            raise WhatIfError(f"node {node.name} cannot be changed: there is no such node")
        self._steps.append(_Step(partial(self._change_node, info.node)))
        self._change_node(node)

    def put_object(self, thing: HeldObject) -> None:
        """Suppose one more object of a kind that the mirror holds as it is, or another state of one, by its name."""
        before = self._objects.of(type(thing)).suppose(thing.full_name, thing)
        self._steps.append(_Step(partial(self._take_object, thing, before)))
        self._tell(self._object_change(thing, before, thing))

    # How it is undone.

    def _bring_back(self, pod: Pod, slot: int, told: Sequence[Listener]) -> None:
        self._placement.suppose_back(pod.uid, slot)
        held = self._held(pod.uid)
        for listener in self._derived():
            # One that was made since then has never seen the pod, and will hear of it next as it is held.
            knew = any(listener is each for each in told)
            listener.changed(self._pod_change(slot, None, pod if knew else held))

    def _take_away(self, placed: Pod, row: int | None) -> None:
        self._placement.withdraw_pod(placed, row)
        self._tell(self._pod_change(self._placement.nodes.slots[placed.node_name], placed, None))

    def _take_node(self, node: Node) -> None:
        info = self._placement.nodes.infos[node.name]
        slot, pods = info.slot, [self._placement.pods.pods[row] for row in info.rows]
        self._placement.withdraw_node(info)
        self._tell(*(PodChange(slot, pod, None) for pod in pods), NodeChange(slot, node, None))

    def _change_node(self, node: Node) -> None:
        info = self._placement.nodes.infos[node.name]
        before = self._placement.suppose_state(info, node)
        self._tell(NodeChange(info.slot, before, node))

    def _take_object(self, thing: HeldObject, before: HeldObject | None) -> None:
        self._objects.of(type(thing)).suppose(thing.full_name, before)
        self._tell(self._object_change(thing, thing, before))

    # Reads.

    def _held(self, uid: str) -> Pod:
        return self._placement.pods.pods[self._placement.pods.rows[uid]]

    def _slot(self, uid: str) -> int:
        """Return the slot of the node that a pod is on, or supposed on."""
        row = self._placement.pods.rows.get(uid)
        return NO_SLOT if row is None else int(self._placement.pods.slot_of_row[row])

    def _removal(self, uid: str) -> int | None:
        """Return the last step that took a pod away."""
        places = reversed(range(len(self._steps)))
        return next((at for at in places if (gone := self._steps[at].gone) is not None and gone.uid == uid), None)

    def _is_gone(self, held: Pod) -> bool:
        """Return whether a pod counts nowhere though its node is known, by this block or one around it."""
        return self._slot(held.uid) == NO_SLOT and held.node_name in self._placement.nodes.slots

    def _why_not_placed(self, pod: Pod, node_name: str) -> str:
        if pod.terminal:
            return "it has ended"
        held = self._placement.pods.get(pod.uid)
        if held is not None:
            if not self._is_gone(held):
                return self._whereabouts(pod.uid)
            at = self._removal(pod.uid)
            if at is not None and self._steps[at].gone != held:
                # Derived states may hold pods that terminate by uid, and would take the one for the other.
                return "it terminates, and is gone as if it did not"
        return "" if node_name in self._placement.nodes.slots else "there is no such node"

    def _whereabouts(self, uid: str) -> str:
        held = self._placement.pods.get(uid)
        if held is None:
            return "there is no such pod on any node"
        if self._is_gone(held):
            return "it is gone already"
        known = held.node_name in self._placement.nodes.slots
        return f"it is on {held.node_name}{' already' if known else ', which is not known'}"

    def _pod_change(self, slot: int, before: Pod | None, after: Pod | None) -> PodChange:
        return PodChange(slot, before, after, self._after_pre_filter)

    def _object_change(self, thing: HeldObject, before: HeldObject | None, after: HeldObject | None) -> ObjectChange:
        slot = self._placement.nodes.slots.get(thing.full_name, NO_SLOT) if type(thing) in OF_A_NODE else NO_SLOT
        kind: Any = type(thing)  # a Kind, of which HeldObject has the protocol
        return ObjectChange(kind, slot, before, after)

    def _tell(self, *changes: Change) -> None:
        for change in changes:
            for listener in self._derived():
                listener.changed(change)
