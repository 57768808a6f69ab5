"""The statuses of NodeAffinity, and what it collects of a pod."""

from typing import Final

import msgspec

from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import NodeAffinity, PreferredTerm

NAME: Final = "NodeAffinity"
POD_AFFINITY: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
)
ENFORCED_AFFINITY: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)
)
CONFLICT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("pod affinity terms conflict",))
# In the order of evaluation: the first failure is a node's verdict.
STATUSES: Final = (SUCCESS, ENFORCED_AFFINITY, POD_AFFINITY)


class RequiredState(msgspec.Struct, frozen=True):
    """The requirements of one incoming pod and of the scheduler on a node. Stale after the next event."""

    mirror: ClusterMirror
    affinity: NodeAffinity
    added: NodeAffinity


class PreferredState(msgspec.Struct, frozen=True):
    """The preferences of one incoming pod, and of the scheduler for the pod. Stale after the next event."""

    mirror: ClusterMirror
    terms: tuple[PreferredTerm, ...]
