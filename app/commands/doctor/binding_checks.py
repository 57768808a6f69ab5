"""Who binds and who preempts, and the time between a decision and its watch event."""

from typing import Final

from app.commands.doctor.findings import DECIDE, HANDBOOK, SETTINGS, Problem, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.plugin_sets import Profile

_ALL: Final = 100


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
            f"{extender.bind_verb}, while Kindred's bind is off{registration.known.remark}: each response of bind then "
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
            f"off{registration.known.remark}, and Kindred binds or decides: that is right for exactly one replica, "
            "because each replica has only its own latest bindings and decisions",
            f"replicas: 1, or {setting('leader_election', 'kindred')}",
        )


def _preempt(registration: Registration) -> Found:
    extender, preempt = registration.extender, registration.settings.preempt
    off = registration.filters_off(registration.undecided)
    if extender.preempt_verb and preempt == "off":
        yield error(
            extender.at("preemptVerb"),
            f"{extender.preempt_verb}, while Kindred's preempt is off{registration.known.remark}: responses of "
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
    elif off and extender.preempt_verb and preempt == "verb":
        yield info(
            extender.at("preemptVerb"),
            "when only Kindred rejects nodes, kube-scheduler does not call preempt, and a pod of any priority waits",
            f"{setting('preempt', 'evict')}, with the roles of `kindred rbac --preempt evict`, if priorities matter",
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
    for profile in registration.decided:
        # The profile for groups has the filters for a dry run, and Kindred evicts for no member.
        if profile.name != registration.settings.decide_groups_scheduler:
            yield from _post_filter(profile, evicts=registration.settings.preempt == "evict")


def _post_filter(profile: Profile, *, evicts: bool) -> list[Problem]:
    where, is_on = profile.at("plugins.postFilter"), profile.runs("DefaultPreemption", "postFilter")
    if is_on and profile.filtering():
        return [
            warning(
                where,
                f"DefaultPreemption is on in the profile {profile.name}, but does not have the filters of Kindred for "
                "its dry run: it finds no victims, or wrong ones" + (", while Kindred preempts, too" if evicts else ""),
                "disable DefaultPreemption"
                + ("" if evicts else f", and {setting('preempt', 'evict')}, if priorities matter"),
            )
        ]
    if is_on and not evicts:
        return [
            warning(
                where,
                f"DefaultPreemption has no filters for its dry run in the profile {profile.name}: no pod is preempted",
                f"{setting('preempt', 'evict')}, if priorities matter",
            )
        ]
    if evicts and not profile.post_filtering():
        return [
            warning(
                where,
                f"no PostFilter plugin is on in the profile {profile.name}: kube-scheduler clears nominatedNodeName "
                f"after each attempt that fails, and other pods may take the capacity of the victims",
                "enable DefaultPreemption, as manifests/scheduler/decide.yaml does; without filters it evicts no pod",
            )
        ]
    return []


CHECKS: Final = (
    Check("gap", HANDBOOK, _gap),
    Check("bind-off", HANDBOOK, _bind_off, of_settings=True),
    Check("replicas", SETTINGS, _replicas),
    Check("preempt", HANDBOOK, _preempt, of_settings=True),
    Check("evict", HANDBOOK, _evict, of_settings=True),
    Check("decide-preemption", DECIDE, _preempt_of_decided),
)
