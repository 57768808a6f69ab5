"""KubeSchedulerConfiguration v1 as structs, and durations as Go writes them.

Source: k8s.io/kube-scheduler config/v1/types.go and k8s.io/component-base config/v1alpha1/types.go, v0.36 and, for
podGroupPostFilter, v0.37.
kube-scheduler decodes strictly: it does not start with an unknown field, a wrong type or a duplicate key.
"""

import re
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

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
"""The syntax of time.ParseDuration."""

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
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
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
    parallelism: int = 0
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = False
    enable_contention_profiling: bool = False
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 0
    pod_max_backoff_seconds: int = 0
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
