"""Checks of the responses of a running Kindred."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeVar

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from app import __version__
from app.answered_release import ReleaseStatus
from app.commands.doctor.findings import DECIDE, HANDBOOK, SETTINGS, VERSIONS, Problem, error, info, setting, warning
from app.commands.doctor.registration import KnownSettings, Registration
from app.commands.doctor.release_checks import told_problems
from app.commands.doctor.service import PROBE_NODE, Visit
from app.json_text import decode
from app.objects.resources import RESOURCES
from app.scheduler_configuration.finding import Finding
from app.setting_types import split_address
from core.objects.scheduling_group import SchedulingGroup

T = TypeVar("T")
_SLOW: Final = 0.5  # seconds, if no httpTimeout is known
_IF_ODD: Final = "--url with the scheduler's port, if this is another; otherwise look at Kindred's log"
_SHARE: Final = 0.1  # of the httpTimeout
_RENEWED_AFTER: Final = 90.0  # seconds: a quiet watch is renewed after 75


class _Resource(msgspec.Struct):
    synced: bool = False
    absent: bool = False
    seconds_since_last_byte: float | None = None
    problem: str | None = None
    missing_rbac_rule: str | None = None


class _Readiness(msgspec.Struct):
    ready: bool
    nodes: int = 0
    problems: list[str] = []
    resources: dict[str, _Resource] = {}


class _Version(msgspec.Struct):
    version: str
    python: str
    kubernetes: ReleaseStatus | None = None
    """None for a Kindred that supported only 1.34."""


class _FilterResult(msgspec.Struct):
    FailedNodes: dict[str, str] | None = None
    FailedAndUnresolvableNodes: dict[str, str] | None = None
    NodeNames: list[str] | None = None
    Error: str = ""


class _HostPriority(msgspec.Struct):
    Host: str
    Score: int


class Running(NamedTuple):
    """A visit, with the data that its checks need."""

    visit: Visit
    known: KnownSettings
    registration: Registration | None

    def is_kindred(self) -> bool:
        """Return whether Kindred has responded."""
        return not self.visit.failure and _decoded(self.visit, "/version", _Version) is not None

    @property
    def readiness(self) -> _Readiness | None:
        """The response of /readyz."""
        return _decoded(self.visit, "/readyz", _Readiness)


class ServiceCheck(NamedTuple):
    """A check of a running service."""

    id: str
    reference: str
    look: Callable[[Running], Iterable[Problem]]

    def findings(self, running: Running) -> list[Finding]:
        """Run the check."""
        return [Finding(self.id, *problem, self.reference) for problem in self.look(running)]


def _decoded(visit: Visit, path: str, kind: type[T]) -> T | None:
    try:
        return decode(visit.answers[path].body, kind)
    except msgspec.DecodeError:
        return None


def _reachable(running: Running) -> Iterator[Problem]:
    if running.visit.failure:
        yield error(running.visit.url, running.visit.failure, running.visit.mending)


def _identity(running: Running) -> Iterator[Problem]:
    visit = running.visit
    if visit.failure:
        return
    version = _decoded(visit, "/version", _Version)
    if version is None:
        status = visit.answers["/version"].status
        yield error(
            f"{visit.url}/version",
            f"the response there (status {status}) is not of Kindred",
            f"--url with Kindred's host and port, {split_address(running.known.settings.listen).port} by the settings",
        )
    elif version.version != __version__:
        yield info(
            f"{visit.url}/version",
            f"Kindred {version.version} runs there, and this doctor is of {__version__}: it may not have all settings",
            f"use the doctor of {version.version}",
        )


def _release(running: Running) -> Iterator[Problem]:
    version = _decoded(running.visit, "/version", _Version)
    if version is not None and version.kubernetes is not None:
        yield from told_problems(version.kubernetes, f"{running.visit.url}/version")


def _ready(running: Running) -> Iterator[Problem]:
    readiness, where = running.readiness, f"{running.visit.url}/readyz"
    if readiness is None:
        yield error(
            where, f"status {running.visit.answers['/readyz'].status}, without a valid body", "look at Kindred's log"
        )
        return
    if not readiness.ready:
        told = [
            problem
            for problem in readiness.problems
            if not any(each.missing_rbac_rule and name in problem for name, each in readiness.resources.items())
        ]
        for problem in told or ([] if readiness.problems else ["not ready, without a reason"]):
            if problem.startswith(("another replica leads", "not leading")):
                yield info(
                    where, f"not ready, as intended: {problem}", "use the Service, which sends requests to the leader"
                )
                continue
            yield error(
                where, problem, "look at Kindred's log; docs/kube-scheduler.md says what kube-scheduler does then"
            )
    elif not readiness.nodes:
        yield error(
            where, "ready, and its mirror has no node: every node fails", "the kubeconfig or dump of the right cluster"
        )


def _rbac(running: Running) -> Iterator[Problem]:
    for name, resource in sorted((running.readiness or _Readiness(ready=True)).resources.items()):
        if resource.missing_rbac_rule:
            yield error(
                f"{running.visit.url}/readyz resources.{name}",
                f"Kindred may not list and watch {name}, and serves no request until it has listed them",
                f"- {{{resource.missing_rbac_rule}}} in its ClusterRole; `kindred rbac` prints all of it",
            )


def _groups(running: Running) -> Iterator[Problem]:
    name = RESOURCES[SchedulingGroup].name
    resource = (running.readiness or _Readiness(ready=True)).resources.get(name)
    if running.known.settings.decide_groups_scheduler and resource is not None and resource.absent:
        yield info(
            f"{running.visit.url}/readyz resources.{name}",
            "the API server does not have PodGroups of scheduling.k8s.io: members of a scheduling group get an Error",
            "the feature gate GenericWorkload and --runtime-config in kube-apiserver, if there are such groups",
        )


def _stale(running: Running) -> Iterator[Problem]:
    limit = running.known.settings.stale_after
    for name, resource in sorted((running.readiness or _Readiness(ready=True)).resources.items()):
        age = resource.seconds_since_last_byte
        if age is None or age <= min(_RENEWED_AFTER, limit):
            continue
        told = f": {resource.problem}" if resource.problem else ""
        tell = error if age > limit else warning
        yield tell(
            f"{running.visit.url}/readyz resources.{name}",
            f"no data for {name} for {age:.0f} s{told}; after {limit:g} s, its staleAfter{running.known.remark}, the "
            "mirror is stale",
            "check the API server, and the network in between",
        )


def _answers(running: Running) -> Iterator[Problem]:
    visit = running.visit
    fresh = running.readiness is None or running.readiness.ready
    result = _decoded(visit, "/filter", _FilterResult)
    if result is None:
        yield error(f"{visit.url}/filter", _odd(visit, "/filter"), _IF_ODD)
    elif result.Error and fresh:
        yield error(
            f"{visit.url}/filter", f"the response to a tiny pod has the Error: {result.Error}", "look at Kindred's log"
        )
    scores = _decoded(visit, "/prioritize", list[_HostPriority])
    if fresh and (scores is None or [each.Host for each in scores] != [PROBE_NODE]):
        yield error(f"{visit.url}/prioritize", _odd(visit, "/prioritize"), _IF_ODD)


def _odd(visit: Visit, path: str) -> str:
    answer = visit.answers[path]
    if answer.status != HTTPStatus.OK:
        return f"the response to a tiny pod has the status {answer.status}, and kube-scheduler discards the body"
    return f"the response to a tiny pod is {answer.body[:80].decode(errors='replace')!r}"


def _latency(running: Running) -> Iterator[Problem]:
    seconds = running.visit.seconds
    if seconds is None:
        return
    where = f"{running.visit.url}/filter"
    registration = running.registration
    limit = _SLOW if registration is None else registration.extender.timeout * _SHARE
    shown = f"a request about one node takes {seconds * 1000:.1f} ms from here"
    if seconds > limit:
        whose = "" if registration is None else ", a tenth of the httpTimeout"
        yield warning(where, f"{shown}, more than {limit * 1000:.0f} ms{whose}", "run Kindred closer to kube-scheduler")
    else:
        yield info(where, shown, "")


def _metrics(running: Running) -> Iterator[Problem]:
    where = f"{running.visit.url}/metrics"
    answer = running.visit.answers["/metrics"]
    if answer.status != HTTPStatus.OK:
        yield warning(
            where,
            f"status {answer.status}: Kindred cannot be monitored",
            f"{setting('health_port')}, for metrics alone",
        )
        return
    try:
        outcomes, mismatches, stale = _totals(answer.body.decode(errors="replace"))
    except ValueError:
        yield error(where, "not in the text format of Prometheus", "look at the network in between")
        return
    if mismatches:
        yield error(
            where,
            f"kindred_equivalence_mismatches_total is {mismatches:g}: the equivalence cache was wrong",
            f"{setting('equivalence_cache', 'false')}, and report the line of the log",
        )
    if stale:
        yield info(where, f"{stale:g} requests arrived while the mirror was stale", "look at the log of that time")
    for outcome, (tell, what, fix) in _OUTCOMES.items():
        if outcomes.get(outcome):
            yield tell(where, f"{outcomes[outcome]:g} requests {what} since the start (outcome {outcome})", fix)


_OUTCOMES: Final[Mapping[str, tuple[Callable[[str, str, str], Problem], str, str]]] = {
    "internal_error": (error, "ended with a fault in Kindred", "report the line of the log"),
    "shed": (warning, "were rejected under load", "more replicas, or look at kindred_request_queue_seconds"),
    "failed": (warning, "of bind or preempt could not be done", "look at Kindred's log"),
    "too_much_work": (
        warning,
        f"took more work than {setting('max_work')} allows",
        "look at Kindred's log for the pods",
    ),
    "bad_request": (warning, "could not be read", "look at Kindred's log for the error, and find the client"),
}


def _totals(text: str) -> tuple[dict[str, float], float, float]:
    """Return requests by outcome, mismatches, and requests while stale. Raises ValueError."""
    outcomes: dict[str, float] = {}
    mismatches = stale = 0.0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "kindred_requests_total":
                outcome = sample.labels.get("outcome", "")
                outcomes[outcome] = outcomes.get(outcome, 0) + sample.value
            elif sample.name == "kindred_equivalence_mismatches_total":
                mismatches += sample.value
            elif sample.name == "kindred_stale_requests_total":
                stale += sample.value
    return outcomes, mismatches, stale


CHECKS: Final = (
    ServiceCheck("service-reachable", "docs/run.md", _reachable),
    ServiceCheck("service-identity", "docs/run.md", _identity),
)
"""Checks of any responding service."""
CHECKS_OF_KINDRED: Final = (
    ServiceCheck("service-ready", "docs/run.md", _ready),
    ServiceCheck("service-release", VERSIONS, _release),
    ServiceCheck("service-rbac", HANDBOOK, _rbac),
    ServiceCheck("service-groups", DECIDE, _groups),
    ServiceCheck("service-stale", SETTINGS, _stale),
    ServiceCheck("service-answers", "docs/run.md", _answers),
    ServiceCheck("service-latency", "docs/run.md", _latency),
    ServiceCheck("service-metrics", "docs/run.md", _metrics),
)
"""Checks of Kindred alone."""
