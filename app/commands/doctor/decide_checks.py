"""Who binds, who preempts, and who decides: also for pods with claims and members of scheduling groups."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from app.commands.doctor.findings import DECIDE, HANDBOOK, SETTINGS, Problem, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER
from app.scheduler_configuration.schema import CLAIMS, KNOWN, POINTS, Point, Profile, parse_go_duration
from app.verbs.effects import LONGEST_WAIT
from app.verbs.scopes import ALLOCATING, DecideScope, decide_scopes, in_tree_schedulers
from core.framework.interface import Plugin
from core.plugins import DEFAULTS
from core.plugins.in_tree import GANG_SCHEDULING, DefaultPreemption

_ALL: Final = 100  # percent
_LEASE: Final = "kube-scheduler"


def _gap(registration: Registration) -> Found:
    extender, off = registration.extender, registration.filters_off(registration.undecided)
    if extender.bind_verb or not extender.filter_verb or not off:
        return
    other = next((each for each in registration.config.extenders if each.bind_verb), None)
    binds = f"{other.at()} binds" if other is not None else "not set"
    yield error(
        extender.at("bindVerb"),
        f"{binds}, while Kindred alone filters by {', '.join(off)}: two pods that must not be together can both go to "
        "one node in the time between the decision and its watch event",
        f"bindVerb: bind, with {setting('bind', 'true')} and the roles of `kindred rbac --bind true`",
    )


def _bind_off(registration: Registration) -> Found:
    extender, binds = registration.extender, registration.settings.bind
    if extender.bind_verb and not binds:
        yield error(
            extender.at("bindVerb"),
            f"{extender.bind_verb}, while Kindred's bind is off: each response of bind then "
            "has an Error, and no pod is bound",
            f"{setting('bind', 'true')}, with the roles of `kindred rbac --bind true`; or take bindVerb out",
        )
    elif binds and not extender.bind_verb:
        yield info(
            extender.at("bindVerb"),
            "not set, while Kindred's bind is on: other clients of its port can have pods bound",
            f"bindVerb: bind, or {setting('bind', 'false')}",
        )


def _replicas(registration: Registration) -> Found:
    if (registration.extender.bind_verb or registration.decided) and not registration.settings.elects:
        yield info(
            setting("leader_election"),
            "off, and Kindred binds or decides: that is right for exactly one replica, "
            "because each replica has only its own latest bindings and decisions",
            f"replicas: 1, or {setting('leader_election', 'kindred')}",
        )


def _preempt(registration: Registration) -> Found:
    extender, preempt = registration.extender, registration.settings.preempt
    off = registration.filters_off(registration.undecided)
    if extender.preempt_verb and preempt == "off":
        yield error(
            extender.at("preemptVerb"),
            f"{extender.preempt_verb}, while Kindred's preempt is off: responses of "
            "preempt then have no node, and no pod is preempted",
            f"{setting('preempt', 'verb')}, with the roles of `kindred rbac --preempt verb`; or take preemptVerb out",
        )
    elif off and extender.filter_verb and not extender.preempt_verb:
        yield warning(
            extender.at("preemptVerb"),
            f"not set, while Kindred alone filters by {', '.join(off)}: kube-scheduler ignores these rules when it "
            "chooses victims, and may evict pods for a pod that still does not fit",
            f"preemptVerb: preempt, with {setting('preempt', 'verb')} and the roles of `kindred rbac --preempt verb`",
        )


def _evict(registration: Registration) -> Found:
    extender, config = registration.extender, registration.config
    if registration.settings.preempt != "evict" or not extender.filter_verb:
        return
    if not extender.bind_verb and registration.undecided:
        yield error(
            extender.at("bindVerb"),
            "not set, while Kindred's preempt is evict: it evicts pods for a pod that kube-scheduler has just placed",
            f"bindVerb: bind, or {setting('preempt', 'verb')}",
        )
    for profile in registration.undecided:
        where, percentage = config.percentage_of(profile)
        if percentage < _ALL:
            yield error(
                where,
                f"less than 100 in the profile {profile.name}, while Kindred's preempt is evict: it evicts pods "
                "although the new one fits on a node outside of the request",
                f"percentageOfNodesToScore: 100, or {setting('preempt', 'verb')}",
            )
            return


def _preempt_of_decided(registration: Registration) -> Found:
    evicts = registration.settings.preempt == "evict"
    for profile in registration.decided:
        where, is_on = profile.at("plugins.postFilter"), profile.runs(DefaultPreemption.name, "postFilter")
        # The profile for groups has the filters for a dry run, and Kindred evicts for no member.
        if profile.name == registration.settings.decide_groups_scheduler:
            continue
        if is_on and profile.running("filter"):
            yield warning(
                where,
                f"DefaultPreemption is on in the profile {profile.name}, but does not have the filters of Kindred for "
                "its dry run: it finds no victims, or wrong ones" + (", while Kindred preempts, too" if evicts else ""),
                "disable DefaultPreemption"
                + ("" if evicts else f", and {setting('preempt', 'evict')}, if priorities matter"),
            )
        elif evicts and not registration.assumed and not profile.running("postFilter"):
            yield warning(
                where,
                f"no PostFilter plugin is on in the profile {profile.name}: kube-scheduler clears nominatedNodeName "
                f"after each attempt that fails, and other pods may take the capacity of the victims",
                "enable DefaultPreemption, as manifests/scheduler/decide.yaml does; without filters it evicts no pod",
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
        if left := profile.running("filter"):
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


def _claims(registration: Registration) -> Found:
    pods = "pods with unbound claims or resource claims"
    for profile in (yield from _in_tree_profiles(registration, "decide_claims_scheduler", pods)):
        points: Sequence[Point] = ("filter", "reserve", "preBind")
        off = [name for name in CLAIMS if any(profile.switched_off(name, point) for point in points)]
        yield from _needed_in_tree(profile, off, f"{pods}: these are bound without them")


def _groups(registration: Registration) -> Found:
    pods = "members of scheduling groups"
    for profile in (yield from _in_tree_profiles(registration, "decide_groups_scheduler", pods)):
        consequence = f"{pods}: no program judges them by these plugins beside each other"
        yield from _needed_in_tree(profile, sorted(_switched_off(profile)), consequence)
    if registration.decided and registration.settings.decide_groups_scheduler:
        yield from _one_process(registration)


def _in_tree_profiles(registration: Registration, field: str, pods: str) -> Generator[Problem, None, list[Profile]]:
    """Return the profiles that a setting names for `pods`, beside those that Kindred decides for alone."""
    if not registration.decided:
        return []
    name = getattr(registration.settings, field)
    found = [profile for profile in registration.config.profiles if profile.name == name]
    example = "as in manifests/scheduler/decide.yaml"
    if not name:
        yield info(
            setting(field),
            f"not set: {pods} get an Error",
            f"a profile that keeps the in-tree plugins for these, {example}",
        )
    elif not found:
        yield warning(
            setting(field),
            f"{name} is no profile of this configuration: no scheduler schedules the pods that name it, unless "
            "another kube-scheduler has it",
            f"a profile with schedulerName: {name}, {example}",
        )
    return found


def _needed_in_tree(profile: Profile, off: Sequence[str], consequence: str) -> Found:
    if off:
        yield error(
            profile.at("plugins"),
            f"{', '.join(off)}: disabled in the profile {profile.name}, which is for {consequence}",
            "take them out of the disabled plugins there",
        )


def _switched_off(profile: Profile) -> Iterator[str]:
    for plugin in DEFAULTS:
        if any(profile.switched_off(plugin, point) for point in ALLOCATING):
            yield plugin
    if any({GANG_SCHEDULING, "*"} & {*profile.disabled(point)} for point in POINTS):
        yield GANG_SCHEDULING


def _one_process(registration: Registration) -> Found:
    scopes = decide_scopes(registration.settings)
    if scopes is None:
        return
    named = {profile.name for profile in registration.config.profiles}
    others = scopes.by_scheduler.keys() - named - {registration.settings.decide_groups_scheduler}
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
    names = in_tree_schedulers(settings)
    longest = max(LONGEST_WAIT, settings.assumed_pod_ttl)
    for profile in registration.decided:
        if profile.name not in names:
            continue
        for each in profile.plugin_config:
            argument = DEFAULTS.get(each.name, Plugin).waits_by
            seconds = _seconds(each.args.get(argument) if isinstance(each.args, dict) else None)
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
    Check("gap", HANDBOOK, _gap),
    Check("bind-off", HANDBOOK, _bind_off, needs_settings=True),
    Check("replicas", SETTINGS, _replicas, needs_settings=True),
    Check("preempt", HANDBOOK, _preempt),
    Check("evict", HANDBOOK, _evict, needs_settings=True),
    Check("decide-preemption", DECIDE, _preempt_of_decided),
    Check("decide-scheduler", DECIDE, _scheduler),
    Check("decide-filters", DECIDE, _filters),
    Check("decide-claims", DECIDE, _claims),
    Check("decide-groups", DECIDE, _groups),
    Check("decide-waits", DECIDE, _waits),
)
