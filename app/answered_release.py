"""The release of Kubernetes whose rules Kindred applies, the source that named it, and the mirror's rules of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from app.logs import one_line
from app.setting_types import AUTO
from app.settings import Settings
from core.mirror.cluster import ClusterMirror
from core.releases import DEFAULT_RELEASE, FeatureGateError, Nearest, Release, Rules, nearest, rules_of

ReleaseSource: TypeAlias = Literal["setting", "server", "nodes", "default"]
_SAID_BY: Final[Mapping[ReleaseSource, str]] = {
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
            text = f"Kubernetes {self.release}{nearest_known} ({_SAID_BY[self.source]}: {self.told or 'unknown'})"
        return text + (f"; ignored feature gates: {', '.join(self.ignored_gates)}" if self.ignored_gates else "")


class AnsweredRelease:
    """The release whose rules a mirror has. No other code changes a mirror's rules, and only between two requests."""

    def __init__(self, settings: Settings, mirror: ClusterMirror) -> None:
        """Give the mirror the rules of the release in the settings. `auto` begins with the default release."""
        self._mirror = mirror
        self._gates = settings.feature_gates
        self.is_fixed: Final = settings.kubernetes != AUTO
        """Whether the setting names the release. Kindred then does not read the version of the API server."""
        if self.is_fixed:
            self._status = self._take(nearest(settings.kubernetes), "setting")
        else:
            self._status = self._take(Nearest(DEFAULT_RELEASE, exact=False, text=""), "default")

    @property
    def status(self) -> ReleaseStatus:
        """The release whose rules apply now."""
        return self._status

    def take(self, told: str, source: ReleaseSource) -> None:
        """Apply the rules of the release that a source reported, or of the nearest known one, from the next request on.

        No effect if the setting names the release.
        """
        if not self.is_fixed:
            self._status = self._take(nearest(told), source)

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
    ignored = [name for name, value in gates.items() if not _is_allowed(release, name, value=value)]
    return rules_of(release, {name: value for name, value in gates.items() if name not in ignored}), ignored


def _is_allowed(release: Release, gate: str, *, value: bool) -> bool:
    try:
        rules_of(release, {gate: value})
    except FeatureGateError:
        return False
    return True
