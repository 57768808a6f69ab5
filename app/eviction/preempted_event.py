"""The Event about a preemption, in the form that kube-scheduler writes.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go (PreemptPod) and k8s.io/client-go
v0.36 tools/events (makeEvent, NewRecorder).
"""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from core.objects.pod import Pod

_MAX_NAME: Final = 253  # characters; the name of an Event must be a DNS subdomain
_MAX_INSTANCE: Final = 128  # characters that the API server allows
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class EventMetadata(msgspec.Struct, frozen=True, gc=False):
    """The name and the namespace of an Event."""

    name: str
    namespace: str


class PodReference(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """A pod that an Event is about."""

    api_version: str = "v1"
    kind: str = "Pod"
    namespace: str
    name: str
    uid: str


class Event(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """An Event of events.k8s.io/v1, with the fields that kube-scheduler sets."""

    api_version: str = "events.k8s.io/v1"
    kind: str = "Event"
    metadata: EventMetadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: PodReference
    related: PodReference
    note: str
    type: str = "Normal"


def preempted_event(  # noqa: PLR0913  # the contents of the Event
    victim: Pod, preemptor: Pod, node: str, *, scheduler_name: str, host: str, now: datetime
) -> Event:
    """Return the Event of a victim that was deleted for a preemptor. `now` is in UTC. `host`: this machine's name."""
    return Event(
        metadata=EventMetadata(_name(victim, now), victim.namespace),
        event_time=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        reporting_controller=scheduler_name,
        reporting_instance=f"{scheduler_name}-{host}"[:_MAX_INSTANCE],
        action="Preempting",
        reason="Preempted",
        regarding=_reference(victim),
        related=_reference(preemptor),
        note=f"Preempted by pod {preemptor.uid} on node {node}",
    )


def _reference(pod: Pod) -> PodReference:
    return PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def _name(victim: Pod, now: datetime) -> str:
    nanoseconds = (now - _EPOCH) // _MICROSECOND * 1000
    name = f"{victim.name}.{nanoseconds:x}"
    return name if len(name) <= _MAX_NAME else str(uuid.uuid4())
