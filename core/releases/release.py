"""The supported minor releases of Kubernetes, and the nearest of them to a given version."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeVar

import msgspec

Value = TypeVar("Value")


class Release(NamedTuple):
    """A minor release of Kubernetes."""

    major: int
    minor: int

    def __str__(self) -> str:
        """Return the release in its usual form, such as 1.37."""
        return f"{self.major}.{self.minor}"


RELEASES: Final = (Release(1, 34), Release(1, 35), Release(1, 36), Release(1, 37))
"""The supported releases, oldest first."""
DEFAULT_RELEASE: Final = RELEASES[0]
"""The release to apply if none is given: the oldest one.

Kindred applied the rules of this release before it distinguished releases. A dump or a recorded decision without a
release is from that time, and must be evaluated by these rules.
"""

_number: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


class Nearest(NamedTuple):
    """The supported release that is nearest to a given version. `exact` is true if both are the same."""

    release: Release
    exact: bool
    text: str


def nearest(text: str) -> Nearest:
    """Return the nearest supported release for a version such as `v1.36.3`, `1.36+` or `v1.33.5-eks-1a2b`.

    The part after the minor version is ignored. A version older or newer than all supported releases gives the oldest
    or the newest one. A text without a version gives DEFAULT_RELEASE.
    """
    found = _number.match(text.strip())
    if found is None:
        return Nearest(DEFAULT_RELEASE, exact=False, text=text)
    written = Release(int(found[1]), int(found[2]))
    if written in RELEASES:
        return Nearest(written, exact=True, text=text)
    return Nearest(RELEASES[0] if written < RELEASES[0] else RELEASES[-1], exact=False, text=text)


class Stage(NamedTuple):
    """The stage of a feature gate in one release."""

    default: bool
    locked: bool = False


_OFF: Final = Stage(default=False)
_ON: Final = Stage(default=True)
_LOCKED: Final = Stage(default=True, locked=True)


def by_release(since: Mapping[str, Value]) -> dict[Release, Value]:
    """Return the value in each of RELEASES, from the release in which each value began. Earlier releases have none."""
    begun = {nearest(release).release: value for release, value in since.items()}
    begins = {release: [first for first in begun if first <= release] for release in RELEASES}
    return {release: begun[max(each)] for release, each in begins.items() if each}


_EXTENDED: Final = by_release({"1.34": _OFF, "1.36": _ON, "1.37": _LOCKED})
_ALLOCATABLE: Final = by_release({"1.36": _OFF})
_BETA_SINCE_136: Final = by_release({"1.34": _OFF, "1.36": _ON})
_ALPHA_SINCE_137: Final = by_release({"1.37": _OFF})
GATES: Final[Mapping[str, Mapping[Release, Stage]]] = {
    "NodeDeclaredFeatures": by_release({"1.35": _OFF, "1.36": _ON, "1.37": _LOCKED}),
    "DRAExtendedResource": _EXTENDED,
    "StorageCapacityScoring": by_release({"1.34": _OFF, "1.37": _ON}),
    "InPlacePodVerticalScaling": by_release({"1.34": _ON, "1.35": _LOCKED}),
    "InPlacePodLevelResourcesVerticalScaling": by_release({"1.35": _OFF, "1.36": _ON}),
    "PodLevelResources": by_release({"1.34": _ON}),
    "PodLevelResourcesFixDefaulting": by_release({"1.37": _ON}),
    "DRANodeAllocatableResources": _ALLOCATABLE,
    "VolumeLimitScaling": by_release({"1.35": _OFF, "1.37": _ON}),
    "TaintTolerationComparisonOperators": by_release({"1.35": _OFF}),
    "MatchLabelKeysInPodTopologySpread": by_release({"1.34": _ON}),
    "VolumeAttributesClass": by_release({"1.34": _ON, "1.36": _LOCKED}),
    "GenericWorkload": by_release({"1.35": _OFF}),
}
"""The feature gates that change a result: name -> release that has it -> its stage there.

Source: k8s.io/kubernetes pkg/features/kube_features.go of v1.34.1, v1.35.4, v1.36.3 and v1.37.1.
"""
GATES_OF_DEVICES: Final[Mapping[str, Mapping[Release, Stage]]] = {
    "DynamicResourceAllocation": by_release({"1.34": _ON, "1.35": _LOCKED}),
    "DRAAdminAccess": by_release({"1.34": _ON, "1.36": _LOCKED}),
    "DRAPrioritizedList": by_release({"1.34": _ON, "1.37": _LOCKED}),
    "DRAResourceClaimDeviceStatus": by_release({"1.34": _ON, "1.37": _LOCKED}),
    "DRAConsumableCapacity": _BETA_SINCE_136,
    "DRADeviceBindingConditions": _BETA_SINCE_136,
    "DRAPartitionableDevices": _BETA_SINCE_136,
    "DRADeviceTaints": _BETA_SINCE_136,
    "DRADeviceTaintRules": by_release({"1.35": _OFF, "1.37": _ON}),
    "DRAExtendedResource": _EXTENDED,
    "DRANodeAllocatableResources": _ALLOCATABLE,
    "DRAListTypeAttributes": by_release({"1.36": _OFF}),
    "DRAWorkloadResourceClaims": by_release({"1.36": _OFF}),
    "DRADerivedAttributes": _ALPHA_SINCE_137,
    "DRADeviceCompatibilityGroups": _ALPHA_SINCE_137,
    "DRAFractionalCapacityRange": _ALPHA_SINCE_137,
    "DRAOptionalNodeOperations": _ALPHA_SINCE_137,
}
"""The feature gates that change which devices kube-scheduler allocates. Only their defaults are judged.

Source: pkg/scheduler/framework/plugins/feature/feature.go and the file above. DRAFractionalCapacityRange is on only
with --min-compatibility-version=1.37.
"""
ALL_GATES: Final[Mapping[str, Mapping[Release, Stage]]] = {**GATES, **GATES_OF_DEVICES}


class FeatureGateError(ValueError):
    """The release does not have a feature gate, or does not allow it to be set. The message lists its gates."""


def gates_of(release: Release, gates: Mapping[str, bool] | None = None) -> Mapping[str, bool]:
    """Return every gate of a release, with its default or with its value in `gates`.

    A locked gate may be set to its locked value, as upstream allows. Raises FeatureGateError.
    """
    there = {name: stages[release] for name, stages in ALL_GATES.items() if release in stages}
    found = {name: stage.default for name, stage in there.items()}
    for name, enabled in (gates or {}).items():
        if name not in there:
            raise FeatureGateError(
                f"feature gate {name} is not known at {release}; there are {', '.join(sorted(there))}"
            )
        if there[name].locked and enabled is not there[name].default:
            free = ", ".join(sorted(each for each, stage in there.items() if not stage.locked))
            state = "on" if there[name].default else "off"
            raise FeatureGateError(f"feature gate {name} is locked {state} at {release}; free to set are {free}")
        found[name] = enabled
    return found


RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
USERS_OF_HOST: Final = "UserNamespacesHostNetworkSupport"
MOUNT_OPTIONS: Final = "VolumeBindMountOptions"
"""A feature that a node may have to declare for a pod, in any release."""


class ImageVolumes(Enum):
    """How ImageLocality counts the images of image volumes."""

    IGNORED = "ignored"
    SCORED = "scored"
    """Added to the sum of the image scores, but not to the number of images that scales the sum."""
    COUNTED = "counted"
    """Added to both."""


class ClaimedResources(Enum):
    """The members of status.nodeAllocatableResourceClaimStatuses that count as requests of the pod."""

    IGNORED = "ignored"
    LISTED = "listed"
    """`resources`, which only 1.36 has."""
    MAPPED = "mapped"
    """`mapping` and `overhead`, which replace `resources` since 1.37."""


class DeviceClassResources(Enum):
    """On which nodes NodeResourcesFit leaves an extended resource to DynamicResources, if a DeviceClass provides it."""

    CHECKED = "checked"
    """On no node."""
    LEFT_UNLESS_LISTED = "left unless listed"
    """On nodes whose allocatable does not list the resource, not even with 0."""
    LEFT_UNLESS_ALLOCATABLE = "left unless allocatable"
    """On nodes that have none of the resource allocatable."""


class MissingDriver(Enum):
    """When NodeVolumeLimits rejects a node whose CSINode does not list the driver of a volume."""

    ALLOWED = "allowed"
    REJECTED = "refused"
    """If the cluster has a CSIDriver with that name."""
    REJECTED_IF_REQUESTED = "refused if asked"
    """If that CSIDriver has preventPodSchedulingIfMissing."""


class RequestCounting(msgspec.Struct, frozen=True):
    """How the requests of a pod on a node are counted where its status adds to its spec."""

    aggregates: bool = False
    """Spec, status and allocation are each summed over the containers, and the maximum of the sums counts."""
    status: bool = True
    """The resources in the status count (InPlacePodVerticalScaling)."""
    pod_level: bool = True
    """Requests of the pod as a whole count (PodLevelResources)."""
    pod_level_status: bool = False
    """The pod-level resources in the status count (InPlacePodLevelResourcesVerticalScaling)."""
    claimed: ClaimedResources = ClaimedResources.IGNORED
    """Claimed resources in the status count (DRANodeAllocatableResources)."""


class Rules(msgspec.Struct, frozen=True):
    """The rules of one release with its feature gates. Each is a row of DIFFERENCES."""

    release: Release
    gates: Mapping[str, bool]
    balance_of_change: bool
    taint_named_in_reason: bool
    image_volumes: ImageVolumes
    declared_features: tuple[str, ...]
    declared_features_named_in_reason: bool
    aggregated_resize: bool
    resize_status: bool
    pod_level_requests: bool
    pod_level_resize_status: bool
    pod_level_defaults_last: bool
    claimed_resources: ClaimedResources
    device_class_resources: DeviceClassResources
    missing_driver: MissingDriver
    portworx_needs_annotation: bool
    storage_capacity_scored: bool
    budgets_stop_at_violation: bool
    node_name_first: bool
    label_errors_in_bytes: bool
    numeric_tolerations: bool
    match_label_keys: bool
    volume_attributes_classes: bool
    wakes_by_resize: bool
    wakes_by_device_class: bool
    wakes_by_own_labels: bool
    wakes_by_end_of_repelling_pod: bool
    group_cycles: bool
    groups_queued: bool

    @property
    def request_counting(self) -> RequestCounting:
        """How the requests of pods on nodes are counted."""
        return RequestCounting(
            aggregates=self.aggregated_resize,
            status=self.resize_status,
            pod_level=self.pod_level_requests,
            pod_level_status=self.pod_level_resize_status,
            claimed=self.claimed_resources,
        )
