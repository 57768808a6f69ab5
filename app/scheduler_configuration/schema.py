"""KubeSchedulerConfiguration v1 as structs, the check of a document against them, and what a finding is.

Source: k8s.io/kube-scheduler config/v1/types.go and k8s.io/component-base config/v1alpha1/types.go, v0.36 and, for
podGroupPostFilter, v0.37.
kube-scheduler decodes strictly: it does not start with an unknown field, a wrong type or a duplicate key.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
VALIDATION: Final = "kubernetes pkg/scheduler/apis/config/validation/validation.go"
TYPES: Final = "kube-scheduler config/v1 types.go"

_MAX_LENGTH: Final = 60  # characters of a value in a message

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
_DURATION: Final = rf"\A[+-]?(?:0|(?:{_duration_part.pattern})+)\Z"
"""The syntax of time.ParseDuration."""
_duration: Final = re.compile(_DURATION)

Duration = Annotated[str, msgspec.Meta(pattern=_DURATION)]
Point: TypeAlias = Literal[
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
    "bind", "postBind", "multiPoint", "placementGenerate", "placementScore", "podGroupPostFilter",
]  # fmt: skip
"""The extension points of a profile, and `multiPoint` for all of them."""
POINTS: Final[tuple[Point, ...]] = get_args(Point)


class Severity(Enum):
    """The severity of a finding."""

    ERROR = "error"
    """kube-scheduler does not start, pods are placed wrongly or not at all, or a rule is not enforced."""
    WARNING = "warning"
    """The registration works, but not well: late, with too much weight, unsafe."""
    INFO = "info"
    """A fact to check. If it is intended, there is nothing to do."""


class Finding(msgspec.Struct, frozen=True):
    """A problem, with the check that found it."""

    id: str
    severity: Severity
    where: str
    message: str
    fix: str
    reference: str


class _Part(msgspec.Struct, rename="camel", frozen=True):
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
    http_timeout: Duration = "0"
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
    lease_duration: Duration = "0"
    renew_deadline: Duration = "0"
    retry_period: Duration = "0"
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


_SCALARS: Final = {str: "a string", int: "an integer", float: "a number", bool: "a boolean"}


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


def read_document(document: Mapping[str, Any]) -> tuple[WrittenConfig | None, list[Finding]]:
    """Return the contents of a document, without unknown fields, and all its errors: kind, fields, types.

    The contents are None for a document of another kind, or with a value of a wrong type.
    """
    findings = [
        _error("wrong-kind", key, f"expected {wanted}, found {_shown(document.get(key))}", f"{key}: {wanted}")
        for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND))
        if document.get(key) != wanted
    ]
    if document.get("kind") != KIND:
        return None, findings
    fitting = _fitting(document, WrittenConfig, "", findings)
    if any(finding.id != "unknown-field" for finding in findings):
        return None, findings
    return msgspec.convert(fitting, WrittenConfig), findings


def _fitting(value: Any, wanted: Any, where: str, findings: list[Finding]) -> Any:  # noqa: ANN401  # whatever YAML holds
    """Return a value without nulls, which count as missing, and without fields with findings."""
    if isinstance(wanted, type) and issubclass(wanted, _Part):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(wanted)}
        return _fitting_fields(value, fields, where, findings)
    parts = get_args(wanted)
    if get_origin(wanted) is dict:
        return _fitting_fields(value, dict.fromkeys(get_args(parts[0]), parts[1]), where, findings)
    if get_origin(wanted) is tuple:
        if isinstance(value, list):
            # In Go, null in a list of structs is an empty struct.
            items = [{} if item is None else item for item in value]
            return [_fitting(item, parts[0], f"{where}[{index}]", findings) for index, item in enumerate(items)]
        findings.append(_wrong_type(where, "a list", value))
        return value
    if type(None) in parts:
        return _fitting(value, parts[0], where, findings)
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        findings.append(
            _bad_duration(where, value) if wanted == Duration else _wrong_type(where, _SCALARS[wanted], value)
        )
    return value


def _fitting_fields(value: Any, fields: Mapping[str, Any], where: str, findings: list[Finding]) -> Any:  # noqa: ANN401  # the same
    if not isinstance(value, dict):
        findings.append(_wrong_type(where, "fields with values", value))
        return value
    fitting = {}
    for key, item in value.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in fields:
            findings.append(_unknown_field(path, str(key), fields))
        elif item is not None:
            fitting[key] = _fitting(item, fields[key], path, findings)
    return fitting


def _unknown_field(path: str, key: str, fields: Mapping[str, Any]) -> Finding:
    folded = {name.lower(): name for name in fields}
    close = get_close_matches(key.lower(), folded, 1)
    meant = f"; did you mean {folded[close[0]]}?" if close else ""
    fix = f"rename {key} to {folded[close[0]]}" if close else f"take {path} out"
    return _error("unknown-field", path, f"unknown field, so kube-scheduler does not start{meant}", fix)


def _bad_duration(where: str, value: object) -> Finding:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    unit = f"{value:g}s" if is_number else "5s"
    message = f"{_shown(value)} is no duration: a number with a unit, in quotes or without (5s, 500ms, 1m30s)"
    return _error("bad-duration", where, message, f"{where.rpartition('.')[2]}: {unit}")


def _wrong_type(where: str, wanted: str, value: object) -> Finding:
    name = where.rpartition(".")[2] or "the document"
    return _error("wrong-type", where, f"expected {wanted}, found {_shown(value)}", f"give {name} {wanted}")


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case dict():
            return "fields"
        case list():
            return "a list"
        case bool():
            return str(value).lower()
    return repr(value) if len(repr(value)) <= _MAX_LENGTH else f"{repr(value)[:_MAX_LENGTH]}..."


def _error(check: str, where: str, message: str, fix: str) -> Finding:
    return Finding(check, Severity.ERROR, where, message, fix, TYPES if check != "wrong-kind" else VALIDATION)
