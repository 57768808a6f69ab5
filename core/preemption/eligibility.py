"""Whether a pod may preempt other pods.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(PodEligibleToPreemptOthers).
"""

from typing import Final

from core.framework.interface import Code
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.preemption.victims import pods_on

NEVER: Final = "Never"
"""The preemptionPolicy of a pod that waits for free capacity instead of preempting."""
POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(mirror: ClusterMirror, pod: Pod, nominated_node_code: Code) -> str:
    """Return upstream's reason why the pod may not preempt, or the empty text if it may.

    `nominated_node_code` is the filter's status code on the pod's nominated node, if it has one. If preemption cannot
    help on that node, the pod may preempt elsewhere. Else the pod waits until its victims on that node have terminated.
    """
    if pod.preemption_policy == NEVER:
        return POLICY_NEVER
    name = pod.nominated_node_name
    if name not in mirror.nodes.slots or nominated_node_code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    waits = any(each.preempted and each.priority < pod.priority for each in pods_on(mirror, name))
    return TERMINATING_VICTIM if waits else ""
