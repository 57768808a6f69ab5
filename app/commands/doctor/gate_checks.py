"""Whether kube-scheduler and Kindred have the same feature gates, as far as a gate changes a result."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import TypeAdapter, ValidationError

from app.commands.doctor.findings import VERSIONS, Problem, error, info, setting, warning
from app.logs import one_line
from app.scheduler_configuration.finding import Finding
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.setting_types import AUTO, Gates
from app.settings import Settings
from core.releases import GATES, RELEASES, Release, nearest

CHECK: Final = "feature-gates"
FLAG: Final = "--feature-gates"
_EFFECTS: Final[Mapping[tuple[str, bool], str]] = {
    ("DRAExtendedResource", False): "Kindred passes nodes for devices that no program allocates",
    ("GenericWorkload", False): "Kindred releases the places of members that kube-scheduler binds one by one",
}
"""(gate, whether it is on in kube-scheduler) -> why the difference is an error."""
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "GenericWorkload": "the places of a group that could not be placed count for minutes",
}
"""Gate -> the consequence of a difference that is a warning, if it is no verdict and no score."""
_OF_STAGES: Final = ("AllAlpha", "AllBeta")


def gate_findings(flag: str, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each gate that differs. `flag` is the value of kube-scheduler's flag, empty without one.

    A release that Kindred takes from the API server may be any of the known ones. Raises UnreadableError.
    """
    try:
        scheduler: Mapping[str, bool] = TypeAdapter(Gates).validate_python(flag)
    except ValidationError as failure:
        told = one_line(failure.errors()[0]["msg"])
        raise UnreadableError(f"--scheduler-feature-gates {flag[:100]!r}: {told}") from None
    releases = RELEASES if settings.kubernetes == AUTO else (nearest(settings.kubernetes).release,)
    problems = [_stage(name) for name in _OF_STAGES if name in scheduler]
    for name in GATES:
        ours, theirs = settings.feature_gates, scheduler
        differing = [each for each in releases if _state(each, name, ours) is not _state(each, name, theirs)]
        if differing:
            problems.append(_differs(name, differing, is_on=bool(_state(differing[-1], name, theirs))))
    yield from (Finding(CHECK, *problem, VERSIONS) for problem in problems)


def _state(release: Release, name: str, gates: Mapping[str, bool]) -> bool | None:
    """Return whether a gate is on in a release. None: the release does not have it, or has locked it."""
    stage = GATES[name].get(release)
    return None if stage is None or stage.locked else gates.get(name, stage.default)


def _differs(name: str, releases: list[Release], *, is_on: bool) -> Problem:
    states = ("on", "off") if is_on else ("off", "on")
    message = "{} is {} in kube-scheduler and {} in Kindred, with Kubernetes {}".format(
        name, *states, ", ".join(map(str, releases))
    )
    fix = setting("feature_gates", f"{name}={str(is_on).lower()}")
    if effect := _EFFECTS.get((name, is_on)):
        return error(FLAG, f"{message}: {effect}", fix)
    return warning(FLAG, f"{message}: {_CONSEQUENCES.get(name, 'verdicts or scores differ')}", fix)


def _stage(name: str) -> Problem:
    return info(FLAG, f"{name} is not compared: it sets gates by their stage", "each gate by its name")
