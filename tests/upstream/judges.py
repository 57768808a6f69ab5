"""Who judges each field of a Pod, and each plugin of kube-scheduler's default configuration, with `decide`.

A test holds the table against the recorded fields and plugins of all releases. It fails for a field or plugin without a
row, and for a row that no release has. docs/judged.md shows the table. No request reads it.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple


class Judge(Enum):
    """Who applies a rule to the pods of the scheduler profiles that decide."""

    KINDRED = "Kindred"
    """Kindred."""
    KEPT = "kube-scheduler"
    """A plugin that the decide profile keeps."""
    CLAIMS = "claims scheduler"
    """A plugin that only the profile of `decideClaimsScheduler` has. Kindred sends the pod there."""
    GROUPS = "groups scheduler"
    """kube-scheduler, in the profile of `decideGroupsScheduler`, where all in-tree plugins judge a member."""
    NO_EFFECT = "no effect"
    """The node of a pod does not depend on it."""
    NOBODY = "no component"
    """No component judges it, although the node can depend on it. `note` has the consequence."""
    PARTS = "its fields"
    """The fields of the value have rows of their own."""
    WHOLE = "the whole value"
    """The field that has the value names the judge. The rows are there so that a new part is noticed."""


class Row(NamedTuple):
    """Who judges some fields of a type, or a plugin at some extension points.

    `source` is a path in k8s.io/kubernetes, below pkg/scheduler/framework/plugins unless it is longer.
    """

    of: str
    """The type in the API, or the plugin."""
    names: tuple[str, ...]
    """The fields, or the extension points."""
    judge: Judge
    by: tuple[str, ...]
    """For fields that are judged: the plugins, or modules of Kindred. A plugin is judged by the plugin of its name."""
    source: str
    note: str = ""


def _row(of: str, names: str, judge: Judge, source: str, by: str = "", *, note: str = "") -> Row:  # noqa: PLR0913  columns
    return Row(of, tuple(names.split()), judge, tuple(by.split()), source, note)


_KINDRED: Final = Judge.KINDRED
_PARTS: Final = Judge.PARTS
_NONE: Final = Judge.NO_EFFECT
_TYPES: Final = "k8s.io/api core/v1/types.go"
_KUBELET: Final = "pkg/kubelet: only the kubelet and the container runtime read it"
_META: Final = "k8s.io/apimachinery pkg/apis/meta/v1/types.go"
_AFFINITY: Final = "interpodaffinity/plugin.go"
_SPREAD: Final = "podtopologyspread/common.go"
_NODE_AFFINITY: Final = "k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go"
_PORTS: Final = "nodeports/node_ports.go"
_REQUESTS: Final = "k8s.io/component-helpers resource/helpers.go"
_FEATURES: Final = "k8s.io/component-helpers nodedeclaredfeatures/features/registry.go"
_IMAGES: Final = "imagelocality/image_locality.go"
_CONFLICTS: Final = "volumerestrictions/volume_restrictions.go"
_LIMITS: Final = "nodevolumelimits/csi.go"
_BINDING: Final = "volumebinding/volume_binding.go"
_DEVICES: Final = "dynamicresources/dynamicresources.go"
_MAPPED: Final = "dynamicresources/nodeallocatabledynamicresources.go"
_TOLERATIONS: Final = "k8s.io/component-helpers scheduling/corev1/helpers.go"
_PREEMPTION: Final = "pkg/scheduler/framework/preemption"
_ONE: Final = "pkg/scheduler/schedule_one.go"
_GROUP_CYCLE: Final = "pkg/scheduler/schedule_one_podgroup.go"

_FIT: Final = "NodeResourcesFit NodeResourcesBalancedAllocation"
_TERMS: Final = "InterPodAffinity PodTopologySpread"

FIELDS: Final[Sequence[Row]] = (
    _row("Pod", "apiVersion kind", _NONE, f"{_META}: the type of the object"),
    _row("Pod", "metadata spec status", _PARTS, _TYPES),
    _row("ObjectMeta", "labels namespace", _KINDRED, f"{_AFFINITY}, {_SPREAD}", _TERMS),
    _row("ObjectMeta", "name uid", _KINDRED, f"{_BINDING} (claims of ephemeral volumes)", "VolumeBinding"),
    _row("ObjectMeta", "deletionTimestamp", _KINDRED, _SPREAD, "PodTopologySpread core/preemption"),
    _row("ObjectMeta", "ownerReferences", _PARTS, _META),
    _row(
        "ObjectMeta",
        "annotations creationTimestamp deletionGracePeriodSeconds finalizers generateName generation managedFields "
        "resourceVersion selfLink",
        _NONE,
        f"{_META}: no plugin reads it of a pod",
    ),
    _row(
        "OwnerReference",
        "apiVersion controller kind name",
        _KINDRED,
        "helper/spread.go (DefaultSelector)",
        "PodTopologySpread",
    ),
    _row("OwnerReference", "blockOwnerDeletion uid", _NONE, f"{_META}: the garbage collector reads it"),
    _row("PodSpec", "affinity containers ephemeralContainers initContainers", _PARTS, _TYPES),
    _row("PodSpec", "tolerations topologySpreadConstraints volumes", _PARTS, _TYPES),
    _row("PodSpec", "hostNetwork hostUsers", _KINDRED, _FEATURES, "NodeDeclaredFeatures"),
    _row("PodSpec", "nodeName", _KINDRED, "nodename/node_name.go", "NodeName"),
    _row("PodSpec", "nodeSelector", _KINDRED, _NODE_AFFINITY, "NodeAffinity"),
    _row("PodSpec", "overhead", _KINDRED, f"{_REQUESTS} (PodRequests)", _FIT),
    _row("PodSpec", "resources", _PARTS, f"{_REQUESTS} (PodRequests, gate PodLevelResources)"),
    _row("PodSpec", "preemptionPolicy priority", _KINDRED, _PREEMPTION, "core/preemption"),
    _row("PodSpec", "schedulingGates", Judge.KEPT, "schedulinggates/scheduling_gates.go", "SchedulingGates"),
    _row("PodSpec", "resourceClaims", Judge.CLAIMS, _DEVICES, "DynamicResources", note="also for a PodGroup's claims"),
    _row(
        "PodSpec",
        "schedulingGroup",
        Judge.GROUPS,
        _GROUP_CYCLE,
        "GangScheduling",
        note="all in-tree filters judge the member, too. Kindred chooses among the nodes that pass",
    ),
    _row(
        "PodSpec",
        "workloadRef",
        Judge.GROUPS,
        "gangscheduling/gangscheduling.go (1.35)",
        "GangScheduling",
        note="as schedulingGroup",
    ),
    _row(
        "PodSpec",
        "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC "
        "hostPID hostname hostnameOverride imagePullSecrets readinessGates restartPolicy securityContext "
        "setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds",
        _NONE,
        _KUBELET,
    ),
    _row("PodSpec", "os", _NONE, "pkg/kubelet/lifecycle/predicate.go: no plugin reads it; name the OS in nodeSelector"),
    _row("PodSpec", "evictionResponders", _NONE, f"{_TYPES}: evictions, not placement"),
    _row("PodSpec", "priorityClassName", _NONE, "plugin/pkg/admission/priority: becomes spec.priority"),
    _row(
        "PodSpec",
        "runtimeClassName",
        _NONE,
        "plugin/pkg/admission/runtimeclass: becomes overhead, nodeSelector and tolerations",
    ),
    _row("PodSpec", "serviceAccount serviceAccountName", _NONE, "plugin/pkg/admission/serviceaccount: credentials"),
    _row("PodSpec", "schedulerName", _NONE, f"{_ONE} (frameworkForPod): it names the profile"),
    _row("Affinity", "nodeAffinity podAffinity podAntiAffinity", _PARTS, _TYPES),
    *(
        _row(each, f"{side}DuringSchedulingIgnoredDuringExecution", _PARTS, _TYPES)
        for each in ("NodeAffinity", "PodAffinity", "PodAntiAffinity")
        for side in ("required", "preferred")
    ),
    _row("PodAffinityTerm", "labelSelector namespaceSelector", _PARTS, _TYPES),
    _row("PodAffinityTerm", "namespaces topologyKey", _KINDRED, _AFFINITY, "InterPodAffinity"),
    _row(
        "PodAffinityTerm",
        "matchLabelKeys mismatchLabelKeys",
        _NONE,
        "pkg/registry/core/pod/strategy.go: merged into labelSelector when the pod is created",
    ),
    _row("WeightedPodAffinityTerm", "weight", _KINDRED, "interpodaffinity/scoring.go", "InterPodAffinity"),
    _row("WeightedPodAffinityTerm", "podAffinityTerm", _PARTS, _TYPES),
    _row("LabelSelector", "matchExpressions", _PARTS, _META),
    _row("LabelSelector", "matchLabels", _KINDRED, f"{_AFFINITY}, {_SPREAD}", _TERMS),
    _row("LabelSelectorRequirement", "key operator values", _KINDRED, f"{_AFFINITY}, {_SPREAD}", _TERMS),
    _row("PreferredSchedulingTerm", "weight", _KINDRED, _NODE_AFFINITY, "NodeAffinity"),
    _row("PreferredSchedulingTerm", "preference", _PARTS, _TYPES),
    _row("NodeSelector", "nodeSelectorTerms", _PARTS, _TYPES),
    _row("NodeSelectorTerm", "matchExpressions matchFields", _PARTS, _TYPES),
    _row("NodeSelectorRequirement", "key operator values", _KINDRED, _NODE_AFFINITY, "NodeAffinity"),
    _row(
        "Toleration",
        "effect key operator value",
        _KINDRED,
        _TOLERATIONS,
        "TaintToleration NodeUnschedulable PodTopologySpread",
    ),
    _row("Toleration", "tolerationSeconds", _NONE, "pkg/controller/tainteviction: how long the pod stays"),
    _row("TopologySpreadConstraint", "labelSelector", _PARTS, _TYPES),
    _row(
        "TopologySpreadConstraint",
        "matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable",
        _KINDRED,
        _SPREAD,
        "PodTopologySpread",
    ),
    _row("Container", "image", _KINDRED, _IMAGES, "ImageLocality"),
    _row("Container", "name", _KINDRED, f"{_REQUESTS} (the status of the container)", _FIT),
    _row("Container", "restartPolicy", _KINDRED, f"{_REQUESTS}, {_PORTS} (sidecars)", f"{_FIT} NodePorts"),
    _row("Container", "ports resources restartPolicyRules volumeMounts", _PARTS, _TYPES),
    *(
        _row(
            each,
            "args command env envFrom imagePullPolicy lifecycle livenessProbe readinessProbe resizePolicy "
            "securityContext startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
            "volumeDevices workingDir",
            _NONE,
            _KUBELET,
        )
        for each in ("Container", "EphemeralContainer")
    ),
    _row("EphemeralContainer", "volumeMounts", _PARTS, _TYPES),
    _row(
        "EphemeralContainer",
        "image name ports resources restartPolicy restartPolicyRules targetContainerName",
        _NONE,
        f"{_TYPES}: added to a running pod, and without resources or ports",
    ),
    _row("ContainerPort", "hostIP hostPort protocol", _KINDRED, _PORTS, "NodePorts"),
    _row("ContainerPort", "containerPort name", _NONE, f"{_PORTS}: only ports of the host count"),
    _row(
        "ResourceRequirements",
        "requests",
        _KINDRED,
        f"{_REQUESTS}, noderesources/fit.go",
        _FIT,
        note="a resource that a DeviceClass stands for is left to DynamicResources only for a scheduler that has it",
    ),
    _row(
        "ResourceRequirements",
        "limits",
        _KINDRED,
        "sigs.k8s.io/scheduler-plugins pkg/trimaran: no default plugin reads it",
        "TargetLoadPacking LoadVariationRiskBalancing CheckNodeMemoryPressure",
    ),
    _row("ResourceRequirements", "claims", Judge.CLAIMS, _MAPPED, "DynamicResources"),
    _row("ContainerRestartRule", "action", _KINDRED, _FEATURES, "NodeDeclaredFeatures"),
    _row("ContainerRestartRule", "exitCodes", _NONE, _KUBELET),
    _row("VolumeMount", "bindMountOptions", _KINDRED, _FEATURES, "NodeDeclaredFeatures"),
    _row(
        "VolumeMount", "mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr", _NONE, _KUBELET
    ),
    _row("Volume", "name", _KINDRED, f"{_BINDING} (claims of ephemeral volumes)", "VolumeBinding"),
    _row("Volume", "persistentVolumeClaim ephemeral image", _PARTS, _TYPES),
    _row("Volume", "gcePersistentDisk awsElasticBlockStore azureDisk", _PARTS, _TYPES),
    _row("Volume", "cinder iscsi portworxVolume rbd", _PARTS, _TYPES),
    _row(
        "Volume",
        "azureFile cephfs configMap csi downwardAPI emptyDir fc flexVolume flocker gitRepo glusterfs hostPath nfs "
        "photonPersistentDisk projected quobyte scaleIO secret storageos vsphereVolume",
        _NONE,
        f"{_LIMITS}, {_CONFLICTS}: they count no such volume of a pod's spec",
    ),
    _row(
        "PersistentVolumeClaimVolumeSource",
        "claimName",
        _KINDRED,
        f"{_BINDING}, {_LIMITS}, {_CONFLICTS}, volumezone/volume_zone.go",
        "VolumeBinding VolumeZone VolumeRestrictions NodeVolumeLimits",
        note="a claim that is not bound goes to the claims scheduler",
    ),
    _row("PersistentVolumeClaimVolumeSource", "readOnly", _NONE, _KUBELET),
    _row("EphemeralVolumeSource", "volumeClaimTemplate", _NONE, "pkg/controller/volume/ephemeral: the claim counts"),
    _row("ImageVolumeSource", "reference", _KINDRED, _IMAGES, "ImageLocality"),
    _row("ImageVolumeSource", "pullPolicy", _NONE, _KUBELET),
    _row(
        "GCEPersistentDiskVolumeSource",
        "pdName readOnly",
        _KINDRED,
        f"{_CONFLICTS}, {_LIMITS}",
        "VolumeRestrictions NodeVolumeLimits",
    ),
    _row("GCEPersistentDiskVolumeSource", "fsType partition", _NONE, _KUBELET),
    _row(
        "AWSElasticBlockStoreVolumeSource",
        "volumeID",
        _KINDRED,
        f"{_CONFLICTS}, {_LIMITS}",
        "VolumeRestrictions NodeVolumeLimits",
    ),
    _row("AWSElasticBlockStoreVolumeSource", "fsType partition readOnly", _NONE, _KUBELET),
    _row("AzureDiskVolumeSource", "diskURI kind", _KINDRED, _LIMITS, "NodeVolumeLimits"),
    _row("AzureDiskVolumeSource", "cachingMode diskName fsType readOnly", _NONE, _KUBELET),
    _row("CinderVolumeSource", "volumeID", _KINDRED, _LIMITS, "NodeVolumeLimits"),
    _row("CinderVolumeSource", "fsType readOnly secretRef", _NONE, _KUBELET),
    _row("PortworxVolumeSource", "volumeID", _KINDRED, _LIMITS, "NodeVolumeLimits"),
    _row("PortworxVolumeSource", "fsType readOnly", _NONE, _KUBELET),
    _row("ISCSIVolumeSource", "iqn readOnly", _KINDRED, _CONFLICTS, "VolumeRestrictions"),
    _row(
        "ISCSIVolumeSource",
        "chapAuthDiscovery chapAuthSession fsType initiatorName iscsiInterface lun portals secretRef targetPortal",
        _NONE,
        _KUBELET,
    ),
    _row("RBDVolumeSource", "image monitors pool readOnly", _KINDRED, _CONFLICTS, "VolumeRestrictions"),
    _row("RBDVolumeSource", "fsType keyring secretRef user", _NONE, _KUBELET),
    _row("PodSchedulingGate", "name", Judge.WHOLE, "schedulinggates/scheduling_gates.go"),
    _row("PodResourceClaim", "name resourceClaimName resourceClaimTemplateName", Judge.WHOLE, _DEVICES),
    _row("ResourceClaim", "name request", Judge.WHOLE, _MAPPED),
    _row("PodSchedulingGroup", "podGroupName", Judge.WHOLE, _GROUP_CYCLE),
    _row(
        "WorkloadReference", "name podGroup podGroupReplicaKey", Judge.WHOLE, "gangscheduling/gangscheduling.go (1.35)"
    ),
    _row("PodStatus", "conditions containerStatuses initContainerStatuses resources", _PARTS, _TYPES),
    _row("PodStatus", "allocatedResources", _KINDRED, f"{_REQUESTS} (PodRequests)", _FIT),
    _row(
        "PodStatus",
        "nominatedNodeName",
        _KINDRED,
        "pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods)",
        "core/scheduling_cycle.py",
    ),
    _row(
        "PodStatus", "phase", _KINDRED, "pkg/scheduler/eventhandlers.go: a pod that ended takes nothing", "core/mirror"
    ),
    _row("PodStatus", "startTime", _KINDRED, "pkg/scheduler/util/utils.go (GetPodStartTime)", "core/preemption"),
    _row(
        "PodStatus",
        "qosClass",
        _KINDRED,
        "pkg/kubelet/eviction: no default plugin reads it, the taint of the node counts",
        "CheckNodeMemoryPressure",
    ),
    _row("PodStatus", "resourceClaimStatuses extendedResourceClaimStatus", Judge.CLAIMS, _DEVICES, "DynamicResources"),
    _row(
        "PodStatus",
        "nodeAllocatableResourceClaimStatuses",
        _KINDRED,
        f"{_REQUESTS} (AggregateContainerRequests), {_MAPPED} (PreBind)",
        _FIT,
        note="until the binding, Kindred counts the pod by its spec only, and kube-scheduler also by its claims",
    ),
    _row(
        "PodStatus",
        "ephemeralContainerStatuses hostIP hostIPs message observedGeneration podIP podIPs reason resize volumeHealth",
        _NONE,
        f"{_TYPES}: the kubelet reports it, and no plugin reads it",
    ),
    _row("PodResourceClaimStatus", "name resourceClaimName", Judge.WHOLE, _DEVICES),
    _row("PodExtendedResourceClaimStatus", "requestMappings resourceClaimName", Judge.WHOLE, _DEVICES),
    _row("ContainerExtendedResourceRequest", "containerName requestName resourceName", Judge.WHOLE, _DEVICES),
    _row(
        "NodeAllocatableResourceClaimStatus",
        "containers mapping overhead resourceClaimName resources",
        Judge.WHOLE,
        _MAPPED,
    ),
    _row("NodeAllocatableMappedResources", "name quantity", Judge.WHOLE, _MAPPED),
    _row("NodeAllocatableOverheadResources", "name perContainer perPod", Judge.WHOLE, _MAPPED),
    _row("PodCondition", "reason status type", _KINDRED, f"{_REQUESTS}, {_PREEMPTION}", f"{_FIT} core/preemption"),
    _row("PodCondition", "lastProbeTime lastTransitionTime message observedGeneration", _NONE, f"{_TYPES}: for people"),
    _row("ContainerStatus", "allocatedResources name", _KINDRED, f"{_REQUESTS} (PodRequests)", _FIT),
    _row("ContainerStatus", "resources", _PARTS, _TYPES),
    _row(
        "ContainerStatus",
        "allocatedResourcesStatus containerID image imageID lastState ready restartCount started state stopSignal user "
        "volumeMounts",
        _NONE,
        f"{_TYPES}: the kubelet reports it, and no plugin reads it",
    ),
)
"""Every field of a Pod that a known release has, but for those in values of no effect."""

_FILTERS: Final = "preFilter filter"
_ALL_FOUR: Final = "preFilter filter preScore score"
_DEFERRED: Final = (
    "with InPlacePodVerticalScalingSchedulerPreemption, 1.37 skips it for a pod whose resize is deferred, and Kindred "
    "does not"
)
_PLACEMENTS: Final = (
    "runs with TopologyAwareWorkloadScheduling only. kube-scheduler asks once for each placement of a group with "
    "schedulingConstraints, and may bind an earlier one. Kindred answers an `Error` for such a group"
)

PLUGINS: Final[Sequence[Row]] = (
    _row("SchedulingGates", "preEnqueue", Judge.KEPT, "schedulinggates/scheduling_gates.go"),
    _row("PrioritySort", "queueSort", Judge.KEPT, "queuesort/priority_sort.go"),
    _row("DefaultBinder", "bind", Judge.KEPT, "defaultbinder/default_binder.go"),
    _row(
        "DefaultPreemption",
        "preEnqueue postFilter",
        Judge.KEPT,
        "defaultpreemption/default_preemption.go",
        note="it finds no victim without filters; with `preempt: evict` Kindred does. In `kindred-groups` it has all "
        "filters",
    ),
    _row(
        "DefaultPreemption",
        "podGroupPostFilter",
        Judge.GROUPS,
        "defaultpreemption/default_preemption.go",
        note="runs with GenericWorkload only, for a scheduling group as a whole",
    ),
    _row("NodeUnschedulable", _FILTERS, _KINDRED, "nodeunschedulable/node_unschedulable.go", note=_DEFERRED),
    _row("NodeName", _FILTERS, _KINDRED, "nodename/node_name.go"),
    _row("TaintToleration", _ALL_FOUR, _KINDRED, "tainttoleration/taint_toleration.go", note=_DEFERRED),
    _row("NodeAffinity", _ALL_FOUR, _KINDRED, "nodeaffinity/node_affinity.go"),
    _row("NodePorts", _FILTERS, _KINDRED, _PORTS),
    _row("NodeResourcesFit", _ALL_FOUR, _KINDRED, "noderesources/fit.go"),
    _row("NodeResourcesFit", "placementScore", Judge.NOBODY, "noderesources/fit.go", note=_PLACEMENTS),
    _row("NodeResourcesBalancedAllocation", "preScore score", _KINDRED, "noderesources/balanced_allocation.go"),
    _row("PodTopologySpread", _ALL_FOUR, _KINDRED, "podtopologyspread/plugin.go"),
    _row("InterPodAffinity", _ALL_FOUR, _KINDRED, _AFFINITY),
    _row("ImageLocality", "score", _KINDRED, _IMAGES),
    _row("NodeDeclaredFeatures", _FILTERS, _KINDRED, "nodedeclaredfeatures/nodedeclaredfeatures.go"),
    _row("VolumeRestrictions", _FILTERS, _KINDRED, _CONFLICTS),
    _row("NodeVolumeLimits", _FILTERS, _KINDRED, _LIMITS),
    _row("VolumeZone", _FILTERS, _KINDRED, "volumezone/volume_zone.go"),
    _row("VolumeBinding", _ALL_FOUR, _KINDRED, _BINDING),
    _row("VolumeBinding", "reserve preBind", Judge.CLAIMS, _BINDING, note="for claims that are not bound yet"),
    _row(
        "DynamicResources",
        "preEnqueue preFilter filter postFilter score reserve preBind",
        Judge.CLAIMS,
        _DEVICES,
        note="for spec.resourceClaims, and for resources that a DeviceClass stands for",
    ),
    _row("DynamicResources", "podGroupPostFilter", Judge.GROUPS, _DEVICES, note="for claims of a PodGroup"),
    _row(
        "GangScheduling",
        "preEnqueue reserve permit",
        Judge.GROUPS,
        "gangscheduling/gangscheduling.go",
        note="it counts the members that kube-scheduler has assumed",
    ),
    _row(
        "TopologyPlacementGenerator",
        "placementGenerate",
        Judge.NOBODY,
        "topologyaware/topology_placement.go",
        note=_PLACEMENTS,
    ),
    _row(
        "PodGroupPodsCount",
        "placementScore",
        Judge.NOBODY,
        "podgrouppodscount/podgroup_pods_count.go",
        note=_PLACEMENTS,
    ),
    _row(
        "DeferredPodScheduling",
        "preFilter filter permit",
        Judge.NOBODY,
        "deferredpodscheduling/deferred_pod_scheduling.go",
        note="off in the shipped profiles, because an older kube-scheduler does not start with it. Kindred answers a "
        "bound pod whose resize waits with its own node or with none",
    ),
)
"""Every plugin of a known release's default configuration, at every extension point that it has."""


def each(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield each field as TYPE.FIELD, or each plugin as PLUGIN.POINT, with its row."""
    for row in rows:
        for name in row.names:
            yield f"{row.of}.{name}", row
