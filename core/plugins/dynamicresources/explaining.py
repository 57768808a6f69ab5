"""What DynamicResources adds to explanations: the devices of each request, what would help, and what wakes a pod.

Source of the events: k8s.io/kubernetes pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
(EventsToRegister, isSchedulableAfterClaimChange and, since 1.37, isSchedulableAfterTargetPodUpdate). Rules of taints
change ResourceSlices as kube-scheduler sees them (k8s.io/dynamic-resource-allocation resourceslice/tracker).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from core.explaining.decision import Decision
from core.explaining.explained import Counts, Event, Explained, Measured, Remedies
from core.explaining.obstacles import Obstacles
from core.explaining.pod_names import ClaimName
from core.framework.claims import ClaimError
from core.mirror.topology import Int64Array, IntpArray
from core.objects.devices import ALL
from core.plugins.dynamicresources.claims import claims_of
from core.plugins.dynamicresources.remedies import SEARCHES, copies, holding, shortage
from core.plugins.dynamicresources.sentences import in_cluster, on_node, rejected, survey_of
from core.plugins.dynamicresources.survey import NAME, Found, State
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


def _counts_in_cluster(decision: Decision, limit: int) -> Sequence[Counts]:
    """Return the devices of all nodes for each request and alternative, if the plugin rejects some node."""
    survey = survey_of(decision) if len(rejected(decision)) else None
    found = () if survey is None else survey.everywhere
    if survey is None or survey.is_cut:
        return ()
    return [_counts(each, {"nodes": nodes}, is_of_node=False) for each, nodes in found[:limit]]


def _counts_on_node(decision: Decision, position: int) -> Sequence[Counts]:
    """Return the devices of a node for each request. Of several alternatives, for the one that lacks the fewest."""
    survey = survey_of(decision)
    found = () if survey is None else survey.on(position)
    if survey is None or survey.is_cut:
        return ()
    return [_counts(each, {"missing": each.missing}, is_of_node=True) for each in found]


def _counts(found: Found, more: Mapping[str, int], *, is_of_node: bool) -> Counts:
    request, states = found.need.request, {each.name.lower(): len(found.devices.get(each, ())) for each in State}
    needed = {"needed": found.needed} if is_of_node or request.mode != ALL else {}
    of = {"claim": ClaimName(found.claim), "request": found.need.full_name, "device_class": request.device_class}
    return Counts(NAME, of, {**needed, "matching": found.matching, **states, **more})


class ExplainedDevices(Explained):
    """What the plugin adds to explanations."""

    keeps_off = "devices"
    events = _EVENTS
    measured = Measured(
        on_node={
            "facts": lambda decision, position, _: on_node(decision, position),
            "counts": lambda decision, position, _: _counts_on_node(decision, position),
        },
        in_cluster={"facts": in_cluster, "counts": _counts_in_cluster},
    )
    remedies = Remedies(searches=SEARCHES, removable=holding, counts_elsewhere=True)

    def copies(self, decision: Decision) -> IntpArray | None:
        """Return the nodes with devices that match, free or not, for each request: a copy has the same."""
        return copies(decision)

    def shortage(self, obstacles: Obstacles, positions: IntpArray) -> Int64Array | None:
        """Return how much the pod lacks on each node, in thousandths of what each request needs."""
        return shortage(obstacles, positions)
