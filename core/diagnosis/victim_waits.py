"""Which victims of preemption a pod waits for, as an explanation tells it."""

from collections.abc import Sequence

import msgspec

from core.diagnosis.pod_names import name_of, uid_of
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod


class AwaitedVictim(msgspec.Struct, frozen=True):
    """A pod that the explained pod waits for, to get its node when it has ended."""

    name: str
    """NAMESPACE/NAME"""
    uid: str
    node: str
    waiting: float
    """Seconds since it was seen first."""


def awaited_victims(mirror: ClusterMirror, pod: Pod, now: float) -> Sequence[AwaitedVictim]:
    """Return the victims that a pod waits for, by name; none for a pod that is not pending."""
    mirror.preemptors.follow(now)
    return [
        AwaitedVictim(name_of(each.victim), uid_of(each.victim), each.node, now - each.since)
        for each in mirror.preemptors.of_preemptor(pod.uid)
    ]
