"""One examination: takes the inputs, makes the checks that they allow, and lists the others."""

import os
from functools import partial
from pathlib import Path
from typing import Final

from app.api_server.credentials import load_credentials
from app.commands.admin_client import Access
from app.commands.doctor import decide_checks, extender_checks, rule_checks
from app.commands.doctor.cluster_checks import (
    FEATURE_GATES,
    RBAC,
    RELEASE,
    Account,
    UnansweredError,
    gate_findings,
    rbac_findings,
    release_findings,
)
from app.commands.doctor.findings import HANDBOOK, RUN, Finding, Report, Severity, Skipped, report
from app.commands.doctor.registration import Check, Registration
from app.commands.doctor.service import OF_KINDRED, REACHABLE, is_kindred, service_findings, visit
from app.scheduler_configuration.scheduler_config import (
    Extender,
    SchedulerConfig,
    choose_extender,
    load_scheduler_config,
)
from app.scheduler_configuration.validation import UnreadableError
from app.settings.configuration import FILE_VARIABLE, Configuration, load_configuration
from app.settings.groups import SchedulingSettings
from app.settings.settings import Settings
from app.wiring.engine import create_profile

REGISTRATION_CHECKS: Final[tuple[Check, ...]] = (
    *extender_checks.CHECKS,
    *rule_checks.CHECKS,
    *decide_checks.CHECKS,
)
OTHER_CHECKS: Final = (REACHABLE, *OF_KINDRED, RBAC, RELEASE, FEATURE_GATES)


class Inputs(Access, total=False):
    """The inputs, with how to reach the running service. An absent one is None, or empty."""

    scheduler_config: Path | None
    extender: str
    scheduler_feature_gates: str | None
    config: Path | None
    kubeconfig: str | None
    context: str | None
    service_account: str


_LOGIN: Final = "a kubeconfig whose login the API server accepts, and a way to it from here"


class _Notes:
    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []

    def skip(self, needs: str, *checks: str) -> None:
        self.skipped += [Skipped(check, needs) for check in checks]


def examine(inputs: Inputs) -> Report:
    """Check all inputs. Raises UnreadableError, SettingsError and ConfigurationError for bad input."""
    account = Account.parse(inputs["service_account"])
    notes = _Notes()
    configuration = load_configuration(inputs["config"])
    settings, plugins = configuration.settings, create_profile(configuration.settings)
    sources = {source.partition(": ")[0] for source in configuration.sources.values()}
    sources |= {str(inputs["config"])} if inputs["config"] is not None else set()
    notes.inputs["settings"] = ", ".join(sorted(sources)) or "the defaults, because none were given"
    chosen = _chosen(inputs, notes)
    _check_service(inputs, settings, notes)
    if chosen is not None and _are_given(inputs, configuration):
        _check_registration(Registration(*chosen, settings, plugins, assumed=False), notes)
    elif chosen is not None:
        notes.inputs["settings"] = "none given: those that the configuration implies"
        registration = Registration.inferred(*chosen)
        _check_registration(registration, notes)
        settings = registration.settings
    binds = chosen is not None and bool(chosen[1].bind_verb)
    _check_cluster(inputs, settings, account, notes, binds=binds)
    if inputs["scheduler_feature_gates"] is None:
        notes.skip("--scheduler-feature-gates TEXT", FEATURE_GATES)
    else:
        notes.findings += gate_findings(inputs["scheduler_feature_gates"], settings)
    return report(notes.inputs, notes.findings, notes.skipped)


def _are_given(inputs: Inputs, configuration: Configuration) -> bool:
    """Return whether the settings are Kindred's. A variable for the log of a command says nothing of a registration."""
    named = inputs["config"] is not None or bool(os.environ.get(FILE_VARIABLE))
    return named or not configuration.sources.keys().isdisjoint(SchedulingSettings.model_fields)


def _chosen(inputs: Inputs, notes: _Notes) -> tuple[SchedulerConfig, Extender] | None:
    ids = [check.id for check in REGISTRATION_CHECKS]
    if inputs["scheduler_config"] is None:
        notes.skip("--scheduler-config FILE", *ids)
        return None
    notes.inputs["scheduler configuration"] = str(inputs["scheduler_config"])
    config = load_scheduler_config(inputs["scheduler_config"])
    extender, problem = choose_extender(config, inputs["extender"], inputs["url"])
    if extender is None:
        fix = "extenders as in manifests/scheduler" if not config.extenders else "--extender URLPREFIX"
        notes.findings.append(Finding("which-extender", Severity.ERROR, "extenders", problem, fix, HANDBOOK))
        notes.skip("an extender that is Kindred: --extender URLPREFIX", *ids)
        return None
    notes.inputs["extender"] = f"{extender.at()}, {extender.url_prefix}"
    return config, extender


def _check_registration(registration: Registration, notes: _Notes) -> None:
    needs = "Kindred's settings: --config FILE"
    for check in REGISTRATION_CHECKS:
        if check.needs_settings and registration.assumed:
            notes.skip(needs, check.id)
            continue
        findings = check.findings(registration)
        notes.findings += findings
        if findings and check.id == extender_checks.OTHER_REGISTRATION:  # what else the settings say follows from that
            registration = Registration.inferred(registration.config, registration.extender)
            needs = "the settings of this registration: --config FILE"


def _check_service(inputs: Inputs, settings: Settings, notes: _Notes) -> None:
    if not inputs["url"]:
        notes.skip("--url URL", REACHABLE, *OF_KINDRED)
        return
    notes.inputs["service"] = inputs["url"]
    visited = visit(inputs)
    notes.findings += service_findings(visited, settings)
    if not is_kindred(visited):
        notes.skip("a Kindred that responds at --url", *OF_KINDRED)


def _check_cluster(inputs: Inputs, settings: Settings, account: Account, notes: _Notes, *, binds: bool) -> None:
    if inputs["kubeconfig"] is None and inputs["context"] is None:
        notes.skip("--kubeconfig FILE or --context NAME", RBAC, RELEASE)
        return
    credentials = load_credentials(inputs["kubeconfig"], inputs["context"])
    notes.inputs["cluster"] = credentials.server
    of_account = settings.model_copy(update={"bind": True}) if binds else settings  # `bind-off` compares the setting
    looks = {
        RBAC: partial(rbac_findings, credentials, of_account, account),
        RELEASE: partial(release_findings, credentials, settings),
    }
    for check, look in looks.items():
        try:
            notes.findings += look()
        except UnansweredError as error:
            notes.findings.append(Finding(check, Severity.ERROR, credentials.server, str(error), _LOGIN, RUN))
            notes.skip(f"a response of the API server: {error}", *(set(looks) - {check}))
            return
        except UnreadableError as error:
            notes.skip(f"a response of the API server: {error}", check)
