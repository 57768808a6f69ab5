"""How a preemption by Kindred itself ended."""

from enum import Enum
from typing import NamedTuple


class EvictionResult(Enum):
    """The outcome for a pod without a node; also the values of the metric's label."""

    PREEMPTED = "preempted"
    """Its victims are on their way out, and the node is nominated."""
    FITS = "fits"
    """It fits on one of the nodes by now."""
    WAITS = "waits"
    """Victims that make room for it, its own or another pod's, are not gone yet."""
    NEVER = "never"
    """Its preemptionPolicy is Never."""
    NO_CANDIDATE = "no_candidate"
    """There is no node where victims of lower priority would help."""
    NOMINATED = "nominated"
    """kube-scheduler has found victims for it meanwhile."""
    SETTLED = "settled"
    """It is bound, on its way out, or not there at all, as the pods of simulators."""
    NOT_GIVEN_UP = "not_given_up"
    """kube-scheduler has not said that it is unschedulable."""
    STALE = "stale"
    """The mirror cannot be trusted."""
    FAILED = "failed"
    """The API server refused, or could not be asked."""
    DROPPED = "dropped"
    """Too many pods were waiting for their turn."""


class EvictionOutcome(NamedTuple):
    """How a turn ended, and how many pods were evicted."""

    result: EvictionResult
    evicted: int = 0
