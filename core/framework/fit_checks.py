"""Checks repeatedly whether a pod fits its nodes, while suppositions remove pods and put them back."""

from collections.abc import Sequence
from typing import Final

import msgspec

from core.framework.evaluation import FreshEvaluation
from core.framework.interface import AnyFilter, Plugin, Verdicts
from core.framework.status import Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod

_PER_STEP: Final = 20_000
_PER_ENTRY: Final = 4_000
"""Units of work (core/mirror/work.py) of one check of one node: a base amount, and one per entry of the pod's lists."""
_EVALUATIONS: Final = 10
"""How many times the work of one evaluation a dry run may take. 500 nodes with 30 victims each take 15,000 checks."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a pod does not fit a node, or why preemption does not help there.

    `plugin` is the first failing plugin. It is empty if preemption itself gives the reason.
    """

    status: Status
    plugin: str = ""


class _Predicate(msgspec.Struct, frozen=True):
    plugin: AnyFilter
    verdicts: Verdicts | None
    """Verdicts on all nodes with all pods present. None means that all pass."""
    asked_anew: bool
    """Whether the verdict may change when pods are removed."""


class FitChecks:
    """The predicates of a profile for one pod over some known nodes.

    Upstream runs PreFilter once and reports to it each pod that is supposed to be removed or added (AddPod, RemovePod
    of PreFilterExtensions). Here the counters follow the supposition, and predicates that read pods run afresh. Other
    predicates run once, because their declared invalidation rules do not depend on pods. A predicate whose PreFilter
    returns SKIP with all pods present runs only once, too: upstream then skips it. Stale after the next event.
    """

    def __init__(self, mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, names: Sequence[str]) -> None:
        self._mirror = mirror
        self._names = names
        self._evaluation = FreshEvaluation(mirror, pod)
        self._entries = _entries(pod)
        self._looks = 0
        batch = mirror.batch(names)
        self._predicates = [
            _Predicate(plugin, verdicts, asked_anew=verdicts is not None and _reads_pods(plugin))
            for plugin, verdicts in ((plugin, self._evaluation.verdicts(plugin, batch)) for plugin in filters)
        ]
        # kube-scheduler runs every PreFilter before any Filter.
        failed = [each for each in self._predicates if each.verdicts is not None and each.verdicts.of_pre_filter]
        self._predicates = failed[:1] or self._predicates

    def failures(self) -> list[Failure | None]:
        """Return for each node why the pod does not fit with all pods present, or None if it fits."""
        return [self._first_failure(position, None) for position in range(len(self._names))]

    def failure(self, position: int) -> Failure | None:
        """Return why the pod does not fit one node in the supposed state, or None if it fits.

        Raises WorkLimitError after too many checks for such a pod.
        """
        self._looks += 1
        self._charge()
        return self._first_failure(position, self._mirror.batch([self._names[position]]))

    def failure_beside(self, position: int, pods: Sequence[Pod]) -> Failure | None:
        """Return why the pod does not fit one node if these pods, which are on no node, were on it.

        Returns None if the pod fits, or if `pods` is empty. Raises WorkLimitError as `failure` does.
        """
        if not pods:
            return None
        with self._mirror.suppose(after_pre_filter=True) as supposed:
            for each in pods:
                supposed.place(each, self._names[position])
            return self.failure(position)

    def _charge(self) -> None:
        limit = self._mirror.work.limit
        units = self._looks * (_PER_STEP + _PER_ENTRY * self._entries)
        if limit is not None and units > _EVALUATIONS * limit:
            raise WorkLimitError("spec", self._entries, units, _EVALUATIONS * limit)
        self._mirror.work.begin()  # each check is an evaluation of its own

    def _first_failure(self, position: int, supposed: NodeBatch | None) -> Failure | None:
        for predicate in self._predicates:
            if supposed is not None and predicate.asked_anew:
                verdicts, at = self._evaluation.verdicts(predicate.plugin, supposed), 0
            else:
                verdicts, at = predicate.verdicts, position
            if verdicts is not None and verdicts.codes[at]:
                return Failure(verdicts.status(at), predicate.plugin.name)
        return None


def _entries(pod: Pod) -> int:
    """Count the work of the predicates that run at each check."""
    affinity = pod.affinity
    lists = (affinity.required_affinity, affinity.required_anti_affinity, pod.spread, pod.host_ports, pod.volumes)
    return sum(map(len, lists)) + len(pod.requests)


def _reads_pods(plugin: Plugin) -> bool:
    return any(rule.kind is Pod for rule in plugin.invalidated_by)
