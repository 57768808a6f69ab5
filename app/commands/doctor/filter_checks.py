"""Whether the hard rules are enforced, and whether requests have all nodes."""

from collections.abc import Mapping
from typing import Final

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, HANDBOOK, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.plugin_sets import NEEDS_PRE, Profile
from app.scheduler_configuration.schema import Point
from core.profile import PLUGINS

_ALL: Final = 100
_WITHOUT_A_STAND_IN: Final[Mapping[tuple[str, Point], str]] = {
    ("VolumeBinding", "filter"): "pods are bound without their claims",
    ("DynamicResources", "filter"): "no plugin allocates ResourceClaims",
    ("SchedulingGates", "preEnqueue"): "pods are scheduled despite their scheduling gates",
    ("DefaultPreemption", "postFilter"): f"no pod is preempted, unless by Kindred with {setting('preempt', 'evict')}",
}


def _node_cache(registration: Registration) -> Found:
    extender = registration.extender
    if extender.node_cache_capable or not extender.verbs:
        return
    tell = error if extender.filter_verb else warning
    lost = "; after filter, kube-scheduler scores resources as if the nodes were empty (issue 141781)"
    yield tell(
        extender.at("nodeCacheCapable"),
        "not true: every call carries all Node objects, about 32 MB for 5,000 nodes"
        + (lost if extender.filter_verb else ""),
        "nodeCacheCapable: true",
    )


def _sampling(registration: Registration) -> Found:
    if not registration.extender.filter_verb:
        return
    for profile in registration.undecided:
        off = sorted(name for name in registration.filters if profile.switched_off(name, "filter"))
        where, percentage = registration.config.percentage_of(profile)
        if not off or percentage >= _ALL:
            continue
        others = "" if profile.percentage_of_nodes_to_score is None else ", or remove it and set 100 for all profiles"
        found = f"{percentage}" if percentage else "not set, or 0, which is 50 % to 5 % by the size of the cluster"
        yield error(
            where,
            f"{found}: Kindred alone filters by {', '.join(off)} in the profile {profile.name}, and its requests have "
            "a sample of the nodes, never fewer than 100: pods stay pending that would fit on another node",
            f"percentageOfNodesToScore: 100{others}",
        )


def _ignorable(registration: Registration) -> Found:
    off = registration.filters_off()
    if registration.extender.ignorable and registration.extender.filter_verb and off:
        yield error(
            registration.extender.at("ignorable"),
            f"true, while Kindred alone filters by {', '.join(off)}: when it does not respond, pods are placed "
            "against their hard rules",
            "ignorable: false",
        )


def _by_nobody(registration: Registration) -> Found:
    extender = registration.extender
    off = registration.filters_off()
    if off and not extender.filter_verb:
        yield error(
            extender.at("filterVerb"),
            f"not set, and kube-scheduler does not filter by {', '.join(off)}: the rule is not enforced",
            f"filterVerb: filter, or take {', '.join(off)} out of filter.disabled and multiPoint.disabled",
        )
    for profile in registration.config.profiles:
        for (plugin, point), consequence in _WITHOUT_A_STAND_IN.items():
            if profile.switched_off(plugin, point) and not _stands_in(registration, profile, plugin):
                tell = warning if plugin in {"DynamicResources", "DefaultPreemption"} else error
                yield tell(
                    profile.at(f"plugins.{point}"),
                    f"{plugin} is disabled in the profile {profile.name}, and Kindred has no replacement: "
                    f"{consequence}",
                    f"take {plugin} out of {point}.disabled and multiPoint.disabled",
                )


def _stands_in(registration: Registration, profile: Profile, plugin: str) -> bool:
    """Return whether a profile that Kindred decides for may lack an in-tree plugin.

    A pod with claims for that plugin gets an `Error` there. See `decide-claims`.
    """
    if registration.scope_of(profile) is None:
        return False
    if plugin == "DefaultPreemption":
        return registration.settings.preempt == "evict"
    return plugin in {"VolumeBinding", "DynamicResources"}


def _lost(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        lost = sorted(
            name
            for name in sorted(PLUGINS.keys() - _told_elsewhere(registration, profile))
            if profile.switched_off(name, "filter") and name not in registration.filters
        )
        if lost:
            yield error(
                profile.at("plugins"),
                f"neither kube-scheduler nor Kindred filters by {', '.join(lost)} in the profile {profile.name}: the "
                "rule is not enforced",
                f"take {', '.join(lost)} out of filter.disabled and multiPoint.disabled, or add to "
                f"{setting('profile')}",
            )


def _told_elsewhere(registration: Registration, profile: Profile) -> set[str]:
    """Return VolumeBinding if its absence is always wrong. The check `filter-by-nobody` reports it."""
    return {"VolumeBinding"} if registration.scope_of(profile) is None else set()


def _twice(registration: Registration) -> Found:
    if not registration.extender.filter_verb:
        return
    for profile in registration.undecided:
        twice = sorted(name for name in registration.filters if profile.runs(name, "filter"))
        if twice:
            yield info(
                profile.at("plugins.filter"),
                f"filtered twice, by kube-scheduler and by Kindred, in the profile {profile.name}: "
                f"{', '.join(twice)}; intended with beside, to compare",
                "take filterVerb out, or disable the filters as manifests/scheduler/full-offload.yaml does",
            )


def _halves(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        for (before, point), needing in NEEDS_PRE.items():
            for name in sorted(needing):
                if profile.runs(name, point) and not profile.runs(name, before):
                    yield error(
                        profile.at(f"plugins.{before}"),
                        f"{name} is disabled at {before} and not at {point}, in the profile {profile.name}: its "
                        f"{point} fails for every pod that reaches it",
                        f"take {name} out of {before}.disabled, or add it to {point}.disabled",
                    )
                elif profile.switched_off(name, point) and profile.runs(name, before):
                    yield warning(
                        profile.at(f"plugins.{before}"),
                        f"{name} still runs at {before} in the profile {profile.name}, although its {point} is "
                        "disabled",
                        f"add {name} to {before}.disabled, too",
                    )


CHECKS = (
    Check("node-cache-capable", "kubernetes issue 141781", _node_cache),
    Check("sampling", HANDBOOK, _sampling),
    Check("ignorable-filter", EXTENDER_TYPE, _ignorable),
    Check("filter-by-nobody", HANDBOOK, _by_nobody),
    Check("filter-in-neither", HANDBOOK, _lost, of_settings=True),
    Check("filtered-twice", HANDBOOK, _twice),
    Check("half-switched-off", BEHAVIOUR, _halves),
)
