"""What a release of Kubernetes does with devices, with its default feature gates.

Source: k8s.io/kubernetes pkg/features/kube_features.go, and the allocator of each release that these gates select, in
k8s.io/dynamic-resource-allocation structured/internal: `incubating`, but `experimental` in 1.34.
"""

from functools import lru_cache

import msgspec

from core.releases.release import GATES_OF_DEVICES, Release, Rules


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
    looks_further: bool
    """Whether slices that a node does not see count for the completeness of a pool, as since 1.35.

    If so, no device of an incomplete pool is allocated, and an invalid pool prevents nothing else. In 1.34 an invalid
    one ends the attempt if it is reached.
    """
    current: bool
    """Whether each subrequest has a memo and a position of its own, as since 1.36."""
    distinct: bool
    """Whether there are distinct attributes."""
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
        looks_further=release >= Release(1, 35),
        current=beta,
        distinct=release != Release(1, 35),
        fixed=newest,
    )


def unsupported(rules: Rules) -> str:
    """Return the feature gates of devices without their default, in one line. Empty if there are none.

    Alpha features need the allocator `experimental`, and no other set of gates was compared with the real plugin.
    """
    stages = ((name, stages.get(rules.release)) for name, stages in GATES_OF_DEVICES.items())
    states = [
        f"{name} is {'on' if rules.gates[name] else 'off'}"
        for name, stage in stages
        if stage is not None and rules.gates[name] is not stage.default
    ]
    return f"devices are judged only with the default feature gates, and {', '.join(states)}" if states else ""
