"""The plugin PodTopologySpread: its arguments and its extension points.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread (plugin.go, filtering.go, scoring.go).
"""

from typing import Final

import numpy as np

from core.events import Kind
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts, Versions, text_of
from core.framework.invalidation import InvalidationRule, Operation, Scope, node_update
from core.framework.scores import NOT_SCORED
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.kinds import Service
from core.objects.labels import Selector
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, Pod, SpreadConstraint
from core.plugins.podtopologyspread import constraints as resolving
from core.plugins.podtopologyspread.constraints import CONTROLLERS, NodeDomains, default_selector, read_of
from core.plugins.podtopologyspread.explaining import ExplainedSpread
from core.plugins.podtopologyspread.filtering import NAME, PreFilterState
from core.plugins.podtopologyspread.pod_counts import PodCounts
from core.plugins.podtopologyspread.scoring import PreScoreState, turned

_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.ADD, Operation.DELETE),
        scope=Scope.ALL,
        because="a domain can come or go with a node, and with it the fewest pods of any domain, which all are held to",
    ),
    node_update(
        scope=Scope.ALL,
        when="a label or a taint changed",
        because=(
            "any label can be a topology key or be asked for by node affinity, and by the policies of a constraint the "
            "node is counted or not; the pods of its domain, and the fewest of any domain, are then others for all"
        ),
        reads=read_of,
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.COUNTERS,
        when="a constraint of the class selects it, and it came, went, changed its labels or began to terminate",
        because="it can change the fewest pods of any domain, so that the skew of every domain is another",
    ),
)


class PodTopologySpread(ExplainedSpread, FilterPlugin[PreFilterState], ScorePlugin[PreScoreState]):
    """Filters and scores by how evenly pods are spread over topology domains, exactly as the in-tree plugin.

    Pods without constraints get the default ones: upstream's two for `defaulting_type` System, else
    `default_constraints`. Default constraints have no selector, because it is derived from the Services and the
    controller of the pod. Raises ValueError for arguments that upstream's ValidatePodTopologySpreadArgs rejects.
    """

    name = NAME
    former_filters = ("EvenPodsSpread",)
    former_scores = (("EvenPodsSpreadPriority", ""),)
    points = ("preFilter", "filter", "preScore", "score")
    needs_pre = ("filter", "score")
    costly_pre = True
    state_lasts = True
    by_traits = True
    kinds: tuple[Kind, ...] = (Node, Pod)
    class_fields: tuple[str, ...] = ("namespace", "labels", "tolerations", "node_affinity", "spread")
    invalidated_by = _INVALIDATED_BY
    states = (PodCounts, NodeDomains)

    def __init__(
        self,
        *,
        defaulting_type: str = "System",
        default_constraints: tuple[SpreadConstraint, ...] = (),
    ) -> None:
        resolving.check_arguments(defaulting_type, default_constraints)
        self._system_defaulted = defaulting_type == "System"
        self._defaults = resolving.SYSTEM_DEFAULTS if self._system_defaulted else default_constraints
        self.default_actions = frozenset(each.when_unsatisfiable for each in self._defaults)
        """What the default constraints do to a node that does not meet them."""
        if self._defaults:
            self.kinds += (Service, *CONTROLLERS.values())
            self.class_fields += ("controller",)

    def references(self, mirror: ClusterMirror, pod: Pod) -> Selector | None:
        """Return the selector of the default constraints if they apply. It depends on Services and controllers."""
        return default_selector(mirror, pod) if self._defaults and not pod.spread else None

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState | None]:
        """Resolve the hard constraints to counters. Returns an error for a pod with an invalid constraint."""
        try:
            constraints = self._constraints(mirror, pod, DO_NOT_SCHEDULE)
        except resolving.BrokenConstraintError as error:
            reason = f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}"
            return Status(Code.ERROR, (text_of(mirror, reason),)), None
        if not constraints:
            return SKIP, None
        mirror.derived(PodCounts).charge(pod.namespace, constraints, len(mirror.nodes.slots))
        return SUCCESS, PreFilterState(mirror, pod, constraints)

    def filter(self, state: PreFilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def filter_versions(self, state: PreFilterState) -> Versions:
        """Return the versions of all counters that the verdicts depend on."""
        return state.versions()

    def pre_score(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> tuple[Status, PreScoreState | None]:
        """Resolve the soft constraints to counters, weighted by the number of domains among the requested nodes."""
        try:
            constraints = self._constraints(mirror, pod, SCHEDULE_ANYWAY)
        except resolving.BrokenConstraintError as error:
            reason = f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}"
            return Status(Code.ERROR, (text_of(mirror, reason),)), None
        if not constraints:
            return SKIP, None
        mirror.derived(PodCounts).charge(pod.namespace, constraints, len(batch))
        # With upstream's own constraints, a node without a zone is still scored by its hostname.
        require_all_topologies = bool(pod.spread) or not self._system_defaulted
        return SUCCESS, PreScoreState(mirror, pod, constraints, batch, require_all_topologies=require_all_topologies)

    def score(self, state: PreScoreState, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node: the weighted pods of its domains. Fewer is better."""
        return state.score(batch)

    def score_versions(self, state: PreScoreState) -> Versions:
        """Return the versions of all counters that the raw scores depend on."""
        return state.versions()

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Invert the raw scores of the requested nodes, and normalise them to 0..100. Without counted pods: all 100."""
        lowest = raw.item(raw.argmin()) if len(raw) else NOT_SCORED
        if lowest > NOT_SCORED:
            return turned(raw, lowest)
        scored = raw != NOT_SCORED
        scores = np.zeros_like(raw)
        if scored.any():
            among = raw[scored]
            scores[scored] = turned(among, int(among.min()))
        return scores

    def _constraints(self, mirror: ClusterMirror, pod: Pod, action: str) -> tuple[SpreadConstraint, ...]:
        if pod.spread:
            return resolving.own_constraints(pod, action, match_label_keys=mirror.rules.match_label_keys)
        if action not in self.default_actions:
            return ()
        return resolving.default_constraints(self._defaults, action, default_selector(mirror, pod))
