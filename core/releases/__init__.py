"""The releases of Kubernetes whose answers are given, and the rules that differ between them, as a table.

A plugin does not ask for a release: it asks `mirror.rules` for the one rule that it needs. A new release is a new entry
of RELEASES, a new stage in GATES where its defaults changed, and a new answer in DIFFERENCES where it answers
otherwise.
"""

from core.releases.differences import DIFFERENCES, Answer, Difference, rules_of
from core.releases.gates import GATES, FeatureGateError, Stage, gates_of
from core.releases.release import DEFAULT_RELEASE, RELEASES, Nearest, Release, nearest
from core.releases.rules import (
    MOUNT_OPTIONS,
    RESTART_ALL,
    USERS_OF_HOST,
    DeviceClassResources,
    ImageVolumes,
    MissingDriver,
    RequestCounting,
    Rules,
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
