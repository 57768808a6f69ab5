"""Whether a pod may preempt others at all.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(PodEligibleToPreemptOthers).
"""

from typing import Final

from core.framework.status import Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption.victims import pods_on

NEVER: Final = "Never"
"""The preemptionPolicy of a pod that waits until there is room."""
POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(mirror: ClusterMirror, pod: Pod, nominated_node_code: Code) -> str:
    """Return upstream's reason; empty if the pod may preempt others.

    `nominated_node_code` is how the filter ended on the pod's nominated node, if it has one: where preemption cannot
    help any more, it may try elsewhere. Else it waits until the victims there, whom it preempted before, are gone.
    """
    if pod.preemption_policy == NEVER:
        return POLICY_NEVER
    name = pod.nominated_node_name
    if name not in mirror.nodes.slots or nominated_node_code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    waits = any(each.preempted and each.priority < pod.priority for each in pods_on(mirror, name))
    return TERMINATING_VICTIM if waits else ""
