"""The events after which kube-scheduler retries an unschedulable pod, and the victims that a pod waits for.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/*, EventsToRegister of each plugin in v1.34.1, v1.35.4,
v1.36.3 and v1.37.1. The events are those with the feature gate SchedulerQueueingHints, which is locked on up to 1.36
and removed in 1.37.

A plugin's queueing hint checks the object of the event, and may skip the event. Events that the hint always skips are
left out: for all pods in the plugin's list of events, and for one pod by its hint (`Event.may_help`). Only 1.37
registers pods on nodes (AssignedPod) and the waiting pod (TargetPod) as two resources. Before, the hint distinguishes
them.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.explaining.explained import Event, Explained
from core.explaining.pod_names import name_of, uid_of
from core.framework.interface import Plugin
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import VictimWait
from core.objects.pod import Pod
from core.plugins import EXPLAINED
from core.releases.release import Rules


class Wake(msgspec.Struct, frozen=True, gc=False):
    """Events of one kind of object that a plugin registers, for the pods that it rejected."""

    plugin: str
    resource: str
    """Kind of the object, `*` for any. `Pod` means a pod on a node, unless `of_pod_itself`."""
    actions: Sequence[str]
    """Upstream's ActionTypes: Add, Delete, Update, or one of its parts such as UpdateNodeTaint, or `*`."""
    of_pod_itself: bool = False
    """Whether the event is a change of the waiting pod itself."""


REGISTERING: Final = frozenset(
    name for name, plugin in EXPLAINED.items() if issubclass(plugin, Explained) and plugin.events
)
"""The plugins that register events. Other plugins are not upstream's."""


def events_of(plugin: Plugin, rules: Rules) -> Sequence[Event]:
    """Return the events that a plugin registers in a release. Empty for a plugin that is not upstream's."""
    return [each for each in plugin.events if each.registered(rules)] if isinstance(plugin, Explained) else ()


ANY_EVENT: Final = Wake("Extender", "*", ("*",))
"""Any event, after a rejection by an extender: pkg/scheduler/schedule_one.go, findNodesThatFitPod (ExtenderName)."""


def wakes(decision: Diagnosis) -> Sequence[Wake]:
    """Return the events of the plugins that first failed a node, in the order of the profile. Empty if the pod fits.

    kube-scheduler records only these plugins (UnschedulablePlugins), because it stops at the first failure of a node.
    """
    if len(decision.fitting):
        return ()
    deciding = [decision.profile.filters[place - 1] for place in np.unique(decision.deciding).tolist() if place]
    plugins = [plugin for plugin in deciding if decision.explained.runs_in_scheduler(plugin.name)]
    found = []
    for plugin in plugins:
        for event in events_of(plugin, decision.mirror.rules):
            actions = tuple(action for action in event.actions if event.may_help(decision, action))
            if actions:
                found.append(Wake(plugin.name, event.resource, actions, event.of_pod_itself))
    return found if len(plugins) == len(deciding) else [*found, ANY_EVENT]


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
