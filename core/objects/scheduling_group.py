"""Groups that kube-scheduler itself schedules together: the PodGroup of scheduling.k8s.io.

Source: k8s.io/api scheduling/v1alpha2/types.go (1.36), scheduling/v1beta1/types.go (1.37).
"""

import msgspec


class GroupCondition(msgspec.Struct, frozen=True, gc=False):
    """A condition of a group's status. It is shown to people, and no decision reads it.

    kube-scheduler does not write an unchanged condition again, so it says nothing about the last attempt.
    """

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    since: str = ""
    """lastTransitionTime, as it is written."""

    def __str__(self) -> str:
        """Return `TYPE=STATUS (REASON): MESSAGE`."""
        reason = f" ({self.reason})" if self.reason else ""
        message = f": {self.message}" if self.message else ""
        return f"{self.type}={self.status}{reason}{message}"


class SchedulingGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A scheduling.k8s.io PodGroup, whose members name it in spec.schedulingGroup.

    `minimum` is spec.schedulingPolicy.gang.minCount, and 1 for the policy `basic`: kube-scheduler binds members only if
    at least so many of them have a node (gangscheduling.go, getMinCount). `disrupted_whole` means that its members are
    preempted all or none. `unsupported` is a field of the group that makes kube-scheduler try several placements of
    its members in one cycle. It may bind an earlier one (schedule_one_podgroup.go,
    podGroupSchedulingPlacementAlgorithm). Empty if it has none.
    """

    namespace: str
    name: str
    minimum: int = 1
    disrupted_whole: bool = False
    unsupported: str = ""
    conditions: tuple[GroupCondition, ...] = ()
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"
