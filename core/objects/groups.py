"""Pods that are placed together, all or none: the PodGroup object, and a member's fields about its group.

Source of PodGroup: sigs.k8s.io/scheduler-plugins apis/scheduling/v1alpha1/types.go.
"""

from enum import Enum
from typing import Final, NamedTuple

import msgspec

from core.objects.kinds import Namespaced

GROUP_LABEL: Final = "kindred.dev/group"
"""The name of the pod's group. The group needs no object."""
POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""The name of the PodGroup, in the pod's namespace."""
MINIMUM_ANNOTATION: Final = "kindred.dev/group-minimum"
"""How many members of a `kindred.dev/group` are placed together."""
TIMEOUT_ANNOTATION: Final = "kindred.dev/group-timeout"
"""Seconds for which places are reserved for the members of a `kindred.dev/group`."""
PACKING_ANNOTATION: Final = "kindred.dev/group-packing"
"""How close together members are placed: `spread`, `pack` or `near`."""
TOPOLOGY_KEY_ANNOTATION: Final = "kindred.dev/group-topology-key"
"""The node label whose values are the domains of `near`."""

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds. Source: scheduler-plugins pkg/util/podgroup.go (DefaultWaitTime)."""
MAX_TIMEOUT: Final = 3600.0
MAX_MINIMUM: Final = 500
"""All members are judged and reserved in one step, during which no other request is served. 500 take 0.07 s."""


class PackingWay(Enum):
    """How close together the members of a group are placed. The annotation has these values."""

    SPREAD = "spread"
    """Each member goes to the node with the greatest sum of scores."""
    PACK = "pack"
    """The members go to the fewest nodes."""
    NEAR = "near"
    """The members go to the fewest domains of a topology key, such as racks or zones."""


class Packing(msgspec.Struct, frozen=True, gc=False):
    """The packing that a group requests. `topology_key` is set for `near`, and is empty for the other ways.

    `problem` is why the annotations are not followed, in one line. The way is `spread` then.
    """

    way: PackingWay = PackingWay.SPREAD
    topology_key: str = ""
    problem: str = ""


SPREAD: Final = Packing()
"""The packing of a group without the annotation."""


class PodGroup(Namespaced, frozen=True, kw_only=True, gc=False):
    """A scheduling.x-k8s.io/v1alpha1 PodGroup.

    `minimum` is spec.minMember, or 0 if not set. `timeout` is spec.scheduleTimeoutSeconds, or 0 if not set. `packing`
    comes from its annotations. spec.minResources is not read, because the requests of the members themselves are
    placed.
    """

    minimum: int = 0
    timeout: int = 0
    packing: Packing = SPREAD


class GroupKey(NamedTuple):
    """A group. A PodGroup and a `kindred.dev/group` of one name are two groups."""

    name: str
    """NAMESPACE/NAME"""
    by_object: bool = False
    """Whether it is a PodGroup."""


class Membership(msgspec.Struct, frozen=True, gc=False):
    """A pod's fields about its group.

    `by_object` means that the group is a PodGroup, which has the minimum, the timeout and the packing. Otherwise they
    come from the pod's annotations, and are 0 or None if not set. `problem` is the error in the minimum or the timeout.
    """

    group: str
    by_object: bool = False
    minimum: int = 0
    timeout: float = 0.0
    problem: str = ""
    packing: Packing | None = None


# Groups that kube-scheduler itself schedules together: the PodGroup of scheduling.k8s.io.
#
# Source: k8s.io/api scheduling/v1alpha2/types.go (1.36), scheduling/v1beta1/types.go (1.37).


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


class SchedulingGroup(Namespaced, frozen=True, kw_only=True, gc=False):
    """A scheduling.k8s.io PodGroup, whose members name it in spec.schedulingGroup.

    `minimum` is spec.schedulingPolicy.gang.minCount, and 1 for the policy `basic`: kube-scheduler binds members only if
    at least so many of them have a node (gangscheduling.go, getMinCount). `disrupted_whole` means that its members are
    preempted all or none. `unsupported` is a field of the group that makes kube-scheduler try several placements of
    its members in one cycle. It may bind an earlier one (schedule_one_podgroup.go,
    podGroupSchedulingPlacementAlgorithm). Empty if it has none.
    """

    minimum: int = 1
    disrupted_whole: bool = False
    unsupported: str = ""
    conditions: tuple[GroupCondition, ...] = ()
