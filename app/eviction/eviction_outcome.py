"""The outcome of a preemption by Kindred itself."""

from enum import Enum
from typing import NamedTuple


class EvictionResult(Enum):
    """The result for a pod without a node. Also the values of the metric's label."""

    PREEMPTED = "preempted"
    """The victims were deleted, and the node is nominated."""
    FITS = "fits"
    """The pod now fits on one of the nodes."""
    WAITS = "waits"
    """The pod waits for victims, of its own or another preemption, that still terminate."""
    NEVER = "never"
    """The pod's preemptionPolicy is Never."""
    NO_CANDIDATE = "no_candidate"
    """On no node would victims of lower priority help."""
    NOMINATED = "nominated"
    """kube-scheduler has meanwhile found victims for the pod."""
    SETTLED = "settled"
    """The pod is bound or terminating, or does not exist, such as the pod of a simulator."""
    NOT_GIVEN_UP = "not_given_up"
    """kube-scheduler has not reported the pod as unschedulable."""
    STALE = "stale"
    """The mirror is stale."""
    FAILED = "failed"
    """The API server rejected a request, or was unreachable."""
    DROPPED = "dropped"
    """Too many pods were waiting for their turn."""


class EvictionOutcome(NamedTuple):
    """The result of a turn, and the number of evicted pods."""

    result: EvictionResult
    evicted: int = 0
