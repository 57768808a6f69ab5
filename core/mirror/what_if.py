"""The mirror with some of its pods supposed to be gone, so that plugins can be asked what would be then."""

from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Self

from core.mirror.changes import Listener, PodChange
from core.mirror.node_info import NO_SLOT
from core.mirror.placement import Placement
from core.objects.pod import Pod


class WithoutPods:
    """Pods that are supposed to be gone from their nodes, until they are put back or the `with` block ends.

    Plugins that are asked afresh meanwhile answer as if the pods were not there: term counters, columns and all states
    that plugins derive from the mirror follow. Nobody else notices, and nothing stays of it: the pods are held and keep
    their rows, as if they waited for an unknown node; nodes keep their generations, so that snapshots look at none;
    other listeners, such as the equivalence cache, are not told, so that no cell becomes invalid. Only the versions of
    the counters that count such a pod are other ones afterwards, as versions never come again; what was kept under the
    old ones is asked for once more. To bring versions back would be wrong: an answer for the supposed state could stand
    under a number that a later change reaches.

    In the block the mirror must not be changed, and caches must not be asked: they would keep what is only supposed.
    """

    def __init__(self, placement: Placement, derived: Callable[[], Collection[Listener]]) -> None:
        self._placement = placement
        self._derived = derived
        # uid -> pod as it was given, slot of its node, and the states that were told so
        self._gone: dict[str, tuple[Pod, int, Sequence[Listener]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for uid in [*self._gone]:
            self.put_back(uid)

    def remove(self, pod: Pod) -> None:
        """Suppose that a pod is gone; what plugins derive is told of it as it is given, which may be not as it is held.

        Raises ValueError for one that is on no known node, or gone already.
        """
        row = self._placement.pods.rows.get(pod.uid)
        slot = NO_SLOT if row is None else int(self._placement.pods.slot_of_row[row])
        if slot == NO_SLOT:
            raise ValueError(f"pod {pod.full_name} ({pod.uid}) is on no node from which it could be gone")
        self._placement.suppose_gone(pod.uid)
        told = tuple(self._derived())
        self._gone[pod.uid] = pod, slot, told
        for listener in told:
            listener.changed(PodChange(slot, pod, None))

    def put_back(self, uid: str) -> None:
        """Let a pod that is supposed to be gone be back. Raises KeyError for any other."""
        pod, slot, told = self._gone.pop(uid)
        self._placement.suppose_back(uid, slot)
        held = self._placement.pods.pods[self._placement.pods.rows[uid]]
        for listener in self._derived():
            # One that was made since then has never seen the pod, and will hear of it next as it is held.
            knew = any(listener is each for each in told)
            listener.changed(PodChange(slot, None, pod if knew else held))
