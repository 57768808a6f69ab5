"""Doubts about rejections of nominated nodes: the watch may not have shown yet that the victims were deleted.

kube-scheduler nominates a node for a pod, evicts the victims there, and retries the pod as soon as its own watch shows
their deletion. If Kindred's watch lags, Kindred rejects the node, and kube-scheduler preempts again on another node.
v1.36.3 evicted a second victim needlessly this way. So `filter` evaluates such a request again for a moment. If the
rejection remains, it returns an `Error`. An `Error` only ends the attempt (schedule_one.go: no PostFilter runs, but the
nomination is lost). kube-scheduler retries the pod after its backoff, which is 1 s at first.

If Kindred itself preempts for the pod, a remaining rejection is returned as it is: the victims may terminate slowly,
and the pod must stay nominated. The same is true for each pod that Kindred decides for
(app/verbs/deciding/decider.py).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from core.framework.interface import Verdicts
from core.framework.status import Code
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.preemption.victims import pods_on

_PATIENCE: Final = 3.0  # seconds: an attempt, its backoff, and another attempt
_MAX_PODS: Final = 1024


class Doubt(NamedTuple):
    """Why a rejection is doubted, and whether `filter` returns the rejection if the doubt remains."""

    reason: str
    told: bool


class _Doubted(NamedTuple):
    node: str
    since: float


class Nominations:
    """uid -> time since which the rejection of the pod's nominated node is doubted. The oldest entries are dropped."""

    def __init__(
        self, mirror: ClusterMirror, clock: Callable[[], float], is_ours: Callable[[str], bool] = lambda _: False
    ) -> None:
        """Read the pods of a mirror. `clock` returns seconds.

        `is_ours` returns whether Kindred itself preempts for the pod of a uid.
        """
        self._mirror = mirror
        self._clock = clock
        self._doubts: OrderedDict[str, _Doubted] = OrderedDict()
        self._is_ours = is_ours

    def doubt(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> Doubt | None:
        """Return why the verdicts should not be returned yet. None if they may be.

        Verdicts are held back if no node fits, and the nominated node has pods of lower priority that are not
        terminating in the mirror. These pods are the victims, or pods that took their place.
        """
        name = pod.nominated_node_name
        if not name or not self._refused_only_for_now(name, batch, verdicts):
            return None
        if not any(each.priority < pod.priority and not each.terminating for each in pods_on(self._mirror, name)):
            return None
        if self._clock() - self._since(pod.uid, name) > _PATIENCE:
            return None
        reason = (
            f"pod {pod.full_name} does not fit on its nominated node {name}; the watch may be late with its victims"
        )
        return Doubt(reason, self._is_ours(pod.uid))

    def _refused_only_for_now(self, name: str, batch: NodeBatch, verdicts: Verdicts) -> bool:
        slot = self._mirror.nodes.slots.get(name)
        if slot is None:
            return False
        codes = [status.code for status in verdicts.statuses]
        if any(codes[index] is Code.SUCCESS for index in np.unique(verdicts.codes).tolist()):
            return False
        return any(codes[index] is Code.UNSCHEDULABLE for index in verdicts.codes[batch.slots == slot].tolist())

    def _since(self, uid: str, node: str) -> float:
        known = self._doubts.get(uid)
        if known is None or known.node != node:
            self._doubts[uid] = known = _Doubted(node, self._clock())
            if len(self._doubts) > _MAX_PODS:
                self._doubts.popitem(last=False)
        return known.since
