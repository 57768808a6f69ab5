"""Whether one program enforces each hard rule, for all nodes, and whether each score counts once."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from app.commands.doctor.findings import BEHAVIOUR, EXTENDER_TYPE, HANDBOOK, error, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.explain.scheduler_profiles import changed_arguments
from app.objects.plugin_args import plugin_arguments
from app.process.json_text import encode
from app.scheduler_configuration.schema import CLAIMS, HALVES, KNOWN, POINTS, Point, Profile
from app.scheduler_configuration.validation import arguments_of
from app.verbs.scopes import DecideScope
from core.plugins import DEFAULTS, DEVICES, PLUGINS
from core.plugins.in_tree import DefaultPreemption, SchedulingGates

_ALL: Final = 100  # percent
_SCALE: Final = 10  # MaxNodeScore / MaxExtenderPriority, kube-scheduler's factor
_MAX_NODE_SCORE: Final = 100
_SLIP: Final = 0.9
"""Likeness of two names of which one is a slip of the pen; other plugins have names that are less alike."""
_NEAR: Final = 0.25  # relative error of the weight that changes little
_EVICT: Final = setting("preempt", "evict")
_WITHOUT_A_STAND_IN: Final[Mapping[tuple[str, Point], str]] = {
    **{(name, "filter"): DEFAULTS[name].missed for name in CLAIMS},
    (SchedulingGates.name, "preEnqueue"): "pods are scheduled despite their scheduling gates",
    (DefaultPreemption.name, "postFilter"): f"no pod is preempted, unless by Kindred with {_EVICT}",
}


def _arguments(registration: Registration) -> Found:
    ours = plugin_arguments(registration.settings)
    for profile in registration.config.profiles:
        for written in profile.plugin_config:
            plugin = written.name
            has_it = plugin in registration.filters | set(registration.scores)
            if not has_it or not any(profile.switched_off(plugin, point) for point in ("filter", "score")):
                continue
            where = profile.at(f"pluginConfig {plugin}")
            if wrong := sorted(changed_arguments(plugin, profile.name, arguments_of(written, where), ours)):
                yield warning(
                    where,
                    f"{', '.join(wrong)}: {plugin} is disabled, and Kindred runs it with other arguments",
                    setting("plugin_args", encode({plugin: written.args}).decode()),
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
        yield from _in_neither(registration, profile)
        for (plugin, point), consequence in _WITHOUT_A_STAND_IN.items():
            if profile.switched_off(plugin, point) and not _stands_in(registration, profile, plugin):
                tell = warning if plugin in {DEVICES.name, DefaultPreemption.name} else error
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
    if plugin == DefaultPreemption.name:
        return registration.settings.preempt == "evict"
    return plugin in CLAIMS


def _in_neither(registration: Registration, profile: Profile) -> Found:
    # Without VolumeBinding, a profile that Kindred does not decide for is always wrong, which _by_nobody reports.
    elsewhere = CLAIMS if registration.scope_of(profile) is None else ()
    lost = ", ".join(
        name
        for name in sorted(PLUGINS.keys() - {*elsewhere})
        if profile.switched_off(name, "filter") and name not in registration.filters
    )
    if lost:
        tell = warning if registration.assumed else error
        yield tell(
            profile.at("plugins"),
            f"neither kube-scheduler nor Kindred filters by {lost} in the profile {profile.name}: the rule is not "
            "enforced",
            f"take {lost} out of filter.disabled and multiPoint.disabled, or add to {setting('profile')}",
        )


def _halves(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        for name, before, point in profile.halved():
            yield error(
                profile.at(f"plugins.{before}"),
                f"{name} is disabled at {before} and not at {point}, in the profile {profile.name}: its {point} fails "
                "for every pod that reaches it",
                f"take {name} out of {before}.disabled, or add it to {point}.disabled",
            )
        ours = registration.filters | set(registration.scores)
        costly = sorted(name for name, each in PLUGINS.items() if each.costly_pre and name in ours)
        for before, point in HALVES:
            idle = [name for name in costly if profile.switched_off(name, point) and profile.runs(name, before)]
            if names := ", ".join(idle):
                yield warning(
                    profile.at(f"plugins.{before}"),
                    f"{names}: disabled at {point} and not at {before}, in the profile {profile.name}. {before}, which "
                    "is nearly all of the work, is done for nothing",
                    f"add {names} to {before}.disabled",
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


def _balance(registration: Registration) -> Found:
    extender = registration.extender
    if not extender.prioritize_verb or not registration.scores:
        return
    least = 1 if registration.assumed else registration.settings.max_score  # too strong with any maxScore?
    given = extender.weight * least * _SCALE
    has_rival = sum(bool(each.prioritize_verb) for each in registration.config.extenders) > 1  # without any, no effect
    for profile in registration.config.profiles:
        weights = _weights(registration, profile)
        needed = _MAX_NODE_SCORE * sum(weights.values())
        off = _switched_off(registration, profile)
        if len(off) < len(registration.scores) and given <= needed:
            continue  # besides; that it counts twice is said elsewhere
        if abs(given - needed) <= _NEAR * needed or not (has_rival or profile.scoring()):
            continue
        if registration.assumed and given < needed:
            continue
        strong = "strong" if given > needed else "weak"
        by_plugin = ", ".join(f"{plugin} {weight}" for plugin, weight in sorted(weights.items()))
        stands_for = f"the in-tree scores that it stands for add up to {needed}" if off else f"as in-tree: {needed}"
        max_score, weight = finest_pair(needed // _MAX_NODE_SCORE)
        yield warning(
            extender.at("weight"),
            f"too {strong}: weight {extender.weight} * maxScore {least}"
            f" * 10 = up to {given} for a node, while {stands_for} "
            f"({by_plugin}), in the profile {profile.name}",
            f"weight: {weight} and {setting('max_score', max_score)}, which is up to {weight * max_score * _SCALE}",
        )


def finest_pair(weight: int) -> tuple[int, int]:
    """Return max_score and weight of an extender that weighs as an in-tree weight, with the most steps."""
    product = weight * _SCALE
    return next((steps, product // steps) for steps in range(_MAX_NODE_SCORE, 0, -1) if product % steps == 0)


def _weights(registration: Registration, profile: Profile) -> Mapping[str, int]:
    """Return plugin -> weight for the scores of Kindred. The weight of one alone changes no score of Kindred."""
    scores = registration.scores
    if len(scores) == 1 or registration.assumed:
        return {plugin: profile.weight(plugin) for plugin in scores}
    return scores


def _switched_off(registration: Registration, profile: Profile) -> list[str]:
    return sorted(plugin for plugin in registration.scores if profile.switched_off(plugin, "score"))


def misspelled(registration: Registration, profile: Profile) -> dict[str, str]:
    """Return name -> the plugin that is meant, for names that are disabled, and that no plugin has."""
    enabled = {name for each in registration.config.profiles for point in POINTS for name in each.enabled(point)}
    names = {name for point in POINTS for name in profile.disabled(point)} - KNOWN - enabled
    return {name: close[0] for name in sorted(names) if (close := get_close_matches(name, KNOWN, 1))}


def _unknown_names(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        for name, meant in misspelled(registration, profile).items():
            yield warning(
                profile.at("plugins"),
                f"{name}: no plugin has this name, and kube-scheduler ignores it: {meant} runs in the profile "
                f"{profile.name} as if nothing was disabled",
                f"name: {meant}",
            )
        enabled = {name for point in POINTS for name in profile.enabled(point)}
        for name in sorted(enabled - KNOWN):
            if close := get_close_matches(name, KNOWN, 1, _SLIP):
                yield warning(
                    profile.at("plugins"),
                    f"{name}: no in-tree plugin has this name, and kube-scheduler starts only if it is one of your own",
                    f"name: {close[0]}",
                )
        for index, each in enumerate(profile.plugin_config):
            close = [] if each.name in KNOWN | enabled else get_close_matches(each.name, KNOWN, 1, _SLIP)
            if close or not each.name:
                yield warning(
                    profile.at(f"pluginConfig[{index}].name"),
                    f"{each.name or 'not set'}: kube-scheduler ignores these arguments",
                    f"name: {close[0]}" if close else "name: PLUGIN beside args, not in it",
                )


def _once(registration: Registration) -> Found:
    has_verb = registration.extender.prioritize_verb
    for profile in registration.config.profiles if has_verb else registration.undecided:
        failing = (name for name, _, point in profile.halved() if point == "score")
        reported = {*misspelled(registration, profile).values(), *failing}  # of which another finding tells
        twice = sorted(name for name in registration.scores if profile.runs(name, "score") and name not in reported)
        nothing = not profile.scoring() and len(registration.scores) == 1
        if has_verb and nothing and not registration.assumed:
            (alone,) = registration.scores
            yield warning(
                profile.at("plugins.score"),
                f"kube-scheduler scores by no plugin in the profile {profile.name}, and Kindred by {alone} alone: "
                "nothing balances the load of the nodes",
                f"disable {alone} alone, or {setting('profile', 'full')}",
            )
        if has_verb and twice:
            names = ", ".join(twice)
            yield warning(
                profile.at("plugins.score"),
                f"counted twice, by kube-scheduler and by Kindred, in the profile {profile.name}: {names}",
                f"add to plugins.score.disabled (and preScore.disabled): {names}; or take them out of "
                f"{setting('profile')}",
            )
        elif not has_verb and registration.extender.verbs and (off := _switched_off(registration, profile)):
            yield warning(
                registration.extender.at("prioritizeVerb"),
                f"not set, and kube-scheduler does not score by {', '.join(off)} in the profile {profile.name}: the "
                "score is missing",
                "prioritizeVerb: prioritize and weight: 1",
            )


CHECKS: Final = (
    Check("plugin-arguments", HANDBOOK, _arguments, needs_settings=True),
    Check("filter-by-nobody", HANDBOOK, _by_nobody),
    Check("plugin-name", HANDBOOK, _unknown_names),
    Check("half-switched-off", BEHAVIOUR, _halves),
    Check("ignorable", EXTENDER_TYPE, _ignorable),
    Check("sampling", HANDBOOK, _sampling),
    Check("weight-balance", f"{HANDBOOK}, All scores from Kindred", _balance),
    Check("score-once", HANDBOOK, _once),
)
