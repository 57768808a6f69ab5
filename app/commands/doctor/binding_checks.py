"""Checks of binding and preemption, and of the time between a decision and its watch event."""

from app.commands.doctor.findings import BEHAVIOUR, HANDBOOK, SETTINGS, error, info, setting, warning
from app.commands.doctor.registration import Check, Found, Registration
from app.scheduler_configuration.finding import VALIDATION

_ALL = 100


def _two_binders(registration: Registration) -> Found:
    binders = [each for each in registration.config.extenders if each.bind_verb]
    if len(binders) > 1:
        yield error(
            "extenders",
            f"{len(binders)} extenders have a bindVerb ({', '.join(each.at() for each in binders)}): only one may; "
            f"kube-scheduler does not start",
            f"take bindVerb out of all but {binders[-1].at()}"
            if registration.extender not in binders
            else f"keep bindVerb only in {registration.extender.at()}",
        )


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


def _binders(registration: Registration) -> Found:
    for profile in registration.config.profiles:
        binds = [each for each in registration.config.extenders if each.bind_verb]
        ours = binds == [registration.extender]
        if profile.switched_off("DefaultBinder", "bind") and not profile.enabled("bind"):
            needed = "pods without a call to an extender are never bound" if binds else "no program binds a pod"
            yield (warning if binds else error)(
                profile.at("plugins.bind"),
                f"DefaultBinder is disabled in the profile {profile.name}, without a replacement: {needed}",
                "take DefaultBinder out of bind.disabled and multiPoint.disabled",
            )
        if ours and registration.extender.ignorable:
            yield warning(
                registration.extender.at("ignorable"),
                "true, with bindVerb: when Kindred rejects a binding that would break a rule, kube-scheduler binds "
                "the pod itself",
                "ignorable: false",
            )
            return


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
    if registration.extender.bind_verb and not registration.settings.elects:
        yield info(
            registration.extender.at("bindVerb"),
            f"Kindred binds, and leaderElection is off{registration.known.remark}: that is right for exactly one "
            "replica, because each replica has only its own latest bindings",
            f"replicas: 1, or {setting('leader_election', 'kindred')}",
        )


def _preempt_off(registration: Registration) -> Found:
    extender, preempt = registration.extender, registration.settings.preempt
    if extender.preempt_verb and preempt == "off":
        yield error(
            extender.at("preemptVerb"),
            f"{extender.preempt_verb}, while Kindred's preempt is off{registration.known.remark}: responses of "
            "preempt then have no node, and no pod is preempted",
            f"{setting('preempt', 'verb')}, with the roles of `kindred rbac --preempt verb`; or take preemptVerb out",
        )
    elif preempt != "off" and not extender.preempt_verb and not (preempt == "evict" and registration.decided):
        yield info(
            extender.at("preemptVerb"),
            f"not set, while Kindred's preempt is {preempt}: it watches PodDisruptionBudgets without need",
            f"preemptVerb: preempt, or {setting('preempt', 'off')}",
        )


def _preempt_missing(registration: Registration) -> Found:
    extender, off = registration.extender, registration.filters_off(registration.undecided)
    if off and extender.filter_verb and not extender.preempt_verb:
        yield warning(
            extender.at("preemptVerb"),
            f"not set, while Kindred alone filters by {', '.join(off)}: kube-scheduler ignores these rules when it "
            "chooses victims, and may evict pods for a pod that still does not fit",
            f"preemptVerb: preempt, with {setting('preempt', 'verb')} and the roles of `kindred rbac --preempt verb`",
        )
    if extender.preempt_verb and not off:
        yield info(
            extender.at("preemptVerb"),
            "set, but kube-scheduler has all filters of Kindred, and finds the victims itself",
            "take preemptVerb out",
        )
    if off and extender.preempt_verb and registration.settings.preempt == "verb":
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


CHECKS = (
    Check("two-binders", VALIDATION, _two_binders),
    Check("gap", HANDBOOK, _gap),
    Check("binder", BEHAVIOUR, _binders),
    Check("bind-off", HANDBOOK, _bind_off, of_settings=True),
    Check("bind-replicas", SETTINGS, _replicas, of_settings=True),
    Check("preempt-off", HANDBOOK, _preempt_off, of_settings=True),
    Check("preempt-verb", HANDBOOK, _preempt_missing),
    Check("evict", HANDBOOK, _evict, of_settings=True),
)
