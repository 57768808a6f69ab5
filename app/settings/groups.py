"""The settings in groups. The docstring of a group says who has to know it: docs/configuration.md shows it."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.settings.types import (
    AUTO,
    File,
    Gates,
    Json,
    KubernetesRelease,
    LeaseName,
    Listening,
    Names,
    OptionalListening,
    Port,
    Profile,
    Query,
    Url,
)
from core.framework.scores import MAX_NODE_SCORE
from core.scheduling_cycle import ADAPTIVE, ALL

OFF: Final = "off"


class Group(BaseModel):
    """A part of Settings. The first line of a docstring is its title, the rest its reason."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class SchedulingSettings(Group):
    """Rules and verbs.

    They must agree with kube-scheduler and with the registration of the extender, or pods are placed wrongly. The
    command `kindred doctor` compares them.
    """

    kubernetes: KubernetesRelease = AUTO
    """Release of Kubernetes whose rules apply. `auto` takes the release of the API server, which can change while
    Kindred runs. For a dump, `auto` takes the release of its newest kubelet. docs/versions.md lists the differences."""
    feature_gates: Gates = {}
    """Feature gates of kube-scheduler that differ from the defaults of the release, as `NAME=false,NAME=true`. Only
    gates that change a decision can be set."""
    profile: Profile = "affinity"
    """Plugins that Kindred runs: `affinity`, `full`, or a list of `[filter:|score:]NAME[=WEIGHT]`, separated by commas.
    `affinity` is InterPodAffinity alone. `full` is the default plugins of kube-scheduler without DynamicResources. In a
    list, these two names stand for their plugins."""
    plugin_args: Json = ""
    """Arguments of plugins, as JSON: plugin -> upstream's `*Args`. Empty: upstream's defaults."""
    max_score: Annotated[int, Field(ge=1, le=MAX_NODE_SCORE)] = MAX_NODE_SCORE
    """Highest score that `prioritize` returns. kube-scheduler multiplies the scores of an extender by 10. With 20 and
    weight 1, Kindred weighs as much as the in-tree plugin with its weight 2. Upstream's range for extenders is 0 to
    10."""
    percentage_of_nodes_to_score: Annotated[int, Field(ge=ADAPTIVE, le=ALL)] = ALL
    """Share of the cluster's nodes, in percent, that `filter` returns at most, but never fewer than 100 nodes. `filter`
    returns the nodes with the best scores, and varies its choice among equal scores. `0` adapts the share to the size
    of the cluster, from 50 % to 5 %, as kube-scheduler does. The response does not name the nodes that are left out."""
    partition: Json = ""
    """Nodes that this scheduler may use, by label selector and by name:
    `{"selector": {"matchLabels": {"pool": "batch"}}, "in": [], "out": ["node-7"]}`. Other nodes fail with an
    unresolvable status. Their pods still count. Empty: all nodes."""
    bypass_namespaces: Names = ()
    """Namespaces whose pods Kindred does not judge: every node fits, and every score is 0. With `decide`, it judges
    those for which it decides all the same, because their scheduler relies on it."""
    bypass_schedulers: Names = ()
    """Schedulers whose pods Kindred does not judge, by `spec.schedulerName`. `decideSchedulers` names none of them."""
    bind: bool = False
    """Whether Kindred binds pods, for a registration with `bindVerb`. Otherwise responses of `bind` have an `Error`
    that says so."""
    preempt: Literal["off", "verb", "evict"] = "off"
    """Part of Kindred in preemption: `off`, `verb` or `evict`. With `off`, responses of `preempt` have no node. With
    `verb`, Kindred serves `preempt`, and watches PodDisruptionBudgets for it. With `evict`, Kindred also preempts by
    itself for pods that Kindred alone rejects on every node."""
    decide: Literal["off", "any-node", "listed-nodes"] = "off"
    """Nodes that `filter` returns: with `off`, every node that fits. Otherwise the one node that Kindred chooses, with
    `any-node` among all nodes of the cluster, with `listed-nodes` among the nodes of the request. A pod counts on its
    chosen node from the decision on. `any-node` is only right for a scheduler profile without any filter plugin. Both
    are for a kube-scheduler of its own that leaves filters and scores to Kindred."""
    decide_schedulers: Names = ()
    """The `spec.schedulerName` of the pods that Kindred decides for. For the pods of other schedulers `filter` returns
    every node that fits. Empty: all schedulers."""
    decide_claims_scheduler: str = ""
    """The `spec.schedulerName` whose profile keeps VolumeBinding and DynamicResources. Kindred always decides for it
    among the listed nodes. A pod with unbound claims or resource claims must name this scheduler. Otherwise it gets an
    `Error` that says so. Empty: there is no such profile, and all these pods get the `Error`. Only pods of this
    scheduler, and of `decideGroupsScheduler`, get a node for devices behind extended resources."""
    decide_groups_scheduler: str = ""
    """The `spec.schedulerName` whose profile keeps all in-tree filters. Kindred always decides for it among the listed
    nodes. The members of a scheduling group (`spec.schedulingGroup`, in 1.35 `spec.workloadRef`) must name this
    scheduler. Otherwise they get an `Error` that says so. Empty: there is no such profile. If it is set, all schedulers
    that Kindred decides for must be profiles of one kube-scheduler. `featureGates` must say whether its feature gate
    GenericWorkload is on."""


class UsageSettings(Group):
    """The measured usage of nodes.

    Only the plugins that follow usage read it, and each cluster measures it in another place.
    """

    usage_source: Literal["off", "metrics-api", "prometheus"] = "off"
    """Source of the measured usage of nodes: `metrics-api`, `prometheus` or `off`. The plugins that follow usage need
    one. `metrics-api` is metrics.k8s.io of the API server, which metrics-server serves. `prometheus` is the server at
    `usagePrometheusUrl`. See docs/plugins.md."""
    usage_interval: Annotated[float, Field(ge=1, le=3600)] = 30.0
    """Seconds between two polls of the usage of all nodes. A poll that takes longer fails."""
    usage_prometheus_url: Url = ""
    """Base URL of the Prometheus API, such as `https://prometheus.monitoring:9090`, without a user, a password and a
    query."""
    usage_prometheus_token_file: File = None
    """File with the bearer token for Prometheus, only with https. Kindred reads it again when it changes."""
    usage_prometheus_ca_file: File = None
    """Certificate authorities, PEM, that sign the certificate of Prometheus. Empty: the authorities of the system."""
    usage_cpu_query: Query = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))'
    """PromQL query of the CPU in use, in cores, one series for each node. The default reads the metrics of the
    kubelet."""
    usage_memory_query: Query = 'sum by (node) (container_memory_working_set_bytes{id="/"})'
    """PromQL query of the memory in use, in bytes, one series for each node."""


class MirrorSettings(Group):
    """The cache and the mirror.

    The defaults are right for every cluster. Change a value to find out whether the cache or an old mirror causes a
    wrong result.
    """

    equivalence_cache: bool = True
    """Whether Kindred keeps results for pods of one class. Without the cache, Kindred evaluates every request
    afresh."""
    equivalence_mode: Literal["controller", "spec"] = "spec"
    """Pods that share a class: with `spec`, all pods that are equal to the plugins; with `controller`, equal pods of
    one controller. With `controller`, pods without a controller are not cached."""

    stale_after: Annotated[float, Field(ge=1)] = 180.0
    """Seconds without data from the API server after which the mirror is stale. A quiet API server sends a bookmark
    about once a minute. Without one, Kindred renews the watch after 75 s."""


class PortSettings(Group):
    """The scheduler's port.

    With a verb that has an effect, every client that reaches this port can place pods. So the network decides which of
    these settings are needed.
    """

    listen: Listening = "127.0.0.1:8888"
    """HOST:PORT of the scheduler's port; port 0 for any free port. An IPv6 address is in brackets. The health port has
    the same host. With `bind`, `decide` or `preempt`, any host but the loopback needs `tlsDirectory`."""
    tls_directory: File = None
    """Directory with the keys of a Secret, PEM: `tls.crt`, the certificate of the server with its chain; `tls.key`, its
    private key without a password; `ca.crt`, the authorities that must have signed a client's certificate. Kindred
    reads them again when they change. Without `ca.crt` at the start, clients need no certificate. With
    `tlsClientNames`, and with an effect on any host but the loopback, Kindred does not start without it. Empty: no
    TLS."""
    allow_unauthenticated_effects: bool = False
    """Whether clients that need no certificate may have pods bound, chosen and evicted from other machines. Only for
    a network in which no other client reaches the port."""
    tls_client_names: Names = ()
    """Common names, or DNS names, of client certificates that may send requests. Empty: every certificate that the
    authorities signed."""


class ReplicaSettings(Group):
    """Deadlines and replicas.

    Other programs have the same values: kube-scheduler its `httpTimeout`, the kubelet its grace period, and the
    Deployment its number of replicas.
    """

    http_timeout: Annotated[float, Field(ge=0.05, le=375)] = 5.0
    """Seconds that kube-scheduler waits for a response: `httpTimeout` of the registration. Kindred uses 0.8 of it. In
    that time `bind` responds, and the evaluation of another request must begin. After it `filter` returns an `Error`,
    and `prioritize` an empty list, which adds nothing to any node."""
    grace_period: Annotated[float, Field(ge=1, le=3600)] = 20.0
    """Seconds from SIGTERM within which the process ends. Set it below the pod's terminationGracePeriodSeconds. In a
    pod without leader election, Kindred still accepts requests in the first quarter of it, while `/readyz` fails: until
    every client has the new endpoints."""

    leader_election: LeaseName = OFF
    """Name of a Lease in the namespace of the pod, whose holder alone is ready, binds and decides; `off` for no
    election. More than one replica needs it with the verb `bind`, or with `decide`. The variables POD_NAMESPACE and
    POD_NAME, if set, name the pod, which is marked when it takes over; by default its service account and its host
    name."""


class ObservingSettings(Group):
    """Health, explanations and logs.

    They are for those who look at Kindred: the kubelet, Prometheus, and people with a pending pod.
    """

    health_port: Port | None = None
    """Port, on the host of `listen`, that serves `/livez`, `/readyz`, `/version` and `/metrics` in plain HTTP. It is
    for clients without a certificate, such as the kubelet and Prometheus. Empty: only the scheduler's port serves
    them."""
    admin: OptionalListening = ""
    """HOST:PORT of the admin port, which explains and shows the contents of the mirror; port 0 for any free port.
    Any host but the loopback needs `adminTokenFile` or `adminReadTokenFile`. Empty: no admin port."""
    scheduler_config: File = None
    """KubeSchedulerConfiguration of the kube-scheduler whose pods are explained: its plugins, with their arguments and
    weights. Kindred reads it at the start. Pods of a profile that disables DynamicResources get no node for devices
    behind extended resources. Empty: unknown, so explanations judge every rule with its default arguments."""
    admin_token_file: File = None
    """File with the bearer token of the admin port. Kindred reads it again when it changes."""
    admin_read_token_file: File = None
    """File with a bearer token for callers of the admin port who are no admins: with `explainAccess: review`, they see
    the names that their own tokens allow. Kindred reads it again when it changes."""
    explain_access: Literal["all", "review"] = "all"
    """Callers of the admin port that see the names of pods: with `all`, every caller; with `review`, callers that may
    list the pods of the namespace. With `review`, the API server reviews the token in `Kindred-Caller-Token`. The
    bearer of `adminTokenFile` sees all names. docs/security.md has the rules."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged. `debug` has a line for every request, which costs more than most decisions; the
    others only for failed ones."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """Format of the log: `json`, an object a line; `text`, for people; `auto`, text on a terminal and JSON
    elsewhere."""


GROUPS: Final = (SchedulingSettings, UsageSettings, MirrorSettings, PortSettings, ReplicaSettings, ObservingSettings)
