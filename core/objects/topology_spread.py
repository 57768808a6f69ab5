"""How evenly a pod asks that pods be spread over topology domains.

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

    `selector` is without the requirements that `match_label_keys` (sorted) add from the pod's labels. When it is
    invalid, it selects nothing and `selector_error` says why: such a pod is an error for the plugin.
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
