"""The supported releases of Kubernetes, and the rules that differ between them, as a table.

Plugins read single rules from `mirror.rules`, and never a release. To add a release, add an entry to RELEASES, a stage
to GATES where defaults changed, and an entry to DIFFERENCES where a result changed.
"""

from core.releases.differences import DIFFERENCES, Answer, Difference, rules_of
from core.releases.release import (
    DEFAULT_RELEASE,
    GATES,
    MOUNT_OPTIONS,
    RELEASES,
    RESTART_ALL,
    USERS_OF_HOST,
    ClaimedResources,
    DeviceClassResources,
    FeatureGateError,
    ImageVolumes,
    MissingDriver,
    Nearest,
    Release,
    RequestCounting,
    Rules,
    Stage,
    gates_of,
    nearest,
)

__all__ = [
    "DEFAULT_RELEASE",
    "DIFFERENCES",
    "GATES",
    "MOUNT_OPTIONS",
    "RELEASES",
    "RESTART_ALL",
    "USERS_OF_HOST",
    "Answer",
    "ClaimedResources",
    "DeviceClassResources",
    "Difference",
    "FeatureGateError",
    "ImageVolumes",
    "MissingDriver",
    "Nearest",
    "Release",
    "RequestCounting",
    "Rules",
    "Stage",
    "gates_of",
    "nearest",
    "rules_of",
]
