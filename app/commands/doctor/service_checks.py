"""Checks of the responses of a running Kindred."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

from app.answered_release import ReleaseStatus
from app.commands.doctor.findings import DECIDE, VERSIONS, Problem, error, info, setting
from app.commands.doctor.registration import KnownSettings
from app.commands.doctor.release_checks import told_problems
from app.commands.doctor.service import Visit
from app.json_text import decode
from app.objects.resources import RESOURCES
from app.scheduler_configuration.schema import Finding
from app.setting_types import split_address
from core.objects.scheduling_group import SchedulingGroup

T = TypeVar("T")
_MISMATCHES: Final = "kindred_equivalence_mismatches_total"


class _Resource(msgspec.Struct):
    absent: bool = False
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


class Running(NamedTuple):
    """A visit, with the data that its checks need."""

    visit: Visit
    known: KnownSettings

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
    visit = running.visit
    if visit.failure:
        yield error(visit.url, visit.failure, visit.mending)
    elif not running.is_kindred():
        yield error(
            f"{visit.url}/version",
            f"the response there (status {visit.answers['/version'].status}) is not of Kindred",
            f"--url with Kindred's host and port, {split_address(running.known.settings.listen).port} by the settings",
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
    rules = {name: each.missing_rbac_rule for name, each in readiness.resources.items() if each.missing_rbac_rule}
    for name, rule in sorted(rules.items()):
        yield error(
            f"{where} resources.{name}",
            f"Kindred may not list and watch {name}, and serves no request until it has listed them",
            f"- {{{rule}}} in its ClusterRole; `kindred rbac` prints all of it",
        )
    if readiness.ready and not readiness.nodes:
        yield error(
            where, "ready, and its mirror has no node: every node fails", "the kubeconfig or dump of the right cluster"
        )
    elif not readiness.ready:
        for problem in readiness.problems or ["not ready, without a reason"]:
            if not any(name in problem for name in rules):
                yield _not_ready(where, problem)


def _not_ready(where: str, problem: str) -> Problem:
    if problem.startswith(("another replica leads", "not leading")):
        fix = "use the Service, which sends requests to the leader"
        return info(where, f"not ready, as intended: {problem}", fix)
    return error(where, problem, "look at Kindred's log; docs/architecture.md says what kube-scheduler does then")


def _groups(running: Running) -> Iterator[Problem]:
    name = RESOURCES[SchedulingGroup].name
    resource = (running.readiness or _Readiness(ready=True)).resources.get(name)
    if running.known.settings.decide_groups_scheduler and resource is not None and resource.absent:
        yield info(
            f"{running.visit.url}/readyz resources.{name}",
            "the API server does not have PodGroups of scheduling.k8s.io: members of a scheduling group get an Error",
            "the feature gate GenericWorkload and --runtime-config in kube-apiserver, if there are such groups",
        )


def _cache(running: Running) -> Iterator[Problem]:
    answer = running.visit.answers["/metrics"]
    lines = answer.body.decode(errors="replace").splitlines()
    if any(line.startswith(_MISMATCHES) and line.rpartition(" ")[2] not in {"0", "0.0"} for line in lines):
        yield error(
            f"{running.visit.url}/metrics",
            f"{_MISMATCHES} is not 0: the equivalence cache was wrong",
            f"{setting('equivalence_cache', 'false')}, and report the line of the log",
        )


CHECKS: Final = (ServiceCheck("service-reachable", "docs/run.md", _reachable),)
"""Checks of any service."""
CHECKS_OF_KINDRED: Final = (
    ServiceCheck("service-ready", "docs/run.md", _ready),
    ServiceCheck("service-release", VERSIONS, _release),
    ServiceCheck("service-groups", DECIDE, _groups),
    ServiceCheck("service-cache", "docs/operate.md", _cache),
)
"""Checks of Kindred alone."""
