"""The status of a pod without a node."""

import msgspec


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """The wait of a pod without a node, as its object has it. Times are RFC 3339, in UTC; empty where unknown.

    `reason`, `message` and `changed` are from the condition PodScheduled while it is False. They are of the last
    attempt that failed (`Unschedulable`, `SchedulerError`), or of its gates (`SchedulingGated`). A condition that says
    nothing leaves all three empty. No plugin reads any of this.
    """

    created: str = ""
    """metadata.creationTimestamp"""
    gates: tuple[str, ...] = ()
    """Names of spec.schedulingGates: with any, kube-scheduler does not try the pod."""
    reason: str = ""
    message: str = ""
    changed: str = ""
    """lastTransitionTime of the condition."""


NOT_WAITING = Waiting()
"""Shared by every pod on a node."""
