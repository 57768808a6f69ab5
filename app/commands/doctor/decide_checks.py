"""Checks of a registration in which Kindred alone decides (`decide`), with claims and scheduling groups."""

from collections.abc import Iterator
from typing import Any, Final

from app.commands.doctor.findings import DECIDE, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.plugin_sets import DEFAULTS, IMPLEMENTED, KNOWN, Profile
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER
from app.scheduler_configuration.schema import POINTS, parse_go_duration
from app.verbs.effects import LONGEST_WAIT
from app.verbs.scopes import DecideScope, decide_scopes
from core.releases import nearest

_LEASE: Final = "kube-scheduler"
_FOR_CLAIMS: Final = ("VolumeBinding", "DynamicResources")
_OF_RESIZES: Final = "DeferredPodScheduling"
_GATE_OF_RESIZES: Final = "InPlacePodVerticalScalingSchedulerPreemption"
_HAS_RESIZES: Final = nearest("1.37").release
_GANGS: Final = "GangScheduling"
_JUDGING: Final = frozenset({"preFilter", "filter", "reserve", "preBind"})
_WAITS: Final = {"VolumeBinding": "bindTimeoutSeconds", "DynamicResources": "bindingTimeout"}
"""Plugin -> its argument for how long a binding may wait."""


def _answer(registration: Registration) -> Found:
    extender = registration.extender
    if registration.settings.decide != "off" or set(extender.verbs) != {"filterVerb"}:
        return
    for profile in registration.config.profiles:
        if not profile.filtering() and not profile.scoring():
            yield error(
                profile.at("plugins"),
                f"no filter and no score in the profile {profile.name}, as for {setting('decide', 'any-node')}, and "
                f"Kindred's decide is off{registration.known.remark}: kube-scheduler takes any node that fits",
                f"{setting('decide', 'any-node')}; kindred doctor --config FILE, if these are not Kindred's settings",
            )


def _scheduler(registration: Registration) -> Found:
    for profile in registration.decided:
        if profile.name == DEFAULT_SCHEDULER:
            yield error(
                profile.at("schedulerName"),
                f"{DEFAULT_SCHEDULER}: pods that Kindred itself, DNS or the control plane need would wait for Kindred",
                "a second kube-scheduler with a schedulerName of its own, as in manifests/overlays/decide, and "
                f"{setting('decide_schedulers')} with that name",
            )
    election = registration.config.leader_election
    cluster_s_own = any(profile.name == DEFAULT_SCHEDULER for profile in registration.config.profiles)
    takes_part = election.leader_elect is not False and election.resource_name in {"", _LEASE}
    if registration.decided and not cluster_s_own and takes_part:
        yield error(
            "leaderElection.resourceName",
            f"{election.resource_name or 'not set'}: that is the Lease {_LEASE} of the cluster's own scheduler. While "
            "that scheduler holds it, this one schedules nothing",
            "resourceNamespace: kindred and resourceName: kindred-scheduler",
        )


def _filters(registration: Registration) -> Found:
    for profile in registration.decided:
        if registration.scope_of(profile) is not DecideScope.ANY_NODE:
            continue
        fix = f'disable "*" at multiPoint in the profile {profile.name}, as manifests/scheduler/decide.yaml does'
        if left := profile.filtering():
            yield error(
                profile.at("plugins.filter"),
                f"kube-scheduler filters by {', '.join(sorted(left))} in the profile {profile.name}, and Kindred "
                "chooses among all nodes: it chooses nodes that these plugins have rejected",
                f"{fix}; or {setting('decide', 'listed-nodes')}",
            )
        elif unknown := sorted(set(profile.enabled("multiPoint")) - KNOWN):
            yield warning(
                profile.at("plugins.multiPoint.enabled"),
                f"{', '.join(unknown)}: if it filters in the profile {profile.name}, Kindred chooses nodes that "
                "it has rejected",
                "enable it only at the extension points that need it, and not at filter",
            )
        elif not {"*"} & {*profile.disabled("multiPoint"), *profile.disabled("filter")}:
            yield warning(
                profile.at("plugins.multiPoint.disabled"),
                f"disabled by name in the profile {profile.name}: a new default filter of a newer kube-scheduler "
                "stays enabled, and Kindred chooses nodes that it has rejected",
                fix,
            )


def _claims(registration: Registration) -> Found:
    if not registration.decided:
        return
    name = registration.settings.decide_claims_scheduler
    if not name:
        yield info(
            setting("decide_claims_scheduler"),
            f"not set{registration.known.remark}: pods with unbound claims or resource claims get an Error",
            "a second profile that keeps the in-tree plugins for these, as in manifests/scheduler/decide.yaml",
        )
        return
    found = [profile for profile in registration.config.profiles if profile.name == name]
    if not found:
        yield warning(
            setting("decide_claims_scheduler"),
            f"{name} is no profile of this configuration: no scheduler schedules the pods that name it, unless "
            "another kube-scheduler has it",
            f"a profile with schedulerName: {name}, as in manifests/scheduler/decide.yaml",
        )
    for profile in found:
        yield from _claims_profile(profile)


def _claims_profile(profile: Profile) -> Found:
    missing = [
        plugin for plugin in _FOR_CLAIMS for point in ("filter", "reserve", "preBind")
        if profile.switched_off(plugin, point)
    ]  # fmt: skip
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        yield error(
            profile.at("plugins"),
            f"{names} is disabled in the profile {profile.name}, which is for pods with claims: pods are bound "
            "without their claims",
            f"take {names} out of the disabled plugins there",
        )


def _resize(registration: Registration) -> Found:
    for profile in registration.decided:
        disabled = any(_OF_RESIZES in profile.disabled(point) for point in POINTS)
        missing = "*" in profile.disabled("multiPoint") and not any(
            _OF_RESIZES in profile.enabled(point) for point in POINTS
        )
        if disabled or (missing and nearest(registration.settings.kubernetes).release >= _HAS_RESIZES):
            yield info(
                profile.at("plugins"),
                f"{_OF_RESIZES} is off in the profile {profile.name}: with the feature gate {_GATE_OF_RESIZES} on, "
                "kube-scheduler asks about running pods whose resize waits, and may name other nodes than theirs",
                f"enable {_OF_RESIZES} at multiPoint if that gate is on, from {_HAS_RESIZES} on; an older "
                "kube-scheduler does not start with it",
            )


def _groups(registration: Registration) -> Found:
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
                    f"less than {longest:g} s",
                )


def _seconds(value: Any) -> float:  # noqa: ANN401  # an argument of a plugin, of any type
    """Return a number of seconds, or the seconds of a duration. 0 for others, which other checks report."""
    if isinstance(value, str):
        return parse_go_duration(value) or 0.0
    return float(value) if isinstance(value, int | float) else 0.0


CHECKS: Final = (
    Check("decide-answer", DECIDE, _answer, of_settings=True),
    Check("decide-scheduler", DECIDE, _scheduler),
    Check("decide-filters", DECIDE, _filters),
    Check("decide-claims", DECIDE, _claims),
    Check("decide-resize", DECIDE, _resize),
    Check("decide-groups", DECIDE, _groups),
    Check("decide-groups-process", DECIDE, _one_process),
    Check("decide-waits", DECIDE, _waits),
)
