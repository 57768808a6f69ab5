"""Rejected classes whose evaluation takes too much work, so that a repeated request costs no evaluation.

kube-scheduler repeats the request for a rejected pod after every event of the cluster.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from core.equivalence.classes import Classifier, ClassKey
from core.framework.interface import Plugin
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod

MAX_HEAVY_CLASSES: Final = 256
"""How many classes are kept. One holds the fields of its pod: up to 10 times the bytes of the JSON."""


class _Refused(NamedTuple):
    error: WorkLimitError
    nodes: int
    pods: int


class HeavyPods:
    """Class -> why its evaluation is rejected. The least recently used class is dropped first."""

    def __init__(self, mirror: ClusterMirror, plugins: Iterable[Plugin]) -> None:
        self._mirror = mirror
        # Pods without a controller are recorded, too: their requests may be as heavy and as frequent.
        self._classifier = Classifier(plugins, "spec")
        self._refused: OrderedDict[ClassKey, _Refused] = OrderedDict()

    def __len__(self) -> int:
        return len(self._refused)

    def check(self, pod: Pod) -> None:
        """Raise WorkLimitError for a pod of a rejected class.

        The work grows with the numbers of nodes and pods in the mirror. A rejection applies until either decreases.
        """
        if not self._refused:  # the usual case: an ordinary pod costs nothing here
            return
        key = self._key(pod)
        refused = self._refused.get(key)
        if refused is None:
            return
        if len(self._mirror.nodes.slots) < refused.nodes or len(self._mirror.pods) < refused.pods:
            del self._refused[key]
            return
        self._refused.move_to_end(key)
        raise refused.error

    def remember(self, pod: Pod, error: WorkLimitError) -> None:
        """Record that the evaluation of a pod was rejected."""
        nodes, pods = len(self._mirror.nodes.slots), len(self._mirror.pods)
        self._refused[self._key(pod)] = _Refused(error.with_traceback(None), nodes, pods)
        if len(self._refused) > MAX_HEAVY_CLASSES:
            self._refused.popitem(last=False)

    def _key(self, pod: Pod) -> ClassKey:
        key = self._classifier.key(self._mirror, pod)
        return () if key is None else key
