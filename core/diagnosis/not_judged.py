"""The rules that an explanation cannot judge for a pod, with reasons, so that no result claims more than was judged."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from core.events import Kind
from core.framework.interface import Plugin
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import DeviceClass
from core.objects.pod import Pod
from core.plugins.noderesources.columns import classes_of, insufficient
from core.profile import Profile

DYNAMIC_RESOURCES: Final = "DynamicResources"
_OF_VOLUMES: Final = frozenset({"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"})
_OF_REQUESTS: Final = frozenset({"NodeResourcesFit", "GeneralPredicates"})

_MAX_RESOURCES: Final = 8
"""How many resources are named. A pod may request hundreds."""


class NotJudged(msgspec.Struct, frozen=True, gc=False):
    """A rule that was not judged."""

    plugin: str
    """Upstream's name of the plugin for the rule."""
    why: str


def judged(profile: Profile, pod: Pod, missing: Mapping[Kind, str]) -> tuple[Profile, list[NotJudged]]:
    """Return the profile without the plugins that cannot be judged for the pod, and these plugins.

    `missing` are the kinds of objects that the mirror should hold but does not, with the reason. A plugin is left out
    only if its result for this pod depends on such objects. For example, a pod without volumes is judged without any
    claim.
    """
    left_out = {
        plugin.name: "; ".join(missing[kind] for kind in kinds)
        for plugin in profile.filters
        if (kinds := _missing_for_filter(plugin, pod, missing))
    }
    scores_left_out = {
        plugin.name: "; ".join(missing[kind] for kind in kinds)
        for plugin, _ in profile.scores
        if (kinds := _missing_for_score(plugin, pod, missing))
    }
    told = [NotJudged(name, why) for name, why in (scores_left_out | left_out).items()]
    if left_out or scores_left_out:
        profile = Profile(
            tuple(each for each in profile.filters if each.name not in left_out),
            tuple(each for each in profile.scores if each[0].name not in scores_left_out),
            profile.in_default_order,
        )
    return profile, [*told, *_never_judged(pod)]


def devices_not_judged(  # noqa: PLR0913  # what devices depend on
    profile: Profile, pod: Pod, batch: NodeBatch, reasons: Collection[str], *, mirror: ClusterMirror, is_off: bool
) -> list[NotJudged]:
    """Return the rule of the devices behind a pod's extended resources, if a verdict depends on devices.

    `reasons` are the reasons of all nodes if the pod fits on none. `is_off`: whether no program runs DynamicResources
    for the pod.
    """
    fit = profile.resources_filter
    classes = {} if fit is None else classes_of(mirror, pod)
    if fit is None or not classes:
        return []
    if left := [resource for resource in fit.left_to_devices(mirror, pod, batch) if resource in classes]:
        named = ", ".join(f"{resource} (DeviceClass {classes[resource]})" for resource in left[:_MAX_RESOURCES])
        judge = "no program allocates" if is_off else "kube-scheduler alone allocates"
        return [NotJudged(DYNAMIC_RESOURCES, f"{judge} the devices for {named}")]
    schedulers = fit.device_schedulers
    if schedulers.have(pod.scheduler_name):
        return []
    short = sorted({name for resource, name in classes.items() if insufficient(resource) in reasons})
    return [NotJudged(DYNAMIC_RESOURCES, schedulers.need(name)) for name in short[:_MAX_RESOURCES]]


def _never_judged(pod: Pod) -> list[NotJudged]:
    told = []
    if pod.claims_resources:
        told.append(NotJudged(DYNAMIC_RESOURCES, "kube-scheduler alone allocates the pod's resource claims"))
    if pod.in_scheduling_group:
        told.append(NotJudged("GangScheduling", "kube-scheduler schedules the pods of a group together"))
    return told


def _missing_for_filter(plugin: Plugin, pod: Pod, missing: Mapping[Kind, str]) -> list[Kind]:
    kinds = [kind for kind in plugin.kinds if kind in missing]
    if plugin.name in _OF_VOLUMES:
        return kinds if pod.volumes else []
    if plugin.name in _OF_REQUESTS:  # a device class may provide only extended resources
        extended = any("/" in resource for resource in pod.requests)
        return [kind for kind in kinds if kind is not DeviceClass or extended]
    # default constraints, which read the owners of pods, are used only for scores
    if plugin.name == "PodTopologySpread":
        return []
    return kinds


def _missing_for_score(plugin: Plugin, pod: Pod, missing: Mapping[Kind, str]) -> list[Kind]:
    if plugin.name == "PodTopologySpread":
        return [] if pod.spread else [kind for kind in plugin.kinds if kind in missing]
    return _missing_for_filter(plugin, pod, missing)
