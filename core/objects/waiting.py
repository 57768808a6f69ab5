"""The status of a pod without a node."""

import msgspec


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """The status of a pod without a node, from its object. Times are RFC 3339, in UTC, empty if unknown.

    `reason`, `message` and `changed` are from the condition PodScheduled while it is False. They describe the last
    failed attempt (`Unschedulable`, `SchedulerError`), or its gates (`SchedulingGated`). If the condition has no
    information, all three are empty. No plugin reads these fields.
    """

    created: str = ""
    """metadata.creationTimestamp"""
    gates: tuple[str, ...] = ()
    """Names of spec.schedulingGates. With any gate, kube-scheduler does not try the pod."""
    reason: str = ""
    message: str = ""
    changed: str = ""
    """lastTransitionTime of the condition."""


NOT_WAITING = Waiting()
"""Shared by every pod on a node."""
