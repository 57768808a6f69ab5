"""Checks of the profile for scheduling groups, in which every in-tree filter judges and Kindred chooses."""

from collections.abc import Iterator
from typing import Any, Final

from app.commands.doctor.findings import DECIDE, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.go_duration import parse_go_duration
from app.scheduler_configuration.plugin_sets import DEFAULTS, IMPLEMENTED, Profile
from app.scheduler_configuration.schema import POINTS
from app.verbs.deciding.scopes import decide_scopes
from app.verbs.effects import LONGEST_WAIT

_GANGS: Final = "GangScheduling"
_JUDGING: Final = frozenset({"preFilter", "filter", "reserve", "preBind"})
_WAITS: Final = {"VolumeBinding": "bindTimeoutSeconds", "DynamicResources": "bindingTimeout"}
"""Plugin -> its argument for how long a binding may wait."""


def _profile(registration: Registration) -> Found:
    if not registration.decided:
        return
    name, setting_of_it = registration.settings.decide_groups_scheduler, setting("decide_groups_scheduler")
    if not name:
        yield info(
            setting_of_it,
            f"not set{registration.known.remark}: the members of a scheduling group get an Error",
            "a profile with all in-tree plugins, as in manifests/scheduler/decide.yaml",
        )
        return
    found = [profile for profile in registration.config.profiles if profile.name == name]
    if not found:
        yield warning(
            setting_of_it,
            f"{name} is no profile of this configuration: no scheduler schedules the pods that name it",
            f"a profile with schedulerName: {name}, as in manifests/scheduler/decide.yaml",
        )
    for profile in found:
        if missing := sorted(_switched_off(profile)):
            yield error(
                profile.at("plugins"),
                f"{', '.join(missing)}: disabled in the profile {name}, which is for scheduling groups. No program "
                "judges the members by them beside each other",
                "take them out of the disabled plugins there",
            )


def _switched_off(profile: Profile) -> Iterator[str]:
    for plugin in DEFAULTS:
        if any(profile.switched_off(plugin, point) for point in POINTS if point in _JUDGING & IMPLEMENTED[plugin]):
            yield plugin
    if any({_GANGS, "*"} & {*profile.disabled(point)} for point in POINTS):
        yield _GANGS


def _one_process(registration: Registration) -> Found:
    scopes = decide_scopes(registration.settings)
    if scopes is None or not registration.settings.decide_groups_scheduler:
        return
    others = scopes.schedulers - {profile.name for profile in registration.config.profiles}
    if others:
        yield error(
            setting("decide_schedulers"),
            f"{', '.join(sorted(others))}: no profile of this configuration. With "
            f"{setting('decide_groups_scheduler')}, one kube-scheduler has all schedulers for which Kindred decides. A "
            "request shows that the cycle of a group has ended, and the in-tree filters do not see the pods that "
            "another kube-scheduler has assumed",
            "this configuration's profiles alone; another Kindred for the other kube-scheduler",
        )


def _waits(registration: Registration) -> Found:
    settings = registration.settings
    names = {settings.decide_claims_scheduler, settings.decide_groups_scheduler} - {""}
    longest = max(LONGEST_WAIT, settings.assumed_pod_ttl)
    for profile in registration.decided:
        if profile.name not in names:
            continue
        for each in profile.plugin_config:
            argument = _WAITS.get(each.name, "")
            seconds = _seconds((each.args or {}).get(argument))
            if seconds >= longest:
                yield error(
                    profile.at("pluginConfig"),
                    f"{each.name}.{argument} is {seconds:g} s in the profile {profile.name}: a pod whose binding waits "
                    f"so long does not count any more after {longest:g} s",
                    setting("assumed_pod_ttl", f"{seconds + 60:g}"),
                )


def _seconds(value: Any) -> float:  # noqa: ANN401  # an argument of a plugin, of any type
    """Return a number of seconds, or the seconds of a duration. 0 for others, which other checks report."""
    if isinstance(value, str):
        return parse_go_duration(value) or 0.0
    return float(value) if isinstance(value, int | float) else 0.0


CHECKS: Final = (
    Check("decide-groups", DECIDE, _profile),
    Check("decide-groups-process", DECIDE, _one_process),
    Check("decide-waits", DECIDE, _waits),
)
