"""The settings: their names, allowed values and meanings. Their sources are in app/configuration.py."""

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.json_text import encode
from core.framework.interface import MAX_NODE_SCORE
from core.mirror.work import DEFAULT_MAX_WORK
from core.node_sample import ADAPTIVE, ALL
from core.plugins.interpodaffinity.plugin import MAX_HARD_POD_AFFINITY_WEIGHT
from core.releases import RELEASES, FeatureGateError, nearest, rules_of

PREFIX: Final = "KINDRED_"
AUTO: Final = "auto"
_RELEASES: Final = (AUTO, *map(str, RELEASES))
_ADMIN_PROOFS: Final = ("admin_token_file", "admin_read_token_file", "admin_client_ca_file")
"""An admin port that others can reach needs at least one of these settings."""
_RENEWALS: Final = 1.2
"""The deadline of a renewal is more than so many pauses: client-go leaderelection.go, JitterFactor."""


def variable_of(name: str) -> str:
    """Return the name of a field in the environment."""
    return PREFIX + name.upper()


class SettingsError(ValueError):
    """A setting with a value that is not allowed; the message names the setting, the value and the rule."""


def _names(value: object) -> object:
    """Read a list from the text of an environment variable or a flag: names, separated by commas."""
    if isinstance(value, str):
        return tuple(name for part in value.split(",") if (name := part.strip()))
    return tuple(value) if isinstance(value, list) else value


def _json_text(value: object) -> object:
    """Return a mapping of the file as the JSON text that a variable has; other values as they are."""
    return encode(value).decode() if isinstance(value, Mapping) else value


def _joined(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _release(value: object) -> str:
    """Read the name of a release, which YAML takes for a number."""
    text = str(value)
    if text not in _RELEASES:
        raise ValueError(f"expected one of {', '.join(_RELEASES)}")
    return text


def _gates(value: object) -> object:
    """Read feature gates from the text of an environment variable or a flag, as `--feature-gates` of kube-scheduler."""
    if not isinstance(value, str):
        return value
    gates: dict[str, str] = {}
    for part in filter(None, map(str.strip, value.split(","))):
        name, sign, switch = part.partition("=")
        if not sign:
            raise ValueError(f"{part}: expected NAME=true or NAME=false")
        gates[name.strip()] = switch.strip()
    return gates


def _file(value: object) -> object:
    return None if value == "" else value  # as a variable that is set to nothing


class FileForm(NamedTuple):
    """The JSON schema of a field in a file, where a file may have more than the field's own type."""

    schema: Mapping[str, object]


_LIST: Final = FileForm({"type": ["array", "string"], "items": {"type": "string"}})
_OBJECT: Final = FileForm({"type": ["object", "string"]})
_SWITCHES: Final = FileForm({"type": ["object", "string"], "additionalProperties": {"type": "boolean"}})
_RELEASE: Final = FileForm({"enum": [AUTO, *(form for each in RELEASES for form in (str(each), float(str(each))))]})

Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names), _LIST]
Json: TypeAlias = Annotated[str, BeforeValidator(_json_text), _OBJECT]
KubernetesRelease: TypeAlias = Annotated[
    str, BeforeValidator(_release), Field(json_schema_extra={"enum": list(_RELEASES)}), _RELEASE
]
Gates: TypeAlias = Annotated[dict[str, bool], NoDecode, BeforeValidator(_gates), _SWITCHES]
File: TypeAlias = Annotated[Path | None, BeforeValidator(_file)]
Host: TypeAlias = Annotated[str, Field(min_length=1)]
Query: TypeAlias = Annotated[str, Field(min_length=1)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """What can be set. Each field is the variable KINDRED_<FIELD>, a key of the file and a flag of `kindred serve`.

    None is called PORT or begins with SERVICE_: beside a Service called kindred, Kubernetes sets KINDRED_PORT and
    KINDRED_SERVICE_* in every container of the namespace, to values of its own.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", use_attribute_docstrings=True, env_parse_none_str=None
    )

    # What answers, and how.
    kubernetes: KubernetesRelease = AUTO
    """Release of Kubernetes whose answers are given. `auto`: that of the API server, which may change while Kindred
    runs; of a dump, that of its newest kubelet. docs/versions.md says what differs."""
    feature_gates: Gates = {}
    """Feature gates of kube-scheduler that change an answer and are not as the release has them by default, as
    `NAME=false,NAME=true`."""
    profile: Annotated[str, BeforeValidator(_joined), _LIST] = "affinity"
    """Plugins that answer: `affinity` (InterPodAffinity alone), `full` (kube-scheduler's default ones but
    DynamicResources), or a list of `[filter:|score:]NAME[=WEIGHT]`, separated by commas, in which these two names stand
    for their plugins."""
    plugin_args: Json = ""
    """Arguments of plugins, as JSON: plugin -> upstream's `*Args`. Empty: upstream's defaults."""
    hard_pod_affinity_weight: Annotated[int, Field(ge=0, le=MAX_HARD_POD_AFFINITY_WEIGHT)] = 1
    """Score of a required affinity term of an existing pod: `hardPodAffinityWeight` of InterPodAffinityArgs."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Score only pods that have preferences of their own: InterPodAffinityArgs, the same name."""
    max_score: Annotated[int, Field(ge=1, le=MAX_NODE_SCORE)] = MAX_NODE_SCORE
    """Highest score of `prioritize`. kube-scheduler multiplies an extender's score by ten: 20 with weight 1 weighs as
    the in-tree plugin (weight 2) does, 10 is its own range for extenders."""
    percentage_of_nodes_to_score: Annotated[int, Field(ge=ADAPTIVE, le=ALL)] = ALL
    """Share of the cluster's nodes that `filter` passes on at most, never fewer than 100: the best by Kindred's scores,
    and among equals not always the same ones. `0` follows the size of the cluster as kube-scheduler does, 50 % to 5 %.
    Nodes left out are in no list of the answer."""
    partition: Json = ""
    """Nodes that this scheduler may use, a rule as `PUT /debug/partition` takes it. Empty: all."""
    bypass_namespaces: Names = ()
    """Namespaces whose pods pass untouched: every node fits, every score is 0."""
    bypass_labels: str = ""
    """Label selector, as kubectl's `-l` has it, of pods that pass untouched. Empty: none."""
    bypass_schedulers: Names = ()
    """Pods with one of these as `spec.schedulerName` pass untouched."""
    bind_timeout: Annotated[float, Field(ge=0.1, le=300)] = 4.0
    """Seconds within which `bind` answers, below kube-scheduler's `httpTimeout` for the extender, which is 5 s by
    default."""
    preempt: Literal["off", "verb", "evict"] = "off"
    """`verb`: answer `preempt`, for which PodDisruptionBudgets are watched, too; `evict`: besides, preempt by itself
    for pods that only Kindred keeps off every node; `off`: answers of `preempt` have no node."""
    answer: Literal["all", "decide"] = "all"
    """What `filter` returns: `all` nodes that fit, or (`decide`) the one node that Kindred chooses, on which the pod
    counts from then on. `decide` is for a kube-scheduler of its own that leaves filters and scores to Kindred."""
    decide_scope: str = "question"
    """Which nodes Kindred chooses among: `question`, those of the request; `any-node`, all of the cluster, which is
    right only for a scheduler profile without any filter plugin. Or by `spec.schedulerName`, as
    `NAME=question,NAME=any-node`: for the pods of other schedulers `filter` then returns all nodes that fit."""
    decide_claims_scheduler: str = ""
    """The `spec.schedulerName` whose profile keeps VolumeBinding and DynamicResources, with the scope `question`. A
    pod with unbound claims, resource claims or a scheduling group has to name it; otherwise it gets an `Error` that
    says so. Empty: there is none, and all such pods get the `Error`."""
    decide_settle: Annotated[float, Field(ge=0, le=60)] = 3.0
    """Seconds before the first decision after a start or a fail-over, if pods are pending then. In this time the
    bindings of decisions before it complete."""
    groups: bool = True
    """With `answer` `decide`: whether the pods of a group are placed all or none. Needs nothing for groups by the label
    `kindred.dev/group`; for PodGroups of scheduler-plugins, that Kindred may list and watch them."""
    usage_source: Literal["off", "metrics-api", "prometheus"] = "off"
    """Where the measured usage of nodes is read, for the plugins that follow it: `metrics-api`, metrics.k8s.io of the
    API server, which metrics-server serves; `prometheus`, the server at `usagePrometheusUrl`. See docs/load.md."""
    usage_interval: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """Seconds between two reads of the usage of all nodes; a read that takes longer has failed."""
    usage_max_age: Annotated[float, Field(ge=1)] = 180.0
    """Seconds after which a measurement is too old: the plugins then judge the node as one that is not measured."""
    usage_prometheus_url: str = ""
    """Base URL of the Prometheus API, as `https://prometheus.monitoring:9090`."""
    usage_prometheus_token_file: File = None
    """File whose text is the bearer token for Prometheus; read again when it changes. Only with https."""
    usage_prometheus_ca_file: File = None
    """Authorities, PEM, that must have signed the certificate of Prometheus. Empty: those of the system."""
    usage_window: Annotated[float, Field(ge=60, le=86400)] = 900.0
    """Seconds that Prometheus takes averages and standard deviations over."""
    usage_cpu_query: Query = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))'
    """PromQL of the cpu in use now, in cores, one series a node. The default reads the metrics of the kubelet."""
    usage_memory_query: Query = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
    """PromQL of the memory in use now, in bytes, one series a node."""
    usage_node_label: Annotated[str, Field(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")] = "node"
    """Label of these series that has the name of the node; `:PORT` behind it is passed over."""
    max_work: Annotated[int, Field(ge=1_000_000)] = DEFAULT_MAX_WORK
    """Work that one evaluation may take, in units of about a nanosecond. A pod that takes more gets an `Error` that
    names the field. Pods of the benchmark take at most a fiftieth."""

    # The equivalence cache.
    equivalence_cache: bool = True
    """Whether results are kept for pods of one class. Off, every question is evaluated afresh."""
    equivalence_mode: Literal["controller", "spec"] = "spec"
    """Which pods are of one class: `spec`, all that look alike to the plugins; `controller`, those of them that have
    the same controller, and pods without one are evaluated afresh."""
    equivalence_max_bytes: Annotated[int, Field(ge=64 * 1024)] = 128 * 1024 * 1024
    """Bytes that the results may take, about; the classes that were not asked about for longest go first."""
    equivalence_shadow_share: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Share of the questions whose answers from the cache are computed again and compared."""

    # How far the mirror is trusted.
    stale_after: Annotated[float, Field(ge=1)] = 180.0
    """Seconds without a sign from the API server after which the mirror is stale. A server with nothing to tell sends a
    bookmark about once a minute, and without one the watch is renewed after 75 s."""
    memory_limit: Annotated[int, Field(ge=0)] | None = None
    """Bytes of memory above which the process would be killed, 0 for no limit. Empty: the limit of its cgroup, which is
    that of the container, or the memory of the machine where that is less."""
    memory_watermark: Annotated[float, Field(ge=0.1, le=1)] = 0.9
    """Share of `memory_limit` above which `/readyz` says no, and which kind of objects takes too much, and nothing more
    is listed until there is memory again."""
    stale_policy: Literal["fail", "answer"] = "fail"
    """What questions get while the mirror is stale: an `Error`, or an answer with a header that says so."""
    assumed_pod_ttl: Annotated[float, Field(ge=1)] = 300.0
    """Seconds after the end of its binding within which the watch must show an assumed pod, or it counts no more. More
    than `stale_after`: while requests are answered and the watch is late, bound pods have to count."""

    # The scheduler's port.
    listen_host: Host = "127.0.0.1"
    """Address to listen on."""
    listen_port: Port = 8888
    """Port to listen on; 0 takes a free one."""
    tls_cert_file: File = None
    """Certificate of the server, PEM, with its chain; read again when it changes. Empty: no TLS."""
    tls_key_file: File = None
    """Key of that certificate, PEM, without a password."""
    tls_client_ca_file: File = None
    """Authorities, PEM, that must have signed a client's certificate. Empty: clients need none."""
    tls_client_names: Names = ()
    """Who may ask: common names, or DNS names, of client certificates. Empty: whoever the authorities signed."""
    tls_min_version: Literal["1.2", "1.3"] = "1.2"
    """Lowest version of TLS that is spoken."""
    max_connections: Annotated[int, Field(ge=1)] = 512
    """Connections that are open at once on one port; further ones are closed at once."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 * 1024 * 1024
    """Largest request body, in bytes. 5,000 whole Node objects are about 32 MB."""
    max_header_bytes: Annotated[int, Field(ge=1024)] = 32 * 1024
    """Largest head of a request, in bytes: request line and headers, each of which counts for 32 bytes more. A body in
    chunks may have as much around it, head included, and 1/16 of its own size: chunk sizes, extensions and trailers."""
    read_timeout: Annotated[float, Field(ge=0.1)] = 10.0
    """Seconds within which a request that has begun must be complete, and an answer be taken."""
    idle_timeout: Annotated[float, Field(ge=1)] = 120.0
    """Seconds after which a connection without a request is closed. More than the 90 s of Go's clients: who closes
    first is not sent a request at that moment."""

    # What happens under load, and at the end.
    deadline: Annotated[float, Field(ge=0.05)] = 4.0
    """Seconds from its beginning within which a question must have its turn; else `filter` answers an `Error`, and
    `prioritize` an empty list, which adds nothing to any node. Below kube-scheduler's `httpTimeout`."""
    queue_limit: Annotated[int, Field(ge=1)] = 100
    """Questions that may wait for their turn; past it they are answered as after the deadline, at once."""
    queue_max_bytes: Annotated[int, Field(ge=1024 * 1024)] = 256 * 1024 * 1024
    """Bytes that the bodies of questions may take, those under way and those that wait; past it likewise. What is
    around the chunks of a body counts, too."""
    drain_delay: Annotated[float, Field(ge=0, le=600)] = 0.0
    """Seconds after SIGTERM for which questions are still taken, while `/readyz` says no: until everybody has heard.
    None with leader election, where it would only keep another from leading."""
    grace_period: Annotated[float, Field(ge=1, le=3600)] = 20.0
    """Seconds from SIGTERM within which the process has ended; below the pod's terminationGracePeriodSeconds."""

    # Several replicas.
    leader_election: bool = False
    """Whether only the holder of a Lease is ready, binds and decides. Needed for more than one replica where `bind` is
    used, or with `answer` `decide`."""
    lease_name: Annotated[str, Field(min_length=1, max_length=253)] = "kindred"
    """Name of the Lease, in `pod_namespace`."""
    lease_duration: Annotated[float, Field(ge=1)] = 15.0
    """Seconds after its last renewal for which a Lease is respected."""
    lease_renew_deadline: Annotated[float, Field(ge=0.5)] = 10.0
    """Seconds within which the leader must have renewed its Lease, or it leads no more."""
    lease_retry_period: Annotated[float, Field(ge=0.1)] = 2.0
    """Seconds between two attempts to take or renew the Lease."""
    pod_name: str = ""
    """Name of this replica. Empty: the name of the host, which in a pod is the pod's."""
    pod_namespace: str = ""
    """Namespace of this replica. Empty: that of the service account. Pods there that are labelled
    `app.kubernetes.io/name: kindred` pass untouched, so that a Kindred that is down does not keep itself down."""

    # Looking at it.
    health_port: Port | None = None
    """Port, on `listen_host`, of `/livez`, `/readyz`, `/version` and `/metrics` in plain HTTP, for who has no client
    certificate: kubelet, Prometheus. Empty: the scheduler's port alone has them."""
    admin_host: Host = "127.0.0.1"
    """Address of the admin port. Any but the loopback needs `admin_token_file`, `admin_read_token_file` or
    `admin_client_ca_file`."""
    admin_port: Port | None = None
    """Port of `/debug`, which shows what the mirror holds and changes the partition, 0 for any. Empty: none."""
    explain: Literal["full", "profile"] = "full"
    """What explanations on the admin port judge: every rule of the profile `full` besides those that are served, for
    which the objects that it reads are watched, too, or (`profile`) what is served alone. Objects that may not be
    watched keep nothing else from being answered."""
    scheduler_config: File = None
    """KubeSchedulerConfiguration of the kube-scheduler whose pods are explained: which plugins it runs, with which
    arguments and weights. Read at the start. Empty: unknown, and every rule is judged with its default arguments."""
    admin_token_file: File = None
    """File whose text is the bearer token of the admin port; read again when it changes."""
    admin_read_token_file: File = None
    """File whose text is the bearer token that may read the admin port, and explain, and change nothing: neither the
    partition nor what is logged. Read again when it changes."""
    admin_client_ca_file: File = None
    """Authorities, PEM, whose client certificates open the admin port; needs `tls_cert_file`."""
    explain_access: Literal["all", "review"] = "all"
    """Who sees the names of pods on the admin port: `all` that it lets in, or (`review`), besides the bearer of
    `admin_token_file` and certificates of `admin_client_ca_file`, only those who may list the pods of the namespace, as
    the API server says of the token in `Kindred-Caller-Token`. docs/security.md has the rules."""
    admin_proxy_names: Names = ()
    """Common names, or DNS names, of certificates of `admin_client_ca_file` that are of proxies and not of admins: they
    may name their user in `X-Remote-User`, `X-Remote-Group` and `X-Remote-Extra-*`. Needs `explain_access` `review`."""
    node_metrics: bool = False
    """Whether `/metrics` has the resource figures of each node, besides the sums of the cluster. A node with three
    resources has 12 series. With 5,000 nodes these are 60,000 series and 9 MB a scrape."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe message that is logged."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """`json`: an object a line; `text`: for people; `auto`: text on a terminal, else JSON."""
    log_questions: Literal["problems", "all"] = "problems"
    """Which questions have a line in the log: those that went wrong, or all, which costs more than most decisions."""
    traces_endpoint: str = ""
    """Where OpenTelemetry traces go, by OTLP over HTTP; needs the extra `kindred-scheduler[otel]`. Empty: no traces."""
    traces_share: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the questions that are traced, where the caller has not decided."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        """Refuse settings that are wrong with each other; the message names a field first."""
        if rule := _wrong_gates(self.kubernetes, self.feature_gates):
            raise _wrong("feature_gates", self, rule)
        for name, needed in (
            ("tls_cert_file", "tls_key_file"),
            ("tls_key_file", "tls_cert_file"),
            ("tls_client_ca_file", "tls_cert_file"),
            ("tls_client_names", "tls_client_ca_file"),
            ("admin_client_ca_file", "tls_cert_file"),
            ("admin_proxy_names", "admin_client_ca_file"),
            ("usage_prometheus_token_file", "usage_prometheus_url"),
            ("usage_prometheus_ca_file", "usage_prometheus_url"),
        ):
            if getattr(self, name) and not getattr(self, needed):
                raise _wrong(name, self, f"needs {variable_of(needed)}")
        if self.usage_source == "prometheus" and not self.usage_prometheus_url:
            raise _wrong("usage_source", self, f"needs {variable_of('usage_prometheus_url')}")
        self._check_admins()
        if self.scheduler_config and self.explain != "full":
            raise _wrong("scheduler_config", self, f"needs {variable_of('explain')}=full")
        if error := _wrong_lease(self):
            raise error
        if self.queue_max_bytes < self.max_body_bytes:
            rule = f"must be at least {variable_of('max_body_bytes')}, {self.max_body_bytes}"
            raise _wrong("queue_max_bytes", self, rule)
        if self.answer == "decide" and self.stale_policy == "answer":
            raise _wrong("stale_policy", self, f"must be fail with {variable_of('answer')}=decide")
        if self.drain_delay >= self.grace_period:
            rule = f"must be less than {variable_of('grace_period')}, {self.grace_period}"
            raise _wrong("drain_delay", self, rule)
        return self

    def _check_admins(self) -> None:
        if self.admin_port is not None and not (
            is_loopback(self.admin_host) or any(getattr(self, name) for name in _ADMIN_PROOFS)
        ):
            keys = ", ".join(map(variable_of, _ADMIN_PROOFS[:-1])) + f" or {variable_of(_ADMIN_PROOFS[-1])}"
            raise _wrong("admin_host", self, f"is not the loopback: needs {keys}")
        if self.admin_proxy_names and self.explain_access != "review":
            raise _wrong("admin_proxy_names", self, f"needs {variable_of('explain_access')}=review")


class WrongTogetherError(ValueError):
    """A setting that is wrong because of another."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        super().__init__(rule)
        self.name = name
        self.value = value


def _wrong(name: str, settings: Settings, rule: str) -> WrongTogetherError:
    return WrongTogetherError(name, getattr(settings, name), rule)


def _wrong_lease(settings: Settings) -> WrongTogetherError | None:
    """Return the error of the times of the Lease; None if they are right."""
    if settings.lease_duration <= settings.lease_renew_deadline:
        rule = f"must be more than {variable_of('lease_renew_deadline')}, {settings.lease_renew_deadline}"
        return _wrong("lease_duration", settings, rule)
    if settings.lease_renew_deadline <= _RENEWALS * settings.lease_retry_period:
        retry = settings.lease_retry_period
        rule = f"must be more than {_RENEWALS} times {variable_of('lease_retry_period')}, {retry}"
        return _wrong("lease_renew_deadline", settings, rule)
    return None


def _wrong_gates(release: str, gates: Mapping[str, bool]) -> str:
    """Return the error of feature gates; empty if they are right. With `auto`, any known release may allow each."""
    candidates = [nearest(release).release] if release != AUTO else RELEASES
    for name, value in gates.items():
        problems = []
        for candidate in candidates:
            try:
                rules_of(candidate, {name: value})
            except FeatureGateError as error:
                problems.append(str(error))
        if len(problems) == len(candidates):
            return problems[-1]
    return ""


def is_loopback(host: str) -> bool:
    """Return whether an address is one that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
