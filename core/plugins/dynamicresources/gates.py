"""What a release of Kubernetes does with devices, with its default feature gates.

Source: k8s.io/kubernetes pkg/features/kube_features.go, and the allocator `incubating` of each release in
k8s.io/dynamic-resource-allocation structured/internal, which these gates select.
"""

from functools import lru_cache

import msgspec

from core.releases.release import Release


class Gates(msgspec.Struct, frozen=True):
    """The rules of one release."""

    release: Release
    extended_resources: bool
    """DRAExtendedResource"""
    taints: bool
    """DRADeviceTaints"""
    taint_rules: bool
    """DRADeviceTaintRules"""
    binding_conditions: bool
    """DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"""
    partitions: bool
    """DRAPartitionableDevices"""
    shares: bool
    """DRAConsumableCapacity"""
    scores: bool
    fixed: bool
    """Whether the allocator has the corrections of 1.37: of capacities, of counters, and of distinct attributes."""


@lru_cache(maxsize=8)
def gates_of(release: Release) -> Gates:
    """Return the rules of a release."""
    beta, newest = release >= Release(1, 36), release >= Release(1, 37)
    return Gates(
        release=release,
        extended_resources=beta,
        taints=beta,
        taint_rules=newest,
        binding_conditions=beta,
        partitions=beta,
        shares=beta,
        scores=release >= Release(1, 35),
        fixed=newest,
    )
