"""One examination: takes the inputs, makes the checks that they allow, and lists the others."""

from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from app.api_server.credentials import load_credentials
from app.commands.admin_client import Access
from app.commands.doctor import decide_checks, extender_checks, rule_checks
from app.commands.doctor.cluster_checks import (
    FEATURE_GATES,
    RBAC,
    RELEASE,
    Account,
    gate_findings,
    rbac_findings,
    release_findings,
)
from app.commands.doctor.findings import HANDBOOK, Finding, Report, Severity, Skipped, report
from app.commands.doctor.registration import Check, KnownSettings, Registration
from app.commands.doctor.service import (
    OF_KINDRED,
    REACHABLE,
    is_kindred,
    service_findings,
    visit,
)
from app.commands.rbac import NAME
from app.scheduler_configuration.scheduler_config import (
    UnreadableError,
    choose_extender,
    load_scheduler_config,
)
from app.settings.configuration import load_configuration
from app.wiring.engine import create_profile

REGISTRATION_CHECKS: Final[tuple[Check, ...]] = (
    *extender_checks.CHECKS,
    *rule_checks.CHECKS,
    *decide_checks.CHECKS,
)
OTHER_CHECKS: Final = (REACHABLE, *OF_KINDRED, RBAC, RELEASE, FEATURE_GATES)
_IDS: Final = tuple(check.id for check in REGISTRATION_CHECKS)
_NEEDS_CONFIG: Final = "--scheduler-config FILE"
_NEEDS_EXTENDER: Final = "an extender that is Kindred: --extender URLPREFIX"
_NEEDS_SETTINGS: Final = "Kindred's settings: --config FILE"
_NEEDS_URL: Final = "--url URL"
_NEEDS_GATES: Final = "--scheduler-feature-gates TEXT"
_NEEDS_KUBECONFIG: Final = "--kubeconfig FILE or --context NAME"


class Inputs(NamedTuple):
    """The inputs."""

    scheduler_config: Path | None = None
    extender: str = ""
    scheduler_feature_gates: str | None = None
    url: str = ""
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    config: Path | None = None
    kubeconfig: str | None = None
    context: str | None = None
    service_account: str = f"{NAME}/{NAME}"

    def access(self) -> Access:
        """Return how to reach the running service."""
        return {
            "url": self.url,
            "token_file": None,
            "caller_token_file": None,
            "ca_file": self.ca_file,
            "cert_file": self.cert_file,
            "key_file": self.key_file,
        }


class _Notes:
    """The results that an examination collects."""

    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.skipped: list[Skipped] = []

    def skip(self, needs: str, *checks: str) -> None:
        self.skipped += [Skipped(check, needs) for check in checks]


def examine(inputs: Inputs) -> Report:
    """Check all inputs. Raises UnreadableError, SettingsError and ConfigurationError for bad input."""
    account = Account.parse(inputs.service_account)
    notes = _Notes()
    known = _known_settings(inputs)
    notes.inputs["settings"] = known.source
    registration = _registration(inputs, known, notes)
    if registration is not None:
        _check_registration(registration, notes)
    _check_service(inputs, known, notes)
    _check_cluster(inputs, known, registration, account, notes)
    _check_gates(inputs, known, notes)
    return report(notes.inputs, notes.findings, notes.skipped)


def _known_settings(inputs: Inputs) -> KnownSettings:
    """Return Kindred's settings: from file and environment, else the defaults."""
    configuration = load_configuration(inputs.config)
    settings = configuration.settings
    sources = sorted({source.partition(": ")[0] for source in configuration.sources.values()})
    if inputs.config is not None and str(inputs.config) not in sources:
        sources.insert(0, str(inputs.config))
    source = ", ".join(sources) or "the defaults, because none were given"
    return KnownSettings(settings, create_profile(settings), source, assumed=not sources)


def _registration(inputs: Inputs, known: KnownSettings, notes: _Notes) -> Registration | None:
    if inputs.scheduler_config is None:
        notes.skip(_NEEDS_CONFIG, *_IDS)
        return None
    notes.inputs["scheduler configuration"] = str(inputs.scheduler_config)
    config = load_scheduler_config(inputs.scheduler_config)
    extender, problem = choose_extender(config, inputs.extender, inputs.url)
    if extender is None:
        fix = "extenders as in manifests/scheduler" if not config.extenders else "--extender URLPREFIX"
        notes.findings.append(Finding("which-extender", Severity.ERROR, "extenders", problem, fix, HANDBOOK))
        notes.skip(_NEEDS_EXTENDER, *_IDS)
        return None
    notes.inputs["extender"] = f"{extender.at()}, {extender.url_prefix}"
    return Registration(config, extender, known)


def _check_gates(inputs: Inputs, known: KnownSettings, notes: _Notes) -> None:
    if inputs.scheduler_feature_gates is None:
        notes.skip(_NEEDS_GATES, FEATURE_GATES)
    else:
        notes.findings += gate_findings(inputs.scheduler_feature_gates, known.settings)


def _check_registration(registration: Registration, notes: _Notes) -> None:
    for check in REGISTRATION_CHECKS:
        if check.needs_settings and registration.known.assumed:
            notes.skip(_NEEDS_SETTINGS, check.id)
        else:
            notes.findings += check.findings(registration)


def _check_service(inputs: Inputs, known: KnownSettings, notes: _Notes) -> None:
    if not inputs.url:
        notes.skip(_NEEDS_URL, REACHABLE, *OF_KINDRED)
        return
    notes.inputs["service"] = inputs.url
    visited = visit(inputs.access())
    notes.findings += service_findings(visited, known.settings)
    if not is_kindred(visited):
        notes.skip("a Kindred that responds at --url", *OF_KINDRED)


def _check_cluster(
    inputs: Inputs, known: KnownSettings, registration: Registration | None, account: Account, notes: _Notes
) -> None:
    if inputs.kubeconfig is None and inputs.context is None:
        notes.skip(_NEEDS_KUBECONFIG, RBAC, RELEASE)
        return
    credentials = load_credentials(inputs.kubeconfig, inputs.context)
    notes.inputs["cluster"] = credentials.server
    settings = known.settings
    if registration is not None and registration.extender.bind_verb:
        settings = settings.model_copy(update={"bind": True})  # `bind-off` compares the setting
    looks = {
        RBAC: partial(rbac_findings, credentials, settings, account),
        RELEASE: partial(release_findings, credentials, known.settings),
    }
    for check, look in looks.items():
        try:
            notes.findings += look()
        except UnreadableError as error:
            notes.skip(f"a response of the API server: {error}", check)
