"""Whether a program enforces each hard rule, with the arguments of the scheduler, and for all nodes."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, HANDBOOK, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.json_text import encode
from app.objects.decode import DecodeError
from app.objects.plugin_args import decode_plugin_args, plugin_arguments
from app.scheduler_configuration.plugin_sets import KNOWN, NEEDS_PRE, Profile
from app.scheduler_configuration.schema import POINTS, VALIDATION, Point
from app.verbs.scopes import DecideScope
from core.plugin_names import FORMER_NAMES, todays_name
from core.profile import PLUGINS

_ALL: Final = 100
_WITHOUT_A_STAND_IN: Final[Mapping[tuple[str, Point], str]] = {
    ("VolumeBinding", "filter"): "pods are bound without their claims",
    ("DynamicResources", "filter"): "no plugin allocates ResourceClaims",
    ("SchedulingGates", "preEnqueue"): "pods are scheduled despite their scheduling gates",
    ("DefaultPreemption", "postFilter"): f"no pod is preempted, unless by Kindred with {setting('preempt', 'evict')}",
}


def _plugins(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        for point in POINTS:
            for side, written in (
                ("disabled", profile.disabled(point)),
                ("enabled", profile.enabled_as_written(point)),
            ):
                for name in written:
                    yield from _plugin(profile.at(f"plugins.{point}.{side}"), name, switched_off=side == "disabled")


def _plugin(where: str, name: str, *, switched_off: bool) -> Found:
    if name in KNOWN or name == "*":
        return
    if name in FORMER_NAMES:
        present = todays_name(name)
        if switched_off:
            yield warning(where, f"{name} is a former name of {present}, so nothing is disabled", f"name: {present}")
        else:
            message = f"{name} is a former name of {present}: no plugin has it now, and kube-scheduler does not start"
            yield error(where, message, f"name: {present}")
        return
    # A name that is like none may be of a plugin that is built into the scheduler.
    for close in get_close_matches(name, KNOWN, 1):
        if switched_off:
            message = f"there is no plugin {name!r}, so nothing is disabled; did you mean {close}?"
            yield error(where, message, f"name: {close}")
        else:
            message = f"{name!r} is no in-tree plugin; did you mean {close}? Without it kube-scheduler does not start"
            yield warning(where, message, f"name: {close}")


def _arguments(registration: Registration) -> Found:
    ours = plugin_arguments(registration.settings)
    for profile in registration.config.profiles:
        for plugin, args in ((each.name, each.args or {}) for each in profile.plugin_config):
            has_it = plugin in registration.filters | set(registration.scores)
            off = any(profile.switched_off(plugin, point) for point in ("filter", "score"))
            if not has_it or not off or not isinstance(args, dict):
                continue
            where = profile.at(f"pluginConfig {plugin}")
            text = encode({plugin: args}).decode()
            try:
                theirs = decode_plugin_args(text).get(plugin, {})
            except DecodeError as problem:
                yield error(
                    where, f"{problem}; kube-scheduler does not start", "as upstream documents the plugin's args"
                )
                continue
            wrong = sorted(name for name, value in theirs.items() if value and ours.get(plugin, {}).get(name) != value)
            if wrong:
                yield warning(
                    where,
                    f"{', '.join(wrong)}: {plugin} is disabled, and Kindred runs it with other "
                    f"arguments{registration.known.remark}",
                    setting("plugin_args", text),
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


def _in_neither(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        # Without VolumeBinding, a profile is always wrong, which the check `filter-by-nobody` reports.
        elsewhere = {"VolumeBinding"} if registration.scope_of(profile) is None else set()
        lost = ", ".join(
            name
            for name in sorted(PLUGINS.keys() - elsewhere)
            if profile.switched_off(name, "filter") and name not in registration.filters
        )
        if lost:
            yield error(
                profile.at("plugins"),
                f"neither kube-scheduler nor Kindred filters by {lost} in the profile {profile.name}: the rule is not "
                "enforced",
                f"take {lost} out of filter.disabled and multiPoint.disabled, or add to {setting('profile')}",
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


def _ignorable(registration: Registration) -> Found:
    extender, off = registration.extender, registration.filters_off()
    if extender.ignorable and extender.filter_verb and off:
        yield error(
            extender.at("ignorable"),
            f"true, while Kindred alone filters by {', '.join(off)}: when it does not respond, pods are placed "
            "against their hard rules",
            "ignorable: false",
        )
    elif extender.ignorable and extender.bind_verb:
        yield warning(
            extender.at("ignorable"),
            "true, with bindVerb: when Kindred rejects a binding that would break a rule, kube-scheduler binds "
            "the pod itself",
            "ignorable: false",
        )


def _sampling(registration: Registration) -> Found:
    if not registration.extender.filter_verb:
        return
    for profile in registration.config.profiles:
        where, percentage = registration.config.percentage_of(profile)
        scope = registration.scope_of(profile)
        if percentage >= _ALL or scope is DecideScope.ANY_NODE:
            continue
        off = sorted(name for name in registration.filters if profile.switched_off(name, "filter"))
        if scope is None and not off:
            continue
        why = f"Kindred alone filters by {', '.join(off)}" if scope is None else "Kindred chooses among listed nodes"
        others = "" if profile.percentage_of_nodes_to_score is None else ", or remove it and set 100 for all profiles"
        found = f"{percentage}" if percentage else "not set, or 0, which is 50 % to 5 % by the size of the cluster"
        yield error(
            where,
            f"{found}: {why} in the profile {profile.name}, and its requests have a sample of the nodes, never fewer "
            "than 100: pods stay pending that would fit on another node",
            f"percentageOfNodesToScore: 100{others}",
        )


CHECKS: Final = (
    Check("plugin-names", VALIDATION, _plugins),
    Check("plugin-arguments", HANDBOOK, _arguments, of_settings=True),
    Check("filter-by-nobody", HANDBOOK, _by_nobody),
    Check("filter-in-neither", HANDBOOK, _in_neither, of_settings=True),
    Check("half-switched-off", BEHAVIOUR, _halves),
    Check("ignorable", EXTENDER_TYPE, _ignorable),
    Check("sampling", HANDBOOK, _sampling),
)
