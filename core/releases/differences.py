"""The table of differences between the supported releases, with sources, and the rules that follow from it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from core.releases.release import (
    MOUNT_OPTIONS,
    RELEASES,
    RESTART_ALL,
    USERS_OF_HOST,
    ClaimedResources,
    DeviceClassResources,
    ImageVolumes,
    MissingDriver,
    Release,
    Rules,
    by_release,
    gates_of,
)


class ReleaseRule(NamedTuple):
    """The rule of a release: its value, and the same rule in words."""

    value: Any  # of the type of the field of Rules; unread in a row without a rule
    text: str


_NO: Final = ReleaseRule(value=False, text="no")
_YES: Final = ReleaseRule(value=True, text="yes")


class Difference(msgspec.Struct, frozen=True):
    """A row of the table: a result that differs between releases, or that a feature gate changes.

    `rule` is the field of Rules, or empty if no code depends on the row. `rules` has one entry for each of RELEASES.
    With a `gate`, they apply while the gate is on. If it is off, or the release does not have it, `without_gate`
    applies. `source` is a path below pkg/scheduler/framework/plugins of k8s.io/kubernetes, unless it names another
    repository.
    """

    rule: str
    where: str
    what: str
    source: str
    rules: Sequence[ReleaseRule]
    gate: str = ""
    without_gate: ReleaseRule = _NO

    def at(self, release: Release, gates: Mapping[str, bool]) -> ReleaseRule:
        """Return the rule of a release with all its gates (see gates_of)."""
        if self.gate and not gates.get(self.gate, False):
            return self.without_gate
        return self.rules[RELEASES.index(release)]


def _difference(  # noqa: PLR0913  a row has so many columns
    rule: str,
    where: str,
    what: str,
    source: str,
    *,
    gate: str = "",
    without_gate: ReleaseRule = _NO,
    **begun: ReleaseRule,
) -> Difference:
    """Return a row. `begun` has each rule by the release in which it began, as `v1_36=...`. Before the first: no."""
    since = {str(RELEASES[0]): _NO} | {name.replace("_", "."): each for name, each in begun.items()}
    return Difference(rule, where, what, source, [*by_release(since).values()], gate, without_gate)


def _words(text: str) -> ReleaseRule:
    return ReleaseRule(None, text)


_RESOURCES: Final = "k8s.io/component-helpers resource/helpers.go"

DIFFERENCES: Final[Sequence[Difference]] = (
    _difference(
        "balance_of_change",
        "NodeResourcesBalancedAllocation",
        "the score",
        "noderesources/balanced_allocation.go (balancedResourceScorer)",
        v1_34=ReleaseRule(value=False, text="balance with the pod"),
        v1_36=ReleaseRule(value=True, text="50 + (50 + balance with the pod - balance without it) / 2"),
    ),
    _difference(
        "taint_named_in_reason",
        "TaintToleration",
        "the reason",
        "tainttoleration/taint_toleration.go (Filter)",
        v1_34=ReleaseRule(value=True, text="`node(s) had untolerated taint {KEY: VALUE}`"),
        v1_35=ReleaseRule(value=False, text="`node(s) had untolerated taint(s)`"),
    ),
    _difference(
        "numeric_tolerations",
        "TaintToleration, NodeUnschedulable, PodTopologySpread",
        "tolerations with the operators Lt and Gt match",
        "k8s.io/api core/v1/toleration.go (ToleratesTaint)",
        v1_34=_YES,
        gate="TaintTolerationComparisonOperators",
    ),
    _difference(
        "image_volumes",
        "ImageLocality",
        "image volumes",
        "imagelocality/image_locality.go (sumImageScores)",
        v1_34=ReleaseRule(ImageVolumes.IGNORED, "do not count"),
        v1_36=ReleaseRule(ImageVolumes.SCORED, "add to the sum of the scores"),
        v1_37=ReleaseRule(ImageVolumes.COUNTED, "add to the sum of the scores and to the number of images"),
    ),
    _difference(
        "declared_features",
        "NodeDeclaredFeatures",
        "a node has to declare these features where the pod needs them",
        "k8s.io/component-helpers nodedeclaredfeatures/features/registry.go",
        v1_34=ReleaseRule((), "none"),
        v1_35=ReleaseRule((RESTART_ALL,), f"`{RESTART_ALL}`"),
        v1_36=ReleaseRule((RESTART_ALL, USERS_OF_HOST), f"`{RESTART_ALL}`, `{USERS_OF_HOST}`"),
        v1_37=ReleaseRule(
            (RESTART_ALL, USERS_OF_HOST, MOUNT_OPTIONS), f"`{RESTART_ALL}`, `{USERS_OF_HOST}`, `{MOUNT_OPTIONS}`"
        ),
        gate="NodeDeclaredFeatures",
        without_gate=ReleaseRule((), "none"),
    ),
    _difference(
        "declared_features_named_in_reason",
        "NodeDeclaredFeatures",
        "the reason",
        "nodedeclaredfeatures/nodedeclaredfeatures.go (Filter)",
        v1_34=ReleaseRule(value=True, text="names the features that are missing"),
        v1_36=ReleaseRule(value=False, text="`node(s) didn't match Pod's required features`"),
        gate="NodeDeclaredFeatures",
        without_gate=ReleaseRule(value=False, text="none"),
    ),
    _difference(
        "aggregated_resize",
        "NodeResourcesFit, NodeResourcesBalancedAllocation",
        "a pod that is resized in place requests the maximum of spec, allocation and status",
        f"{_RESOURCES} (AggregateContainerRequests)",
        v1_34=ReleaseRule(value=False, text="of each container"),
        v1_37=ReleaseRule(value=True, text="of their sums over the containers"),
    ),
    _difference(
        "resize_status",
        "NodeResourcesFit, NodeResourcesBalancedAllocation",
        "the resources that the status of a pod's containers reports count",
        "k8s.io/kubernetes pkg/scheduler/framework/types.go (CalculateResource)",
        v1_34=_YES,
        gate="InPlacePodVerticalScaling",
    ),
    _difference(
        "pod_level_requests",
        "NodeResourcesFit, NodeResourcesBalancedAllocation",
        "requests of a whole pod replace the requests of its containers",
        f"{_RESOURCES} (PodRequests)",
        v1_34=_YES,
        gate="PodLevelResources",
    ),
    _difference(
        "pod_level_resize_status",
        "NodeResourcesFit, NodeResourcesBalancedAllocation",
        "the resources that the status of a pod reports for the pod as a whole count",
        f"{_RESOURCES} (PodRequests)",
        v1_34=_YES,
        gate="InPlacePodLevelResourcesVerticalScaling",
    ),
    _difference(
        "pod_level_defaults_last",
        "kube-apiserver",
        "makes requests of a whole pod from its limits after a LimitRange has given requests to the containers; for "
        "[manifests](explain.md#manifests)",
        "k8s.io/kubernetes pkg/api/pod/util.go (DefaultPodLevelResources)",
        v1_37=_YES,
        gate="PodLevelResourcesFixDefaulting",
    ),
    _difference(
        "claimed_resources",
        "NodeResourcesFit, NodeResourcesBalancedAllocation",
        "the resources of a node that the resource claims of a pod allocate count: `resources` in its status in 1.36, "
        "`mapping` and `overhead` since 1.37",
        f"{_RESOURCES} (AggregateContainerRequests)",
        v1_34=ReleaseRule(ClaimedResources.IGNORED, "no"),
        v1_36=ReleaseRule(ClaimedResources.LISTED, "yes"),
        v1_37=ReleaseRule(ClaimedResources.MAPPED, "yes"),
        gate="DRANodeAllocatableResources",
        without_gate=ReleaseRule(ClaimedResources.IGNORED, "no"),
    ),
    _difference(
        "device_class_resources",
        "NodeResourcesFit",
        "an extended resource that a DeviceClass stands for",
        "noderesources/fit.go (shouldDelegateResourceToDRA)",
        v1_34=ReleaseRule(DeviceClassResources.LEFT_UNLESS_LISTED, "left to DRA where the node does not list it"),
        v1_35=ReleaseRule(
            DeviceClassResources.LEFT_UNLESS_ALLOCATABLE, "left to DRA where the node has none allocatable"
        ),
        gate="DRAExtendedResource",
        without_gate=ReleaseRule(DeviceClassResources.CHECKED, "checked like any other"),
    ),
    _difference(
        "missing_driver",
        "NodeVolumeLimits",
        "a node without the CSI driver of a volume",
        "nodevolumelimits/csi.go (checkCSIDriverOnNode)",
        v1_34=ReleaseRule(MissingDriver.REJECTED, "refused if there is a CSIDriver"),
        v1_36=ReleaseRule(
            MissingDriver.REJECTED_IF_REQUESTED, "refused if the CSIDriver has `preventPodSchedulingIfMissing`"
        ),
        gate="VolumeLimitScaling",
        without_gate=ReleaseRule(MissingDriver.ALLOWED, "allowed"),
    ),
    _difference(
        "portworx_needs_annotation",
        "NodeVolumeLimits",
        "Portworx volumes count as volumes of its CSI driver",
        "nodevolumelimits/utils.go (isCSIMigrationOn)",
        v1_34=ReleaseRule(value=True, text="where the CSINode's annotation says so"),
        v1_36=ReleaseRule(value=False, text="on every node that has a CSINode"),
    ),
    _difference(
        "storage_capacity_scored",
        "VolumeBinding",
        "scores nodes by the capacity of their volumes, with weight 1",
        "volumebinding/volume_binding.go (Score)",
        v1_34=_YES,
        gate="StorageCapacityScoring",
    ),
    _difference(
        "match_label_keys",
        "PodTopologySpread",
        "`matchLabelKeys` of a constraint add labels of the pod to its selector",
        "podtopologyspread/common.go (filterTopologySpreadConstraints)",
        v1_34=_YES,
        gate="MatchLabelKeysInPodTopologySpread",
    ),
    _difference(
        "volume_attributes_classes",
        "VolumeBinding",
        "a claim that waits for its pod may have a `volumeAttributesClassName`; without the gate it is an error",
        "k8s.io/component-helpers storage/volume/pv_helpers.go (FindMatchingVolume)",
        v1_34=_YES,
        gate="VolumeAttributesClass",
    ),
    _difference(
        "budgets_stop_at_violation",
        "DefaultPreemption",
        "a victim takes from its PodDisruptionBudgets",
        "k8s.io/kubernetes pkg/scheduler/framework/preemption",
        v1_34=ReleaseRule(value=False, text="one from each"),
        v1_37=ReleaseRule(value=True, text="one from each until one is violated"),
    ),
    _difference(
        "node_name_first",
        "NodeName, NodeUnschedulable",
        "the order, which decides the reason of a node",
        "k8s.io/kubernetes pkg/scheduler/apis/config/v1/default_plugins.go",
        v1_34=ReleaseRule(value=False, text="NodeUnschedulable first"),
        v1_37=ReleaseRule(value=True, text="NodeName first"),
    ),
    _difference(
        "wakes_by_resize",
        "NodeResourcesFit",
        "a refused pod is tried again after a pod on a node, or the pod itself, requests less by a resize in place",
        "noderesources/fit.go (EventsToRegister)",
        v1_34=_YES,
        gate="InPlacePodVerticalScaling",
    ),
    _difference(
        "wakes_by_device_class",
        "NodeResourcesFit",
        "a refused pod is tried again after a DeviceClass was added or updated",
        "noderesources/fit.go (EventsToRegister)",
        v1_35=_YES,
        gate="DRAExtendedResource",
    ),
    _difference(
        "wakes_by_own_labels",
        "InterPodAffinity",
        "a refused pod is tried again after its own labels changed",
        "interpodaffinity/plugin.go (EventsToRegister, and its queueing hint)",
        v1_36=_YES,
    ),
    _difference(
        "wakes_by_end_of_repelling_pod",
        "InterPodAffinity",
        "a refused pod is tried again after the end of a pod whose anti-affinity refuses it",
        "interpodaffinity/plugin.go (isSchedulableAfterPodChange, isSchedulableAfterAssignedPodChange)",
        v1_36=_YES,
    ),
    _difference(
        "group_cycles",
        "GangScheduling",
        "the members of a PodGroup are scheduled in one cycle, and none is bound before its end",
        "k8s.io/kubernetes pkg/scheduler/schedule_one_podgroup.go",
        v1_36=_YES,
        gate="GenericWorkload",
    ),
    _difference(
        "groups_queued",
        "GangScheduling",
        "a PodGroup is queued as one: a gated member holds the others, all members need one priority, and the backoff "
        "grows with the members",
        "k8s.io/kubernetes pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins)",
        v1_37=_YES,
    ),
    _difference(
        "",
        "NodeName",
        "its PreFilter narrows the nodes to that of spec.nodeName; Filter refuses the others all the same",
        "nodename/node_name.go (PreFilter)",
        v1_37=_YES,
    ),
    _difference(
        "label_errors_in_bytes",
        "all plugins with selectors",
        "the message for an invalid label",
        "k8s.io/apimachinery pkg/api/validate/content/kube.go",
        v1_34=ReleaseRule(value=False, text="`a qualified name ...`, `no more than 63 characters`"),
        v1_35=ReleaseRule(value=True, text="`a valid label key ...`, `no more than 63 bytes`"),
    ),
    _difference(
        "",
        "InterPodAffinity",
        "a namespaceSelector of only negative requirements (kubernetes#141526)",
        "interpodaffinity/plugin.go (mergeAffinityTermNamespacesIfNotEmpty)",
        v1_34=_words("matches every namespace, which is a bug: Kindred answers as 1.37 does"),
        v1_37=_words("matches as it says"),
    ),
    _difference(
        "",
        "DynamicResources",
        "scores; with decide Kindred does, and else kube-scheduler's own plugin alone",
        "k8s.io/kubernetes pkg/scheduler/apis/config/v1/default_plugins.go",
        v1_35=_words("with weight 2"),
    ),
    _difference(
        "",
        "GangScheduling",
        "the field of a pod that kube-scheduler schedules with its group; Kindred reads both",
        "k8s.io/api core/v1/types.go (PodSpec)",
        v1_34=_words("none"),
        v1_35=_words("`spec.workloadRef`"),
        v1_36=_words("`spec.schedulingGroup`"),
    ),
    _difference(
        "",
        "kube-scheduler",
        "asks about a pod on a node, if the kubelet defers its resize in place: Kindred returns its own node or none",
        "k8s.io/kubernetes pkg/scheduler/eventhandlers.go (updatePod)",
        v1_37=_words("with the feature gate InPlacePodVerticalScalingSchedulerPreemption, which is off by default"),
    ),
    _difference(
        "",
        "kube-scheduler",
        "further plugins, which Kindred has no part in",
        "k8s.io/kubernetes pkg/scheduler/framework/plugins/names/names.go",
        v1_34=_words("none"),
        v1_35=_words("GangScheduling"),
        v1_36=_words("GangScheduling, TopologyPlacementGenerator, PodGroupPodsCount"),
        v1_37=_words("GangScheduling, TopologyPlacementGenerator, PodGroupPodsCount, DeferredPodScheduling"),
    ),
)
"""All differences between the supported releases, in the order of docs/versions.md."""


def rules_of(release: Release, gates: Mapping[str, bool] | None = None) -> Rules:
    """Return the rules of a release, with its default feature gates or with those in `gates`.

    Raises FeatureGateError if the release does not have a gate, or has locked it to the other value.
    """
    settled = gates_of(release, gates)
    values = {row.rule: row.at(release, settled).value for row in DIFFERENCES if row.rule}
    return Rules(release=release, gates=settled, **values)
