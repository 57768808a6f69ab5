"""The rules of a release. Plugins read these rules instead of the release."""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from core.releases.release import Release

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
    REFUSED = "refused"
    """If the cluster has a CSIDriver with that name."""
    REFUSED_IF_ASKED = "refused if asked"
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
    """The rules of one release with its feature gates.

    Each field is a row of DIFFERENCES, or follows from several rows.
    """

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
    claimed_resources: ClaimedResources
    device_class_resources: DeviceClassResources
    missing_driver: MissingDriver
    portworx_needs_annotation: bool
    storage_capacity_scored: bool
    budgets_stop_at_violation: bool
    node_name_first: bool
    label_errors_in_bytes: bool
    numeric_tolerations: bool
    wakes_by_resize: bool
    wakes_by_device_class: bool
    wakes_by_own_labels: bool
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
