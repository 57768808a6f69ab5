"""Which victims of preemption pods wait for, as explanations and the list of pending pods tell it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from core.diagnosis.pod_names import name_of, uid_of
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import VictimWait
from core.objects.pod import Pod


class AwaitedVictim(msgspec.Struct, frozen=True):
    """A pod whose end the explained pod waits for, in order to get its node."""

    name: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    waiting: float
    """Seconds since the wait was first seen."""


VictimsByPod: TypeAlias = Mapping[str, Sequence[AwaitedVictim]]
"""Uid of a pod that waits -> its victims, by name."""


def awaited_victims(mirror: ClusterMirror, pod: Pod, now: float) -> Sequence[AwaitedVictim]:
    """Return the victims that a pod waits for, by name. Empty for a pod that is not pending."""
    mirror.preemptors.follow(now)
    return [_awaited(each, now) for each in mirror.preemptors.of_preemptor(pod.uid)]


def victims_by_pod(mirror: ClusterMirror, now: float) -> VictimsByPod:
    """Return the victims of all pods that wait for any."""
    mirror.preemptors.follow(now)
    found: dict[str, list[AwaitedVictim]] = {}
    for each in mirror.preemptors.waits():
        found.setdefault(each.preemptor.uid, []).append(_awaited(each, now))
    return found


def _awaited(wait: VictimWait, now: float) -> AwaitedVictim:
    return AwaitedVictim(name_of(wait.victim), uid_of(wait.victim), wait.node, now - wait.since)
