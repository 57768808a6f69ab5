"""The rules that an explanation cannot judge for a pod, with reasons, so that no result claims more than was judged."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

import msgspec

from core.events import Kind, Missing
from core.framework.claims import find_claim, not_found_text
from core.framework.interface import Plugin
from core.mirror.affinity_counts import owner_terms
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.kinds import NAMESPACE_NAME, DeviceClass, Namespace, Service
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import (
    NO_PROVISIONER,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.noderesources.columns import classes_of, insufficient
from core.plugins.podtopologyspread.constraints import CONTROLLERS
from core.profile import Profile

DYNAMIC_RESOURCES: Final = "DynamicResources"
_VOLUME_BINDING: Final = "VolumeBinding"

_MAX_RESOURCES: Final = 8
"""How many resources are named. A pod may request hundreds."""


class NotJudged(msgspec.Struct, frozen=True, gc=False):
    """A rule that was not judged."""

    plugin: str
    """Upstream's name of the plugin for the rule."""
    why: str
    command: str = ""
    """A command that gets what is missing. Empty if there is none."""


class Judged(NamedTuple):
    """The part of a profile that can be judged for a pod, and what cannot."""

    profile: Profile
    not_judged: list[NotJudged]
    """Rules that may still refuse nodes."""
    not_scored: list[NotJudged]
    """Plugins whose scores alone are unknown."""


def judged(profile: Profile, pod: Pod, missing: Mapping[Kind, Missing], mirror: ClusterMirror) -> Judged:
    """Return the profile without the plugins that cannot be judged for the pod, and these plugins.

    `missing` are the kinds of objects that the mirror should hold but does not, with the reason. A plugin is left out
    only if its result for this pod depends on such objects. For example, a pod without volumes is judged without any
    claim, and a bound claim without any StorageClass.
    """
    if PersistentVolumeClaim in missing and _lacks_a_claim(pod):
        missing = {kind: why for kind, why in missing.items() if kind is not PersistentVolumeClaim}
    left_out: dict[str, NotJudged] = {}
    unscored: dict[str, NotJudged] = {}
    in_part = []
    if missing:
        for each in profile.filters:
            if kinds := _missing_for_filter(each, pod, missing, mirror):
                left_out[each.name] = _told(each.name, missing, kinds)
        for scoring, _ in profile.scores:
            if scoring.name not in left_out and (kinds := _missing_for_score(scoring, pod, missing, mirror)):
                unscored[scoring.name] = _told(scoring.name, missing, kinds)
        binds = any(each.name == _VOLUME_BINDING for each in profile.filters) and _VOLUME_BINDING not in left_out
        if binds and CSIDriver in missing and _provisioned(mirror, pod):
            in_part.append(_told(_VOLUME_BINDING, missing, [CSIDriver], "capacity for new volumes: "))
    if left_out or unscored:
        profile = Profile(
            tuple(each for each in profile.filters if each.name not in left_out),
            tuple(each for each in profile.scores if each[0].name not in left_out.keys() | unscored.keys()),
            profile.in_default_order,
        )
    return Judged(profile, [*left_out.values(), *in_part, *_never_judged(pod)], [*unscored.values()])


def _told(plugin: str, missing: Mapping[Kind, Missing], kinds: Collection[Kind], part: str = "") -> NotJudged:
    reasons = dict.fromkeys(missing[kind].why for kind in kinds)
    commands = dict.fromkeys(missing[kind].command for kind in kinds if missing[kind].command)
    return NotJudged(plugin, part + "; ".join(reasons), " && ".join(commands))


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


def _missing_for_filter(plugin: Plugin, pod: Pod, missing: Mapping[Kind, Missing], mirror: ClusterMirror) -> list[Kind]:
    kinds = [kind for kind in plugin.kinds if kind in missing]
    read: Collection[Kind] = kinds
    match plugin.name:
        case "VolumeBinding" | "VolumeZone" | "VolumeRestrictions":
            read = _behind_claims(mirror, pod, missing)
        case "NodeVolumeLimits":  # counts the volumes of all pods
            read = kinds if pod.volumes else ()
        case "NodeResourcesFit" | "GeneralPredicates":  # a device class may provide only extended resources
            read = kinds if any("/" in resource for resource in pod.requests) else {*kinds} - {DeviceClass}
        case "InterPodAffinity":
            read = kinds if _reads_namespaces(mirror, pod) else {*kinds} - {Namespace}
        case "PodTopologySpread":  # default constraints, which read the owners of pods, are used only for scores
            read = ()
    return [kind for kind in kinds if kind in read]


def _missing_for_score(plugin: Plugin, pod: Pod, missing: Mapping[Kind, Missing], mirror: ClusterMirror) -> list[Kind]:
    if plugin.name != "PodTopologySpread":
        return _missing_for_filter(plugin, pod, missing, mirror)
    owner = pod.controller
    if pod.spread or not (pod.labels or owner):  # no Service selects a pod without labels (helper.DefaultSelector)
        return []
    read = {Service, CONTROLLERS.get((owner.api_version, owner.kind)) if owner is not None else None}
    return [kind for kind in plugin.kinds if kind in missing and kind in read]


def _lacks_a_claim(pod: Pod) -> bool:
    """Return whether the pod's scheduler has said that a claim of the pod does not exist."""
    said = pod.waiting.message
    claims = (each.name for each in pod.volumes if isinstance(each, PodClaim)) if said else ()
    return any(not_found_text(PersistentVolumeClaim, name) in said for name in claims)


def _claims(mirror: ClusterMirror, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    claims = (find_claim(mirror, pod, each) for each in pod.volumes if isinstance(each, PodClaim))
    return (claim for claim in claims if claim is not None)


def _behind_claims(mirror: ClusterMirror, pod: Pod, missing: Mapping[Kind, Missing]) -> set[Kind]:
    """Return the kinds of the objects by which a pod's claims are judged.

    A claim that exists is judged by its volume, or by its class and the volumes that it may take. Where a class makes
    volumes, a node is refused by the class, and by the capacity if its driver publishes some.
    """
    if not any(isinstance(each, PodClaim) for each in pod.volumes):
        return set()
    if PersistentVolumeClaim in missing:
        return {PersistentVolumeClaim, PersistentVolume, StorageClass}
    kinds: set[Kind] = set()
    for claim in _claims(mirror, pod):
        provisioner = _provisioner(mirror, claim)
        if not claim.volume:
            kinds.add(StorageClass)
        if claim.volume or provisioner in NO_PROVISIONER:
            kinds.add(PersistentVolume)
        driver = mirror.objects(CSIDriver).get(provisioner)
        if not claim.volume and driver is not None and driver.storage_capacity:
            kinds.add(CSIStorageCapacity)
    return kinds


def _provisioner(mirror: ClusterMirror, claim: PersistentVolumeClaim) -> str:
    storage_class = mirror.objects(StorageClass).get(claim.storage_class)
    return "" if storage_class is None else storage_class.provisioner


def _provisioned(mirror: ClusterMirror, pod: Pod) -> bool:
    """Return whether a volume is to be made for a claim of the pod."""
    return any(not claim.volume and _provisioner(mirror, claim) not in NO_PROVISIONER for claim in _claims(mirror, pod))


def _reads_namespaces(mirror: ClusterMirror, pod: Pod) -> bool:
    """Return whether a term of the pod, or of another pod against it or for it, reads labels of namespaces.

    A selector by the name of the namespace, which every namespace has as a label, needs no more than the names.
    """
    own = (each.term.matcher for each in owner_terms(pod.affinity))
    others = (each.matcher for each in mirror.affinity.by_namespace(pod.namespace, pod.labels))
    return any(
        requirement.key != NAMESPACE_NAME or not mirror.namespaces
        for matcher in chain(own, others)
        for requirement in matcher.namespace_selector.requirements
    )
