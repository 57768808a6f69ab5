"""Whether the applied release of Kubernetes is the cluster's."""

import asyncio
from collections.abc import Iterator
from typing import Final

from app.answered_release import ReleaseStatus
from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import Credentials, CredentialsError
from app.commands.doctor.findings import VERSIONS, Problem, info, setting, warning
from app.logs import one_line
from app.objects.decode import DecodeError
from app.scheduler_configuration.finding import Finding
from app.scheduler_configuration.scheduler_config import UnreadableError
from app.setting_types import AUTO
from app.settings import Settings
from app.watch.server_release import fetch_version
from core.releases import RELEASES, nearest

CHECK: Final = "kubernetes-release"
_SETTING: Final = setting("kubernetes")


def told_problems(status: ReleaseStatus, where: str) -> Iterator[Problem]:
    """Yield findings about the release that a running service applies."""
    if status.exact:
        yield info(where, f"answers as {status}", "")
    elif status.told:
        yield warning(where, f"answers as {status}: later or earlier changes are unknown", _newer(status.told))
    else:
        yield warning(where, f"answers as {status}", f"{_SETTING} with the release of kube-scheduler")
    if status.ignored_gates:
        gates = ", ".join(status.ignored_gates)
        yield warning(
            where,
            f"Kubernetes {status.release} does not have the feature gates {gates} of the settings, or has locked them",
            f"take them out of {setting('feature_gates')}",
        )


def release_findings(credentials: Credentials, settings: Settings) -> Iterator[Finding]:
    """Yield a finding if the settings, or the known releases, do not fit the API server's version.

    Raises UnreadableError if the API server cannot be reached.
    """
    try:
        told = asyncio.run(_version(credentials))
    except (StatusError, DecodeError) as error:
        message = f"GET /version of the API server: {one_line(str(error))}; Kindred will not know its release either"
        yield _finding(warning(credentials.server, message, f"{_SETTING} with the release of kube-scheduler"))
        return
    except (ApiError, CredentialsError) as error:
        raise UnreadableError(str(error)) from None
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
