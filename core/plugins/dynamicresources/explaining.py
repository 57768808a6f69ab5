"""What DynamicResources adds to explanations: the devices of each request, what would help, and what wakes a pod.

Source of the events: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
(EventsToRegister, isSchedulableAfterClaimChange and, since 1.37, isSchedulableAfterTargetPodUpdate). Rules of taints
change ResourceSlices as kube-scheduler sees them (k8s.io/dynamic-resource-allocation resourceslice/tracker).
"""

from typing import Final

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.obstacles import Obstacles
from core.mirror.topology import Int64Array, IntpArray
from core.plugins.dynamicresources.claims import ClaimError, claims_of
from core.plugins.dynamicresources.counts import counts_in_cluster, counts_on_node
from core.plugins.dynamicresources.remedies import SEARCHES, copies, holding, shortage
from core.plugins.dynamicresources.sentences import in_cluster, on_node
from core.releases.release import Release

_SEES_DELETIONS: Final = Release(1, 37)


def _claim_may_help(decision: Decision, action: str) -> bool:
    """Return whether a new claim may help, because one is missing, or a change of a claim, because none is."""
    try:
        claims_of(decision.mirror, decision.pod)
    except ClaimError:
        return action == "Add"
    return action == "Update"


def _has_templates(decision: Decision, _action: str) -> bool:
    return any(each.of_template for each in decision.pod.resource_claims)


_EVENTS: Final = (
    Event("Node", ("Add", "UpdateNodeLabel", "UpdateNodeAllocatable")),
    Event("ResourceClaim", ("Add", "Update"), may_help=_claim_may_help),
    Event("ResourceClaim", ("Delete",), registered=lambda rules: rules.release >= _SEES_DELETIONS),
    Event("Pod", ("UpdatePodGeneratedResourceClaim",), of_pod_itself=True, may_help=_has_templates),
    Event("DeviceClass", ("Add", "Update")),
    Event("ResourceSlice", ("Add", "Update")),
)


class ExplainedDevices(Explained):
    """What the plugin adds to explanations."""

    keeps_off = "devices"
    events = _EVENTS
    measured = Measured(
        on_node={
            "facts": lambda decision, position, _: on_node(decision, position),
            "counts": lambda decision, position, _: counts_on_node(decision, position),
        },
        in_cluster={"facts": in_cluster, "counts": counts_in_cluster},
    )
    remedies = Remedies(searches=SEARCHES, removable=holding, counts_elsewhere=True)

    def copies(self, decision: Decision) -> IntpArray | None:
        """Return the nodes with devices that match, free or not, for each request: a copy has the same."""
        return copies(decision)

    def shortage(self, obstacles: Obstacles, positions: IntpArray) -> Int64Array | None:
        """Return how much the pod lacks on each node, in thousandths of what each request needs."""
        return shortage(obstacles, positions)
