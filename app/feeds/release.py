"""The release of Kubernetes whose rules Kindred applies, the source that named it, and the mirror's rules of it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.feeds.freshness import ResourceState
from app.objects.decode import DecodeError, decoding
from app.process.logs import one_line
from app.settings.settings import Settings
from app.settings.types import AUTO
from core.mirror.cluster import ClusterMirror
from core.releases.differences import rules_of
from core.releases.release import DEFAULT_RELEASE, FeatureGateError, Nearest, Release, Rules, nearest

ReleaseSource: TypeAlias = Literal["setting", "server", "nodes", "default"]
_SOURCE_NAMES: Final[Mapping[ReleaseSource, str]] = {
    "setting": "setting",
    "server": "API server",
    "nodes": "newest kubelet",
}


class ReleaseStatus(msgspec.Struct, frozen=True):
    """The release whose rules apply."""

    release: str
    """`1.37`"""
    source: ReleaseSource
    """`setting`; `server`: GET /version; `nodes`: the newest kubelet of a dump; `default`: no source named a
    release."""
    exact: bool
    """False: the source named an unknown release, or none, and this is the nearest known one."""
    told: str
    """The version that the source reported: `v1.37.1`, `v1.33.5-eks-1a2b3c4`. Empty if it reported none."""
    ignored_gates: Sequence[str]
    """Feature gates of the settings that the release does not have, or has locked."""

    def __str__(self) -> str:
        """Return all of it as one line for people."""
        if self.source == "default":
            text = f"Kubernetes {self.release}, the default: no source reports the release"
        else:
            nearest_known = "" if self.exact else ", the nearest known release"
            text = f"Kubernetes {self.release}{nearest_known} ({_SOURCE_NAMES[self.source]}: {self.told or 'unknown'})"
        return text + (f"; ignored feature gates: {', '.join(self.ignored_gates)}" if self.ignored_gates else "")


class ReleaseTracker:
    """The release whose rules a mirror has. No other code changes a mirror's rules, and only between two requests."""

    def __init__(self, settings: Settings, mirror: ClusterMirror) -> None:
        """Give the mirror the rules of the release in the settings. `auto` begins with the default release."""
        self._mirror = mirror
        self._gates = settings.feature_gates
        self.is_fixed: Final = settings.kubernetes != AUTO
        """Whether the setting names the release. Kindred then does not read the version of the API server."""
        self.status = (
            self._take(nearest(settings.kubernetes), "setting")
            if self.is_fixed
            else self._take(Nearest(DEFAULT_RELEASE, exact=False, text=""), "default")
        )

    def take(self, version: str, source: ReleaseSource) -> None:
        """Apply the rules of the release that a source reported, or of the nearest known one, from the next request on.

        No effect if the setting names the release.
        """
        if not self.is_fixed:
            self.status = self._take(nearest(version), source)

    def _take(self, found: Nearest, source: ReleaseSource) -> ReleaseStatus:
        rules, ignored = allowed_rules(found.release, self._gates)
        if rules != self._mirror.rules:  # a change clears the equivalence cache
            self._mirror.change_rules(rules)
        return ReleaseStatus(str(found.release), source, found.exact, one_line(found.text), ignored)


def newest(versions: Iterable[str]) -> str:
    """Return the newest version that kubelets report. A known release wins over unknown ones. Empty without any.

    Kubelets may be older than the API server, and never newer. So the newest kubelet is closest to the API server's
    version. An unknown version may belong to another program: virtual kubelets report any text. Source:
    kubernetes.io/releases/version-skew-policy.
    """
    found = [nearest(version) for version in versions if version]
    return max(found, key=lambda each: (each.exact, each.release)).text if found else ""


def allowed_rules(release: Release, gates: Mapping[str, bool]) -> tuple[Rules, list[str]]:
    """Return the rules of a release with the feature gates that it allows, and the names of the others."""
    allowed: dict[str, bool] = {}
    ignored: list[str] = []
    for name, value in gates.items():
        try:
            rules_of(release, {name: value})
            allowed[name] = value
        except FeatureGateError:
            ignored.append(name)
    return rules_of(release, allowed), ignored


log = logging.getLogger(__name__)

PATH: Final = "/version"
_EVERY: Final = 60.0  # seconds
_WHILE_ANOTHER: Final = 30.0  # seconds between two responses while another version is reported
_AFTER_FAILURE: Final = 10.0  # seconds
_AT_FIRST: Final = 1.0  # seconds between two attempts while no release is known, because requests wait for it
_AFTER_TROUBLE: Final = 5.0  # seconds from a failed list or watch, which may be the restart of an upgrade
_STEP: Final = 1.0  # seconds between two checks for such a failure
_STEADY_FOR: Final = 120.0  # seconds
_STEADY_RESPONSES: Final = 3
_MAX_FAILURES: Final = 5  # of GET /version alone, while resources are synced
_MAX_BYTES: Final = 64 * 1024


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


_decoder: Final = msgspec.json.Decoder(_Version)


async def fetch_version(client: ApiClient) -> str:
    """Return the version of the API server, `v1.37.1`. Empty if the response has none.

    Raises ApiError, CredentialsError, DecodeError.
    """
    return decoding(_decoder.decode, await client.get(PATH, {}, _MAX_BYTES)).git_version


class _Candidate(NamedTuple):
    """A reported version other than the release whose rules apply."""

    reported: str
    since: float
    responses: int


class ServerRelease:
    """Keeps the applied release equal to the API server's, unless the setting names a release.

    It is read at the start, after connection errors, and once a minute. An upgrade of several API servers takes
    minutes, in which old and new servers respond in turn. A kube-scheduler is not newer than any API server (version
    skew policy), so the old release is right while an old API server responds. So another version is adopted only if
    all responses of two minutes, and at least three, have it.
    """

    def __init__(
        self, client: ApiClient, tracker: ReleaseTracker, states: Sequence[ResourceState], clock: Callable[[], float]
    ) -> None:
        """`states` are the states of the resources of the same server. `clock` returns seconds."""
        self._client = client
        self._tracker = tracker
        self._states = states
        self._clock = clock
        self._candidate: _Candidate | None = None
        self._failures = 0
        self._problem = "" if tracker.is_fixed else _not_known(f"no response to GET {PATH}")

    def problem(self) -> str:
        """Return why no release is known yet, in one line. Empty if one is known, which may be the default."""
        return self._problem

    async def run(self) -> None:
        """Read the release until cancelled."""
        while True:
            await self._nap(await self._ask())

    async def _ask(self) -> float:
        """Read the release once. Return the seconds until the next time."""
        try:
            version = await fetch_version(self._client)
        except StatusError as error:
            return self._failed(error, is_final=HTTPStatus.BAD_REQUEST <= error.code < HTTPStatus.TOO_MANY_REQUESTS)
        except DecodeError as error:
            return self._failed(error, is_final=True)
        except (ApiError, CredentialsError) as error:
            return self._failed(error, is_final=False)
        self._failures = 0
        return self._heard(version)

    def _heard(self, version: str) -> float:
        status, now = self._tracker.status, self._clock()
        if status.source != "server":
            self._take(version)
        elif version == status.told or not version:
            self._candidate = None
        else:
            before = self._candidate
            if before is None or before.reported != version:
                before = _Candidate(version, now, 0)
            self._candidate = before._replace(responses=before.responses + 1)
            if self._candidate.responses >= _STEADY_RESPONSES and now - before.since >= _STEADY_FOR:
                self._take(version)
        return _EVERY if self._candidate is None else _WHILE_ANOTHER

    def _take(self, version: str) -> None:
        self._candidate = None
        self._problem = ""
        self._tracker.take(version, "server")
        status = self._tracker.status
        log.log(logging.INFO if status.exact and not status.ignored_gates else logging.WARNING, "answers as %s", status)

    def _failed(self, error: Exception, *, is_final: bool) -> float:
        """Record that the version could not be read. With `is_final`, a retry will not succeed."""
        self._failures += 1
        if not self._problem:
            return _EVERY if is_final else _AFTER_FAILURE  # the known version stays valid
        # An unreachable server fails all requests, so wait. Give up only if all resources are synced without a version.
        if not is_final and (self._failures < _MAX_FAILURES or not all(state.synced for state in self._states)):
            self._problem = _not_known(str(error))
            return _AT_FIRST
        self._problem = ""
        log.warning("GET %s: %s; answers as %s", PATH, one_line(str(error)), self._tracker.status)
        return _EVERY

    async def _nap(self, seconds: float) -> None:
        """Wait, but only shortly after a list or watch has failed."""
        until, failures = self._clock() + seconds, self._watch_failures()
        while (left := until - self._clock()) > 0:
            await asyncio.sleep(min(left, _STEP))
            if self._watch_failures() > failures:
                until = min(until, self._clock() + _AFTER_TROUBLE)
                failures = self._watch_failures()

    def _watch_failures(self) -> int:
        return sum(state.failures.total() for state in self._states)


def _not_known(why: str) -> str:
    return f"release of Kubernetes: not known yet ({one_line(why)})"
