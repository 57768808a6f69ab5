"""The rules that an explanation cannot judge for a pod, with reasons, so that no result claims more than was judged."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from core.events import Kind, Missing
from core.explaining.explained import Explained
from core.framework.claims import not_found_text
from core.framework.evaluation import Composite
from core.framework.interface import Plugin
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import PersistentVolumeClaim
from core.plugins.in_tree import GANG_SCHEDULING
from core.profile import Profile


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
    only if its result for this pod depends on such objects, or if it cannot judge with the feature gates. For example,
    a pod without volumes is judged without any claim, and a bound claim without any StorageClass.
    """
    if PersistentVolumeClaim in missing and _lacks_a_claim(pod):
        missing = {kind: why for kind, why in missing.items() if kind is not PersistentVolumeClaim}
    left_out = {each.name: NotJudged(each.name, why) for each in profile.filters if (why := _unsupported(each, mirror))}
    unscored: dict[str, NotJudged] = {}
    in_part: list[NotJudged] = []
    if missing:
        for each in profile.filters:
            if each.name not in left_out and (kinds := _missing_for_filter(each, pod, missing, mirror)):
                left_out[each.name] = _not_judged(each.name, missing, kinds)
        for scoring, _ in profile.scores:
            if scoring.name not in left_out and (kinds := _missing_for_score(scoring, pod, missing, mirror)):
                unscored[scoring.name] = _not_judged(scoring.name, missing, kinds)
        in_part = [
            _not_judged(each.name, missing, parts, f"{' and '.join(parts.values())}: ")
            for each in profile.filters
            if each.name not in left_out and (parts := _missing_in_part(each, pod, missing, mirror))
        ]
    if left_out or unscored:
        profile = Profile(
            tuple(each for each in profile.filters if each.name not in left_out),
            tuple(each for each in profile.scores if each[0].name not in left_out.keys() | unscored.keys()),
            profile.in_default_order,
        )
    return Judged(profile, [*left_out.values(), *in_part, *_never_judged(pod)], [*unscored.values()])


def _not_judged(plugin: str, missing: Mapping[Kind, Missing], kinds: Collection[Kind], part: str = "") -> NotJudged:
    reasons = dict.fromkeys(missing[kind].why for kind in kinds)
    commands = dict.fromkeys(missing[kind].command for kind in kinds if missing[kind].command)
    return NotJudged(plugin, part + "; ".join(reasons), " && ".join(commands))


def _never_judged(pod: Pod) -> list[NotJudged]:
    if not pod.in_scheduling_group:
        return []
    return [NotJudged(GANG_SCHEDULING, "kube-scheduler schedules the pods of a group together")]


def _unsupported(plugin: Plugin, mirror: ClusterMirror) -> str:
    return plugin.unsupported(mirror.rules) if isinstance(plugin, Explained) else ""


def _missing_for_filter(plugin: Plugin, pod: Pod, missing: Collection[Kind], mirror: ClusterMirror) -> list[Kind]:
    read: set[Kind] = set()
    for part in plugin.parts if isinstance(plugin, Composite) else (plugin,):
        kinds = [kind for kind in part.kinds if kind in missing]
        read.update(part.reads(mirror, pod, kinds) if isinstance(part, Explained) else kinds)
    return [kind for kind in plugin.kinds if kind in missing and kind in read]


def _missing_for_score(plugin: Plugin, pod: Pod, missing: Collection[Kind], mirror: ClusterMirror) -> list[Kind]:
    kinds = [kind for kind in plugin.kinds if kind in missing]
    read = plugin.reads_to_score(mirror, pod, kinds) if isinstance(plugin, Explained) else kinds
    return [kind for kind in kinds if kind in read]


def _missing_in_part(plugin: Plugin, pod: Pod, missing: Collection[Kind], mirror: ClusterMirror) -> Mapping[Kind, str]:
    parts = plugin.reads_in_part(mirror, pod) if isinstance(plugin, Explained) else {}
    return {kind: part for kind, part in parts.items() if kind in missing}


def _lacks_a_claim(pod: Pod) -> bool:
    """Return whether the pod's scheduler has said that a claim of the pod does not exist."""
    message = pod.waiting.message
    claims = (each.name for each in pod.volumes if isinstance(each, PodClaim)) if message else ()
    return any(not_found_text(PersistentVolumeClaim, name) in message for name in claims)
