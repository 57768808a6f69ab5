"""The scheduler's profiles: names, names of plugins, differences between profiles, and arguments of plugins."""

from collections import Counter
from difflib import get_close_matches
from typing import Final

from app.commands.doctor.findings import HANDBOOK, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.json_text import encode
from app.objects.decode import DecodeError
from app.objects.plugin_args import decode_plugin_args, plugin_arguments
from app.scheduler_configuration.finding import VALIDATION
from app.scheduler_configuration.plugin_sets import IMPLEMENTED, KNOWN
from app.scheduler_configuration.schema import POINTS
from core.plugin_names import FORMER_NAMES, todays_name

_ALL: Final = 100


def _names(registration: Registration) -> Found:
    profiles = registration.config.profiles
    for profile in profiles:
        if not profile.name:
            yield error(profile.at("schedulerName"), "required where there are several profiles", "schedulerName: NAME")
    for name, count in Counter(profile.name for profile in profiles if profile.name).items():
        if count > 1:
            yield error("profiles", f"{count} profiles have the schedulerName {name}", "a schedulerName for each")


def _percentages(registration: Registration) -> Found:
    places = [("percentageOfNodesToScore", registration.config.percentage_of_nodes_to_score)]
    places += [
        (profile.at("percentageOfNodesToScore"), profile.percentage_of_nodes_to_score or 0)
        for profile in registration.config.profiles
    ]
    for where, value in places:
        if not 0 <= value <= _ALL:
            yield error(where, f"{value}: must be 0..100; kube-scheduler does not start", "a value of 0..100")


def _plugins(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        for point in POINTS:
            for side, written in (
                ("disabled", profile.disabled(point)),
                ("enabled", profile.enabled_as_written(point)),
            ):
                for name in written:
                    where = profile.at(f"plugins.{point}.{side}")
                    yield from _plugin(where, name, point, switched_off=side == "disabled")


def _plugin(where: str, name: str, point: str, *, switched_off: bool) -> Found:
    if name in KNOWN or (name == "*" and switched_off):
        if switched_off and point not in {"multiPoint", *IMPLEMENTED.get(name, POINTS)}:
            points = ", ".join(sorted(IMPLEMENTED[name]))
            yield warning(where, f"{name} has nothing at {point}, but at {points}", f"take {name} out of {where}")
        return
    if name in FORMER_NAMES:
        present = todays_name(name)
        if switched_off:
            yield warning(where, f"{name} is a former name of {present}, so nothing is disabled", f"name: {present}")
        else:
            message = f"{name} is a former name of {present}: no plugin has it now, and kube-scheduler does not start"
            yield error(where, message, f"name: {present}")
        return
    close = get_close_matches(name, KNOWN, 1)
    if not close:
        yield info(where, f"{name!r} is no in-tree plugin; correct if your kube-scheduler has it built in", "")
    elif switched_off:
        message = f"there is no plugin {name!r}, so nothing is disabled; did you mean {close[0]}?"
        yield error(where, message, f"name: {close[0]}")
    else:
        message = f"{name!r} is no in-tree plugin; did you mean {close[0]}? Without it kube-scheduler does not start"
        yield warning(where, message, f"name: {close[0]}")


def _differences(registration: Registration) -> Found:
    profiles = registration.undecided  # profiles that Kindred decides for may differ: each has the plugins for its pods
    for plugin in sorted(registration.filters | set(registration.scores)):
        for point in ("filter", "score"):
            off = [each for each in profiles if each.switched_off(plugin, point)]
            if off and len(off) < len(profiles):
                on = [each for each in profiles if each not in off]
                yield warning(
                    on[0].at(f"plugins.{point}"),
                    f"{plugin} is disabled at {point} in the profile {', '.join(each.name for each in off)}, and not "
                    f"in {', '.join(each.name for each in on)}: the extender is called for the pods of all profiles",
                    f"disable {plugin} at {point} in each profile",
                )


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


CHECKS = (
    Check("profile-names", VALIDATION, _names),
    Check("percentage-range", VALIDATION, _percentages),
    Check("plugin-names", VALIDATION, _plugins),
    Check("profiles-differ", HANDBOOK, _differences),
    Check("plugin-arguments", HANDBOOK, _arguments, of_settings=True),
)
