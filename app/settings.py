"""Settings: from the environment (KINDRED_*), overridden by flags, frozen, checked at start."""

from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from core.framework.interface import MAX_NODE_SCORE
from core.node_sample import ADAPTIVE, ALL
from core.plugins.interpodaffinity.plugin import MAX_HARD_POD_AFFINITY_WEIGHT


class SettingsError(ValueError):
    """A setting with a value that is not allowed; the message names the variable, the value and the rule."""


class Settings(BaseSettings):
    """What can be set. Each field is the variable KINDRED_<FIELD>.

    None is called PORT or begins with SERVICE_: beside a Service called kindred, Kubernetes sets KINDRED_PORT and
    KINDRED_SERVICE_* in every container of the namespace, to values of its own.
    """

    model_config = SettingsConfigDict(env_prefix="KINDRED_", frozen=True, extra="forbid")

    listen_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on."""
    listen_port: Annotated[int, Field(ge=0, le=65535)] = 8888
    """Port to listen on; 0 takes a free one."""
    max_score: Annotated[int, Field(ge=1, le=MAX_NODE_SCORE)] = MAX_NODE_SCORE
    """Highest score that `prioritize` answers. kube-scheduler multiplies an extender's score by ten: 10 is its own
    range for extenders, and 20 with weight 1 weighs as the in-tree InterPodAffinity does."""
    percentage_of_nodes_to_score: Annotated[int, Field(ge=ADAPTIVE, le=ALL)] = ALL
    """Share of the cluster's nodes that `filter` passes on at most, the best first; 0 follows the cluster's size. As
    kube-scheduler's own, which has to be 100 where a hard rule is left to an extender, and samples before it asks."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 * 1024 * 1024
    """Largest request body, in bytes. 5,000 whole Node objects are about 32 MB."""
    profile: str = "affinity"
    """Plugins that answer: `affinity` (InterPodAffinity alone), `full` (upstream's default ones but DynamicResources),
    or a list of `[filter:|score:]NAME[=WEIGHT]`, separated by commas."""
    plugin_args: str = ""
    """Arguments of plugins, as JSON: plugin -> upstream's *Args. Empty: upstream's defaults."""
    hard_pod_affinity_weight: Annotated[int, Field(ge=0, le=MAX_HARD_POD_AFFINITY_WEIGHT)] = 1
    """Score of a required affinity term of an existing pod (InterPodAffinityArgs hardPodAffinityWeight)."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Score only pods that have preferences of their own (InterPodAffinityArgs, the same name)."""
    equivalence_cache: bool = True
    """Whether results are kept for pods of one class. Off, every question is evaluated afresh."""
    equivalence_mode: Literal["controller", "spec"] = "controller"
    """Which pods are of one class: those of one controller that look alike to the plugins, or all that look alike."""
    equivalence_max_bytes: Annotated[int, Field(ge=64 * 1024)] = 128 * 1024 * 1024
    """Bytes that the results may take, about; the classes that were not asked about for longest go first."""
    equivalence_shadow_share: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Share of the questions whose answers from the cache are computed again and compared."""
    partition: str = ""
    """Nodes that this scheduler may use, as JSON; the rule of `PUT /debug/partition`. Empty: all."""
    stale_after: Annotated[float, Field(ge=1)] = 180.0
    """Seconds after which the mirror is stale for a resource of which the API server has shown nothing. A server with
    nothing to tell sends a bookmark about once a minute, and without one the watch is renewed after 75 s."""
    stale_policy: Literal["fail", "answer"] = "fail"
    """What questions get while the mirror is stale: an `Error`, or an answer with a header that says so."""
    assumed_pod_ttl: Annotated[float, Field(ge=1)] = 300.0
    """Seconds after the end of its binding within which the watch must show an assumed pod, or it is dropped. More than
    `stale_after`: as long as questions are answered though the watch is late, a pod that was bound has to count."""
    bind_timeout: Annotated[float, Field(ge=0.1, le=300)] = 4.0
    """Seconds within which `bind` answers; below the httpTimeout that kube-scheduler has for the extender (5 s)."""
    preempt: Literal["off", "verb", "evict"] = "off"
    """Whether `preempt` is answered (`verb`), and pods that Kindred alone keeps off every node have others evicted, too
    (`evict`), as kube-scheduler asks nobody about those. For both, PodDisruptionBudgets are watched, too."""
    grace_period: Annotated[float, Field(ge=1, le=3600)] = 20.0
    """Seconds from SIGTERM within which the process has ended; below the pod's terminationGracePeriodSeconds."""
    node_metrics: bool = True
    """Whether `/metrics` has the resource figures of every node: 12 lines a node for three resources."""
    admin_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address of the admin port."""
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of `/debug`, which shows what the mirror holds and changes the partition; none when not set."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe message that is logged."""


def load_settings(**flags: object) -> Settings:
    """Read the settings; flags that are not None win over the environment. Raises SettingsError."""
    try:
        return Settings(**{name: value for name, value in flags.items() if value is not None})  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        problems = [f"{_variable(problem['loc'])}={problem['input']!r}: {problem['msg']}" for problem in error.errors()]
        raise SettingsError("; ".join(problems)) from None


def _variable(location: tuple[int | str, ...]) -> str:
    return "KINDRED_" + "_".join(str(part) for part in location).upper()
