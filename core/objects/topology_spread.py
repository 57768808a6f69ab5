"""A pod's constraints on its spread over topology domains.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (topologySpreadConstraint).
"""

from typing import Final

import msgspec

from core.objects.labels import NOTHING, Selector

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
HONOR: Final = "Honor"
IGNORE: Final = "Ignore"


class SpreadConstraint(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A v1.TopologySpreadConstraint, with the plugin's defaults for missing fields.

    `selector` excludes the requirements that `match_label_keys` (sorted) add from the pod's labels. If the selector is
    invalid, it selects no pods and `selector_error` has the reason. The plugin then returns an error for the pod.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str = DO_NOT_SCHEDULE
    selector: Selector = NOTHING
    selector_error: str = ""
    min_domains: int = 1
    node_affinity_policy: str = HONOR
    node_taints_policy: str = IGNORE
    match_label_keys: tuple[str, ...] = ()
