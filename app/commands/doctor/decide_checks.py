"""Additional checks of a registration in which Kindred alone decides (`decide`)."""

from difflib import get_close_matches
from typing import Final

from app.commands.doctor.findings import BEHAVIOUR, DECIDE, HANDBOOK, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.plugin_sets import KNOWN, Profile
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER
from app.scheduler_configuration.schema import POINTS
from app.verbs.deciding.scopes import DecideScope, decide_scopes
from core.releases import nearest

_ALL: Final = 100
_DEFAULT_QPS: Final = 50  # k8s.io/kubernetes pkg/scheduler/apis/config/v1/defaults.go, as the next one
_DEFAULT_BURST: Final = 100
_ENOUGH_QPS: Final = 500  # requests a second; any-node reaches about as many bindings in a cluster of 500 nodes
_LEASE: Final = "kube-scheduler"
_FOR_CLAIMS: Final = ("VolumeBinding", "DynamicResources")
_OF_RESIZES: Final = "DeferredPodScheduling"
_GATE_OF_RESIZES: Final = "InPlacePodVerticalScalingSchedulerPreemption"
_HAS_RESIZES: Final = nearest("1.37").release
_OF_VOLUMES: Final = frozenset({"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"})


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


def _scope(registration: Registration) -> Found:
    scopes = decide_scopes(registration.settings)
    if scopes is None:
        return
    names = [profile.name for profile in registration.config.profiles]
    for profile in registration.undecided:
        yield warning(
            profile.at("schedulerName"),
            f"{profile.name} is not in {setting('decide_schedulers')}: filter returns all nodes that fit for its pods, "
            "and they count only after their binding",
            f"add {profile.name}",
        )
    if registration.settings.decide_groups_scheduler:
        return  # then it is an error: groups_checks
    for scheduler in sorted(scopes.schedulers - set(names)):
        close = get_close_matches(scheduler, names, 1)
        yield info(
            setting("decide_schedulers"),
            f"{scheduler} is no profile of this configuration; correct if another kube-scheduler has it",
            f"{close[0]}, if that is meant" if close else "",
        )


def _filters(registration: Registration) -> Found:
    for profile in registration.decided:
        where, left = profile.at("plugins.filter"), profile.filtering()
        fix = f'disable "*" at multiPoint in the profile {profile.name}, as manifests/scheduler/decide.yaml does'
        if registration.scope_of(profile) is DecideScope.ANY_NODE:
            if left:
                yield error(
                    where,
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
            elif not _all_off(profile):
                yield warning(
                    profile.at("plugins.multiPoint.disabled"),
                    f"disabled by name in the profile {profile.name}: a new default filter of a newer kube-scheduler "
                    "stays enabled, and Kindred chooses nodes that it has rejected",
                    fix,
                )
        elif twice := left & registration.filters - _needed_twice(registration, profile):
            yield info(
                where,
                f"filtered twice, by kube-scheduler and by Kindred, in the profile {profile.name}: "
                f"{', '.join(sorted(twice))}; kube-scheduler filters each node for that",
                f"{fix}, or these by name if plugins for claims must stay",
            )


def _all_off(profile: Profile) -> bool:
    return "*" in profile.disabled("multiPoint") or "*" in profile.disabled("filter")


def _needed_twice(registration: Registration, profile: Profile) -> frozenset[str]:
    """Return the filters that both programs need: those for claims, and all for scheduling groups."""
    if _is_for_groups(registration, profile):
        return registration.filters
    return _OF_VOLUMES if profile.name == registration.settings.decide_claims_scheduler else frozenset()


def _is_for_groups(registration: Registration, profile: Profile) -> bool:
    return profile.name == registration.settings.decide_groups_scheduler


def _sample(registration: Registration) -> Found:
    for profile in registration.decided:
        where, percentage = registration.config.percentage_of(profile)
        shown = f"{percentage}" if percentage else "not set, or 0, which is 50 % to 5 % by the size of the cluster"
        if registration.scope_of(profile) is DecideScope.LISTED_NODES and percentage < _ALL:
            yield error(
                where,
                f"{shown}: in the profile {profile.name} Kindred chooses among the nodes of the request, and these "
                "are a sample: pods stay pending that would fit on another node",
                "percentageOfNodesToScore: 100",
            )
        elif registration.scope_of(profile) is DecideScope.ANY_NODE and percentage != 1:
            yield warning(
                where,
                f"{shown}: in the profile {profile.name} Kindred chooses among all nodes of the cluster, and every "
                "name in the request costs time in kube-scheduler",
                "percentageOfNodesToScore: 1, which is 100 names",
            )


def _rate(registration: Registration) -> Found:
    if not registration.decided:
        return
    connection = registration.config.client_connection
    qps, burst = connection.qps or _DEFAULT_QPS, connection.burst or _DEFAULT_BURST
    for field, written, value in (("qps", connection.qps, qps), ("burst", connection.burst, burst)):
        if qps > 0 and value < _ENOUGH_QPS:
            yield warning(
                f"clientConnection.{field}",
                f"{value:g}{'' if written else ', the default'}: kube-scheduler binds the pods, and its client sends "
                f"no more than {qps:g} requests a second, after a burst of {burst}",
                f"{field}: 2000",
            )


def _verbs(registration: Registration) -> Found:
    extender = registration.extender
    if not registration.decided:
        return
    if not extender.filter_verb:
        yield error(extender.at("filterVerb"), "not set: Kindred is never called for a decision", "filterVerb: filter")
    if extender.prioritize_verb and not registration.undecided:
        yield warning(
            extender.at("prioritizeVerb"),
            "never called: with one node in the response of filter, kube-scheduler does not score",
            "take prioritizeVerb and weight out",
        )
    if extender.bind_verb:
        yield warning(
            extender.at("bindVerb"),
            "Kindred decides for each pod twice and binds it, in a second call; kube-scheduler would bind while it "
            "schedules the next pod",
            "take bindVerb out",
        )


def _other_filter(registration: Registration) -> Found:
    others = [each for each in registration.config.extenders if each.filter_verb and each is not registration.extender]
    if registration.decided and others:
        names = ", ".join(each.at() for each in others)
        yield error(
            others[0].at("filterVerb"),
            f"{names}: another extender filters, and Kindred does not take its rules into account. Kindred ignores "
            "the result of an extender before it with any-node. An extender after it can only reject the one node, "
            "and the pod is tried again",
            f"take filterVerb out of {names}",
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


def _preemption(registration: Registration) -> Found:
    evicts = registration.settings.preempt == "evict"
    for profile in registration.decided:
        if _is_for_groups(registration, profile):
            continue  # it has the filters for a dry run, and Kindred evicts for no member
        where, is_on = profile.at("plugins.postFilter"), profile.runs("DefaultPreemption", "postFilter")
        if is_on and profile.filtering():
            yield warning(
                where,
                f"DefaultPreemption is on in the profile {profile.name}, but does not have the filters of Kindred for "
                "its dry run: it finds no victims, or wrong ones" + (", while Kindred preempts, too" if evicts else ""),
                "disable DefaultPreemption"
                + ("" if evicts else f", and {setting('preempt', 'evict')}, if priorities matter"),
            )
        elif is_on and not evicts:
            yield warning(
                where,
                f"DefaultPreemption has no filters for its dry run in the profile {profile.name}: no pod is preempted",
                f"{setting('preempt', 'evict')}, if priorities matter",
            )
        elif evicts and not profile.post_filtering():
            yield warning(
                where,
                f"no PostFilter plugin is on in the profile {profile.name}: kube-scheduler clears nominatedNodeName "
                f"after each attempt that fails, and other pods may take the capacity of the victims",
                "enable DefaultPreemption, as manifests/scheduler/decide.yaml does; without filters it evicts no pod",
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


def _replicas(registration: Registration) -> Found:
    if registration.decided and not registration.settings.elects:
        yield info(
            setting("leader_election"),
            f"off{registration.known.remark}: that is right for exactly one replica, because each replica has only "
            "its own latest decisions",
            f"replicas: 1, or {setting('leader_election', 'kindred')}",
        )


CHECKS: Final = (
    Check("decide-answer", DECIDE, _answer, of_settings=True),
    Check("decide-scheduler", DECIDE, _scheduler),
    Check("decide-scope", DECIDE, _scope),
    Check("decide-filters", DECIDE, _filters),
    Check("decide-sample", HANDBOOK, _sample),
    Check("decide-rate", DECIDE, _rate),
    Check("decide-verbs", BEHAVIOUR, _verbs),
    Check("decide-other-filter", DECIDE, _other_filter),
    Check("decide-claims", DECIDE, _claims),
    Check("decide-preemption", DECIDE, _preemption),
    Check("decide-resize", DECIDE, _resize),
    Check("decide-replicas", DECIDE, _replicas),
)
