"""Whether Kindred applies the release of Kubernetes and the feature gates that kube-scheduler has."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import TypeAdapter, ValidationError

from app.answered_release import ReleaseStatus
from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import Credentials, CredentialsError
from app.commands.doctor.findings import VERSIONS, Problem, error, info, setting, warning
from app.logs import one_line
from app.objects.decode import DecodeError
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.scheduler_configuration.schema import Finding
from app.setting_types import AUTO, Gates
from app.settings import Settings
from app.watch.server_release import fetch_version
from core.releases import GATES, RELEASES, Release, nearest

CHECK: Final = "kubernetes-release"
_SETTING: Final = setting("kubernetes")
GATES_CHECK: Final = "feature-gates"
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


def told_problems(status: ReleaseStatus, where: str) -> Iterator[Problem]:
    """Yield a problem if a running service applies another release than that of its API server."""
    if not status.exact and status.told:
        yield warning(where, f"answers as {status}: later or earlier changes are unknown", _newer(status.told))
    elif not status.exact:
        yield warning(where, f"answers as {status}", f"{_SETTING} with the release of kube-scheduler")


def release_findings(credentials: Credentials, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if the settings, or the known releases, do not fit the API server's version.

    Raises UnreadableError if the API server cannot be reached.
    """
    try:
        told = asyncio.run(_version(credentials))
    except (StatusError, DecodeError) as failure:
        message = f"GET /version of the API server: {one_line(str(failure))}; Kindred will not know its release either"
        yield _finding(warning(credentials.server, message, f"{_SETTING} with the release of kube-scheduler"))
        return
    except (ApiError, CredentialsError) as failure:
        raise UnreadableError(str(failure)) from None
    found = nearest(told)
    if settings.kubernetes != AUTO and nearest(settings.kubernetes).release != found.release:
        message = f"Kindred answers as Kubernetes {settings.kubernetes}, and the API server is {one_line(told)}"
        yield _finding(
            warning(_SETTING, message, f"{setting('kubernetes', AUTO)}, if kube-scheduler is of that release, too")
        )
    elif not found.exact:
        said = one_line(told) or "of no version"
        message = f"the API server is {said}: answered as {found.release}, the nearest known release"
        yield _finding(warning(credentials.server, message, _newer(told)))


def _newer(told: str) -> str:
    newest = RELEASES[-1]
    if nearest(told).release == newest:
        return f"a Kindred that knows it; this one knows {RELEASES[0]} to {newest}"
    return f"Kubernetes {RELEASES[0]} or newer, or look at scores and reasons with care"


def _finding(problem: Problem) -> Finding:
    return Finding(CHECK, *problem, VERSIONS)


async def _version(credentials: Credentials) -> str:
    client = ApiClient(credentials)
    try:
        return await fetch_version(client)
    finally:
        await client.close()


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
    yield from (Finding(GATES_CHECK, *problem, VERSIONS) for problem in problems)


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
