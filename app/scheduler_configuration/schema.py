"""KubeSchedulerConfiguration v1 as structs, durations as Go writes them, and the merged plugins of a profile.

Source: k8s.io/kube-scheduler config/v1/types.go and k8s.io/component-base config/v1alpha1/types.go, v0.36 and, for
podGroupPostFilter, v0.37.
kube-scheduler decodes strictly: it does not start with an unknown field, a wrong type or a duplicate key.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from core.framework.interface import Plugin
from core.plugins import DEFAULTS, DEVICES
from core.plugins.in_tree import GATED
from core.profile import full_profile, with_devices
from core.releases.differences import rules_of
from core.releases.release import Release

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"

_SECONDS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}  # Go accepts both micro signs
_duration_part: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")  # the same
_duration: Final = re.compile(rf"\A[+-]?(?:0|(?:{_duration_part.pattern})+)\Z")

Point: TypeAlias = Literal[
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind", "multiPoint", "placementGenerate", "placementScore", "podGroupPostFilter",
]  # fmt: skip
"""The extension points of a profile, and `multiPoint` for all of them."""
POINTS: Final[tuple[Point, ...]] = get_args(Point)


class _Part(msgspec.Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """Base of all parts. Defaults apply to missing fields. They need to be right only for fields that a check reads."""


class TlsConfig(_Part, frozen=True):
    """ExtenderTLSConfig. Data wins over a file for the same value."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""

    @property
    def has_ca(self) -> bool:
        """Whether it names trusted authorities."""
        return bool(self.ca_file or self.ca_data)

    @property
    def has_certificate(self) -> bool:
        """Whether it has a client certificate with its key: client-go transport/config.go, HasCertAuth."""
        return bool((self.cert_file or self.cert_data) and (self.key_file or self.key_data))


class ManagedResource(_Part, frozen=True):
    """ExtenderManagedResource."""

    name: str = ""
    ignored_by_scheduler: bool = False


class WrittenExtender(_Part, frozen=True):
    """Extender."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    preempt_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsConfig | None = None
    http_timeout: str = "0"
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class WrittenPlugin(_Part, frozen=True):
    """Plugin."""

    name: str = ""
    weight: int = 0


class WrittenPluginSet(_Part, frozen=True):
    """PluginSet."""

    enabled: tuple[WrittenPlugin, ...] = ()
    disabled: tuple[WrittenPlugin, ...] = ()


class WrittenPluginConfig(_Part, frozen=True):
    """PluginConfig."""

    name: str = ""
    args: Any = None


class WrittenProfile(_Part, frozen=True):
    """KubeSchedulerProfile."""

    name: str = msgspec.field(default="", name="schedulerName")
    percentage_of_nodes_to_score: int | None = None
    plugins: dict[Point, WrittenPluginSet] = {}
    plugin_config: tuple[WrittenPluginConfig, ...] = ()


class LeaderElection(_Part, frozen=True):
    """LeaderElectionConfiguration. Without it, leader election is on, for the Lease kube-system/kube-scheduler."""

    leader_elect: bool | None = None
    lease_duration: str = "0"
    renew_deadline: str = "0"
    retry_period: str = "0"
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnection(_Part, frozen=True):
    """ClientConnectionConfiguration. 0 requests a second means the default, a negative number means no limit."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 0
    burst: int = 0


class WrittenConfig(_Part, frozen=True):
    """KubeSchedulerConfiguration."""

    api_version: str = ""
    kind: str = ""
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[WrittenProfile, ...] = ()
    extenders: tuple[WrittenExtender, ...] = ()
    delay_cache_until_active: bool = False


def parse_go_duration(text: str) -> float | None:
    """Return the seconds of a duration in the syntax of Go's time.ParseDuration. None for any other text."""
    if not _duration.match(text):
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _duration_part.findall(text))
    return -seconds if text.startswith("-") else seconds


def go_duration(seconds: float) -> str:
    """Write seconds as a duration, in whole milliseconds."""
    milliseconds = round(seconds * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


# Source: k8s.io/kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go (mergePluginSet) and
# pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins).

KNOWN: Final = frozenset({*DEFAULTS, *GATED})
"""Every in-tree plugin."""
CLAIMS: Final = tuple(name for name, each in DEFAULTS.items() if each.missed)
"""Plugins that bind or allocate what a pod claims, so that nothing replaces them for such pods."""
_WEIGHTS: Final = {
    plugin.name: weight for plugin, weight in with_devices(full_profile()).under(rules_of(Release(1, 36))).scores
}
"""Default plugin -> its weight. VolumeBinding first scores in 1.37, by default."""
HALVES: Final[Sequence[tuple[Point, Point]]] = (("preFilter", "filter"), ("preScore", "score"))
"""The points of a filter, and of a score: the first one prepares the second."""
_OF_WEIGHTS: Final[Sequence[Point]] = ("score", "multiPoint")
"""Points whose plugin sets have weights. The first one wins: getValidScoreWeights."""
_NOTHING: Final = WrittenPluginSet()


class Profile(WrittenProfile, frozen=True):
    """A profile of the scheduler, with its defaults and configured plugins merged.

    `percentage_of_nodes_to_score`, if set, wins over the global one.
    """

    index: int = 0

    def at(self, field: str = "") -> str:
        """Return the path of a field of the profile."""
        return f"profiles[{self.index}]" + (f".{field}" if field else "")

    def order(self, point: Point) -> list[str]:
        """Return the plugins that run at an extension point, in order: default plugins, and plugins configured there.

        The extension points of other plugins are unknown. If configured at multiPoint, they count at every point.
        """
        written, disabled = [*self.enabled(point)], self.disabled(point)
        if "*" in disabled:
            return written
        expanded = [
            plugin
            for plugin in self.at_multi_point()
            if plugin not in disabled and (plugin not in DEFAULTS or point in DEFAULTS[plugin].points)
        ]
        overriding = [plugin for plugin in written if plugin in expanded]
        first = [*overriding, *expanded, *written]  # a repeated plugin keeps its first place
        return [*dict.fromkeys(first)]

    def runs(self, plugin: str, point: Point) -> bool:
        """Return whether a default plugin, or a plugin configured there, runs at an extension point."""
        return plugin in self.order(point)

    def switched_off(self, plugin: str, point: Point) -> bool:
        """Return whether a default plugin of a point is disabled there."""
        return point in DEFAULTS.get(plugin, Plugin).points and not self.runs(plugin, point)

    def weight(self, plugin: str) -> int:
        """Return the weight of a plugin's score, also if the plugin is disabled. Plugins outside the tree have 1."""
        for point in _OF_WEIGHTS:
            if plugin in (written := self.enabled(point)):
                return written[plugin] or 1  # a configured weight replaces the default one, too
        return _WEIGHTS.get(plugin, 1)

    def scoring(self) -> set[str]:
        """Return the plugins that score most pods. DynamicResources scores only claims with alternatives."""
        known = {plugin for plugin in _WEIGHTS if self.runs(plugin, "score")}
        return (known | set(self.enabled("score"))) - {DEVICES.name}

    def halved(self) -> Iterator[tuple[str, Point, Point]]:
        """Yield the plugins that fail for every pod: they run at the second point, which needs the first one."""
        for before, point in HALVES:
            for plugin, each in sorted(DEFAULTS.items()):
                if point in each.needs_pre and self.runs(plugin, point) and not self.runs(plugin, before):
                    yield plugin, before, point

    def running(self, point: Point) -> set[str]:
        """Return the plugins that run at an extension point, as far as their extension points are known."""
        return {plugin for plugin in DEFAULTS if self.runs(plugin, point)} | set(self.enabled(point))

    def enabled(self, point: Point) -> dict[str, int]:
        """Return the plugins configured as enabled: name -> weight, 0 without one."""
        return {each.name: each.weight for each in self.written_at(point).enabled}

    def disabled(self, point: Point) -> list[str]:
        """Return the names configured as disabled."""
        return [each.name for each in self.written_at(point).disabled]

    def written_at(self, point: Point) -> WrittenPluginSet:
        """Return the plugins configured at an extension point."""
        return self.plugins.get(point, _NOTHING)

    def at_multi_point(self) -> list[str]:
        """Return the plugins of multiPoint in order: defaults, merged with the configured ones (mergePluginSet)."""
        disabled, written = self.disabled("multiPoint"), self.enabled("multiPoint")
        enabled = [] if "*" in disabled else [plugin for plugin in DEFAULTS if plugin not in disabled]
        return [*dict.fromkeys((*enabled, *written))]
