"""Faults of `kindred doctor`: a dangerous registration that it does not report, or an ordinary one that it does."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="work-for-nothing-not-told",
        breaks="InterPodAffinity is disabled at score and runs at preScore: nothing is gained, and nothing is said.",
        old='if names := ", ".join(idle):',
        new="if not (names := str(idle)):",
        tests=("test_published.py",),
    ),
    Fault(
        id="pods-of-a-profile-that-nobody-filters",
        breaks="A profile without filters that decideSchedulers does not name is not reported as such.",
        old="if left or not registration.decided:",
        new="if not registration.decided:",
        tests=("test_published.py",),
    ),
    Fault(
        id="api-server-that-is-not-asked",
        breaks="The doctor ends with 0 although the API server does not respond.",
        old="except UnansweredError as error:",
        new="except ZeroDivisionError as error:",
        tests=("test_command.py",),
    ),
    Fault(
        id="arguments-that-stop-kube-scheduler",
        breaks="A configuration with a misspelled argument is called fine, and no kube-scheduler starts with it.",
        old="        if written.name in DEFAULTS:  # own",
        new="        if written.name == API_VERSION:  # own",
        tests=("test_scheduler_config.py",),
    ),
    Fault(
        id="insecure-beside-a-ca-starts",
        breaks="kube-scheduler does not start with insecure beside a CA, and the doctor says nothing.",
        old="if tls is not None and tls.insecure and tls.has_ca:",
        new="if tls is not None and tls.insecure and not tls.has_ca:",
        tests=("test_scheduler_config.py",),
    ),
    Fault(
        id="profile-percentage-ignored",
        breaks="A profile that looks at all nodes is blamed for the sample of the others.",
        old='        if profile.percentage_of_nodes_to_score is None:\n            return "percentageOfNodesToScore"',
        new='        if True:\n            return "percentageOfNodesToScore"',
        tests=("test_rule_checks.py",),
    ),
    Fault(
        id="extender-without-weight-starts",
        breaks="A prioritizeVerb without a weight is taken for a configuration with which kube-scheduler starts.",
        old="if extender.prioritize_verb and not extender.weight:",
        new="if extender.prioritize_verb and extender.weight < 0:",
    ),
    Fault(
        id="managed-resource-of-kubernetes",
        breaks="managedResources may name a resource of Kubernetes itself.",
        old='or "kubernetes.io/" in resource or',
        new="or",
    ),
    Fault(
        id="services-of-two-namespaces-alike",
        breaks="Extenders at two Services of one name count as one Kindred.",
        old="ours[:shorter] == theirs[:shorter]",
        new="ours[:1] == theirs[:1]",
    ),
    Fault(
        id="timeout-equal-to-the-deadline",
        breaks="A timeout that is exactly the deadline is not blamed.",
        old="if extender.timeout > settings.deadline:",
        new="if extender.timeout >= settings.deadline:",
    ),
    Fault(
        id="milliseconds-read-as-minutes",
        breaks="A Go duration in milliseconds is read as minutes.",
        old='"ms": 1e-3,',
        new='"ms": 60e-3,',
        tests=("test_scheduler_config.py",),
    ),
    Fault(
        id="ignorable-binder-not-told",
        breaks="An extender that binds and is ignorable is not blamed, though kube-scheduler then binds by itself.",
        old="    elif extender.ignorable and extender.bind_verb:",
        new="    elif not extender.ignorable and extender.bind_verb:",
    ),
    Fault(
        id="filters-beside-any-node-not-told",
        breaks="A filter that is left in-tree beside any-node is told only where all nodes are asked about.",
        old="if registration.scope_of(profile) is not DecideScope.ANY_NODE:",
        new="if registration.scope_of(profile) is not DecideScope.LISTED_NODES:",
    ),
    Fault(
        id="gap-told-of-decide",
        breaks="A profile that Kindred decides for is blamed for the gap between decision and event.",
        old="registration.filters_off(registration.undecided)\n    if extender.bind_verb or",
        new="registration.filters_off()\n    if extender.bind_verb or",
        tests=("test_decide_checks.py", "test_command.py"),
    ),
    Fault(
        id="settings-of-another-registration-listed-one-by-one",
        breaks="Settings of another registration are many findings, whose fixes would break the registration.",
        old="registration = Registration.inferred(registration.config, registration.extender)",
        new="pass",
        tests=("test_command.py",),
    ),
    Fault(
        id="decide-not-recognised",
        breaks="Without settings, the configuration of decide has errors, and fixes that would break it.",
        old='if set(extender.verbs) == {"filterVerb"} and unscored:',
        new='if set(extender.verbs) == {"filterVerb"} and not unscored:',
        tests=("test_command.py",),
    ),
    Fault(
        id="admin-port-registered",
        breaks="An extender at the admin port is not found.",
        old='_SHIPPED_PORTS: Final[dict[int | None, str]] = {8889: "healthPort", 8890: "admin"}',
        new='_SHIPPED_PORTS: Final[dict[int | None, str]] = {8889: "healthPort"}',
    ),
    Fault(
        id="one-kindred-twice",
        breaks="Two extenders at one Kindred are not found, and scores count twice.",
        old="if twin is extender or not twin.is_at(extender.place):",
        new="if twin is extender or twin.url_prefix != extender.url_prefix:",
    ),
    Fault(
        id="gate-of-devices-not-compared",
        breaks="A gate that is off in kube-scheduler and on in Kindred is no finding.",
        old="return None if stage is None or stage.locked else gates.get(name, stage.default)",
        new="return None if stage is None or stage.locked else stage.default",
    ),
    Fault(
        id="backoff-that-is-skipped",
        breaks="With decide, a kube-scheduler that tries refused pods without a pause is no finding.",
        old='scheduler.get(_POPS, scheduler.get("AllBeta", True)):',
        new='scheduler.get(_POPS, scheduler.get("AllBeta", False)):',
    ),
    Fault(
        id="policy-told-to-change-its-kind",
        breaks="The advice for a Policy of old releases is another kind, with which its extenders do not work.",
        old="if _kind(document) == _POLICY or",
        new="if _kind(document) == KIND and",
    ),
    Fault(
        id="policy-beside-a-configuration-is-another-one",
        breaks="A ConfigMap with a Policy that was left over is refused, because it has two configurations.",
        old="    found = [each for each in found if KIND in each[1]] or found",
        new="    found = [*found]",
    ),
    Fault(
        id="scores-weigh-one-without-settings",
        breaks="The doctor takes a weight of 1 for each score where Kindred's settings are not given.",
        old="if len(scores) == 1 or registration.assumed:",
        new="if len(scores) == 1:",
        tests=("app/commands/doctor/test_rule_checks.py",),
    ),
)
