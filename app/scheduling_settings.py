"""The settings of filters, scores, bindings, preemption and decisions."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.setting_types import AUTO, Gates, Json, KubernetesRelease, Names, Profile
from core.framework.interface import MAX_NODE_SCORE
from core.scheduling_cycle import ADAPTIVE, ALL


class SchedulingSettings(BaseModel):
    """The rules that apply, and the verbs that Kindred serves. A part of Settings."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

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
    """Nodes that this scheduler may use, as a rule in the format of `PUT /debug/partition`. Empty: all nodes."""
    bypass_namespaces: Names = ()
    """Namespaces whose pods Kindred does not judge: every node fits, and every score is 0."""
    bypass_schedulers: Names = ()
    """Schedulers whose pods Kindred does not judge, by `spec.schedulerName`."""
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
